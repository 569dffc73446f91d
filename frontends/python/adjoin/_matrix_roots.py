"""adjoin._matrix_roots: the polar factors of a matrix, and the square root of a Hermitian one."""

import collections

from . import linalg as _linalg
from ._out import put
from .autograd.function import Function

Polar = collections.namedtuple("polar", ["U", "H"])


def polar(A, *, out=None):
    """A = U H, U with orthonormal columns, H Hermitian without negative eigenvalues."""
    if A.dim() < 2 or A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            f"polar: A must have at least as many rows as columns, its shape is {list(A.shape)}; give its transpose"
        )
    U, S, Vh = _linalg.svd(A, full_matrices=False)
    H = (Vh.mH * S.unsqueeze(-2)) @ Vh
    made = Polar(U @ Vh, (H + H.mH) / 2)
    return made if out is None else Polar(*put("polar", tuple(made), out))


class _Root(Function):
    """X X = A has the derivative X S + S X = g: in X's own vectors each element is divided by the sum of two values of X."""

    @staticmethod
    def forward(ctx, A):
        values, Q = _linalg.eigh(A)
        X = (Q * values.clamp(min=0).sqrt().unsqueeze(-2)) @ Q.mH
        ctx.save_for_backward(X)
        return X

    @staticmethod
    def backward(ctx, g):
        values, Q = _linalg.eigh(*ctx.saved_tensors)
        inside = Q.mH @ ((g + g.mH) / 2) @ Q
        return Q @ (inside / (values.unsqueeze(-1) + values.unsqueeze(-2))) @ Q.mH


def matrix_sqrth(A):
    """The Hermitian X with X X = A, for a positive definite A, of which the lower triangle is read."""
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"matrix_sqrth: A must be square, its shape is {list(A.shape)}")
    return _Root.apply(A)
