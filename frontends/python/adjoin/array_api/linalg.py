"""adjoin.array_api.linalg: the standard's extension of linear algebra."""

import collections
import math

import adjoin as _top

from .. import linalg as _linalg
from ._dtypes import promoted
from ._products import matmul, matrix_transpose, tensordot, vecdot
from ._statistics import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip

_Eigh = collections.namedtuple("eigh", ["eigenvalues", "eigenvectors"])
_Qr = collections.namedtuple("qr", ["Q", "R"])
_Slogdet = collections.namedtuple("slogdet", ["sign", "logabsdet"])
_Svd = collections.namedtuple("svd", ["U", "S", "Vh"])


def cholesky(x, /, *, upper=False):
    """The triangular factor of positive definite matrices."""
    return _linalg.cholesky(x, upper=upper)


def cross(x1, x2, /, *, axis=-1):
    """The cross product along an axis of size 3."""
    for x in (x1, x2):  # before broadcasting, which would make three of one
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != 3:
            raise ValueError(f"cross: axis {axis} must have size 3 in both arrays; one has shape {list(x.shape)}")
    x1, x2 = _top.broadcast_tensors(*promoted(x1, x2))
    return _linalg.cross(x1, x2, dim=axis)


def det(x, /):
    """Determinants."""
    return _linalg.det(x)


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices."""
    return _linalg.diagonal(x, offset=offset)


def eigh(x, /):
    """The eigenvalues and eigenvectors of symmetric matrices."""
    return _Eigh(*_linalg.eigh(x))


def eigvalsh(x, /):
    """The eigenvalues of symmetric matrices."""
    return _linalg.eigvalsh(x)


def inv(x, /):
    """Inverses."""
    return _linalg.inv(x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """A norm of matrices."""
    return _linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x, n, /):
    """Matrices multiplied n times with themselves."""
    return _linalg.matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are above rtol times the largest."""
    return _linalg.matrix_rank(x, rtol=rtol)


def outer(x1, x2, /):
    """All products of the elements of two vectors."""
    return _top.outer(*promoted(x1, x2))


def pinv(x, /, *, rtol=None):
    """Pseudo-inverses, without singular values below rtol times the largest."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * _top.finfo(x.dtype).eps
    return _linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    """An orthonormal and a triangular factor."""
    return _Qr(*_linalg.qr(x, mode))


def slogdet(x, /):
    """The signs of determinants and the logarithms of their magnitudes."""
    return _Slogdet(*_linalg.slogdet(x))


def solve(x1, x2, /):
    """The solutions of x1 @ x = x2. A vector is one whose tensor has one dimension; all others are matrices."""
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1 or x2.ndim >= x1.ndim:
        vector = x2.ndim == 1
        x2 = x2.unsqueeze(-1) if vector else x2
        batch = _top.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        made = _linalg.solve(x1.expand(batch + x1.shape[-2:]), x2.expand(batch + x2.shape[-2:]))
        return made.squeeze(-1) if vector else made
    return _linalg.solve(x1, x2.expand(x1.shape[:-2] + x2.shape[-2:]))


def svd(x, /, *, full_matrices=True):
    """Singular values with their vectors."""
    return _Svd(*_linalg.svd(x, full_matrices))


def svdvals(x, /):
    """Singular values."""
    return _linalg.svdvals(x)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of matrices."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """A norm of vectors along axes, of all elements where axis is None."""
    axes = axis if axis is None or isinstance(axis, int) else tuple(axis)
    if axes == ():
        return _top.abs(x) if ord != 0 else (x != 0).to(_top.abs(x).dtype)
    if 0 in x.shape and (ord == math.inf or -math.inf < ord < 0):
        sums = _linalg.vector_norm(x, 1, axes, keepdims)  # of nothing, or no sum at all
        return sums if ord > 0 else sums + math.inf  # the largest of no magnitudes is 0, a root of 1 / 0 is inf
    return _linalg.vector_norm(x, ord, axes, keepdims)
