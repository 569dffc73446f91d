"""adjoin.array_api._products: products of matrices, at the top and in `linalg`."""

import adjoin as _top

from ._dtypes import promoted

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1, x2, /):
    """The product of matrices."""
    return _top.matmul(*promoted(x1, x2))


def matrix_transpose(x, /):
    """The last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(
            f"matrix_transpose: takes matrices; this tensor has {x.ndim} dimensions, at least 2 are needed"
        )
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """Sums of products over the last axes of x1 and the first of x2, or over pairs of axes."""
    return _top.tensordot(*promoted(x1, x2), dims=axes if isinstance(axes, int) else tuple(map(list, axes)))


def vecdot(x1, x2, /, *, axis=-1):
    """The sum of conj(x1) * x2 along an axis, counted after broadcasting from the end."""
    x1, x2 = promoted(x1, x2)
    for x in (x1, x2):
        if not -x.ndim <= axis < 0:
            raise ValueError(
                f"vecdot: axis {axis} is out of range for {x.ndim} dimensions; it must be in [{-x.ndim}, -1]"
            )
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} has sizes {x1.shape[axis]} and {x2.shape[axis]}; they must be the same")
    x1, x2 = _top.broadcast_tensors(x1, x2)
    x1, x2 = x1.movedim(axis, -1), x2.movedim(axis, -1)
    if x1.dtype.is_complex or x1.dtype.is_floating_point:
        return _top.linalg.vecdot(x1, x2, dim=-1)
    return (x1 * x2).sum(-1, dtype=x1.dtype)
