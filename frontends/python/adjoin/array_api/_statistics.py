"""adjoin.array_api._statistics: reductions, running sums and differences."""

import adjoin as _top

from .. import _C
from ._dtypes import KINDS, is_integral

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip


def _axes(x, axis):
    """Axes as a tuple of places counted from the front."""
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(a + x.ndim if a < 0 else a for a in ((axis,) if isinstance(axis, int) else axis))


def _of_sums(x, dtype):
    """Sums of small whole numbers are 64 bits wide, signed or not as the numbers are."""
    if dtype is not None:
        return dtype
    if x.dtype in KINDS["unsigned integer"]:
        return _C.uint64
    return _C.int64 if is_integral(x.dtype) or x.dtype == _C.bool else x.dtype


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum of elements."""
    axes, dtype = _axes(x, axis), _of_sums(x, dtype)
    return _top.sum(x, axes, keepdims, dtype=dtype) if axes else x.to(dtype, copy=True)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product of elements."""
    made = x.to(_of_sums(x, dtype), copy=True)
    if axis is None and not keepdims:
        return _top.prod(made, dtype=made.dtype)
    for a in sorted(_axes(x, axis), reverse=True):
        made = _top.prod(made, a, keepdims, dtype=made.dtype)
    return made


def _extreme(name, compute, x, axis, keepdims):
    axes = _axes(x, axis)
    if x.ndim and 0 in [x.shape[a] for a in axes]:
        raise ValueError(f"{name}: shape {list(x.shape)} has no elements along axes {list(axes)} to choose from")
    return compute(x, axes, keepdims) if axes else x.clone()


def max(x, /, *, axis=None, keepdims=False):
    """The largest element."""
    return _extreme("max", _top.amax, x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest element."""
    return _extreme("min", _top.amin, x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean of elements."""
    axes = _axes(x, axis)
    return _top.mean(x, axes, keepdims) if axes else x.clone()


def _spread(compute, x, axis, correction, keepdims):
    axes = _axes(x, axis)
    if axes:
        return compute(x, axes, correction=correction, keepdim=keepdims)
    return compute(x.unsqueeze(0), 0, correction=correction)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation of elements."""
    return _spread(_top.std, x, axis, correction, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance of elements."""
    return _spread(_top.var, x, axis, correction, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Is no element zero?"""
    axes = _axes(x, axis)
    return _top.all(x, axes, keepdims).to(_C.bool) if axes else x.to(_C.bool, copy=True)


def any(x, /, *, axis=None, keepdims=False):
    """Is some element not zero?"""
    axes = _axes(x, axis)
    return _top.any(x, axes, keepdims).to(_C.bool) if axes else x.to(_C.bool, copy=True)


def _running(name, compute, first, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"{name}: axis must be given for a tensor of {x.ndim} dimensions; only of one it may be left out"
            )
        axis = 0
    dtype = _of_sums(x, dtype)
    made = compute(x, axis, dtype=dtype)
    if not include_initial:
        return made
    shape = list(x.shape)
    shape[axis] = 1
    return _top.cat([_top.full(shape, first, dtype=dtype, device=x.device), made], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums up to each element."""
    return _running("cumulative_sum", _top.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products up to each element."""
    return _running("cumulative_prod", _top.cumprod, 1, x, axis, dtype, include_initial)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours, n times."""
    return _top.diff(x, n, axis, prepend, append)
