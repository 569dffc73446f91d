"""adjoin.array_api._searching: indexing functions, searches, sets and orders."""

import collections

import adjoin as _top

from .. import _C
from ._dtypes import promoted

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted", "sort", "take", "take_along_axis",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip


def take(x, indices, /, *, axis=None):
    """The slices of an axis that one-dimensional indices name; a negative index counts from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(
                f"take: axis must be given for a tensor of {x.ndim} dimensions; only of one it may be left out"
            )
        axis = 0
    axis += x.ndim if axis < 0 else 0
    return x[(slice(None),) * axis + (indices.to(_C.int64),)]


def take_along_axis(x, indices, /, *, axis=-1):
    """The elements that indices name along an axis, at each place of the other axes."""
    indices = indices.to(_C.int64)
    return _top.take_along_dim(x, _top.where(indices < 0, indices + x.shape[axis], indices), axis)


def _extreme(name, compute, x, axis, keepdims):
    if 0 in (x.shape if axis is None or not x.ndim else (x.shape[axis],)):
        raise ValueError(f"{name}: shape {list(x.shape)} has no elements to choose from")
    found = compute(x, axis)
    if not keepdims:
        return found
    return found.reshape((1,) * x.ndim) if axis is None or not x.ndim else found.unsqueeze(axis)


def argmax(x, /, *, axis=None, keepdims=False):
    """Where the largest element stands first."""
    return _extreme("argmax", _top.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Where the smallest element stands first."""
    return _extreme("argmin", _top.argmin, x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    axes = tuple(range(x.ndim)) if axis is None else axis
    return (x != 0).sum(axes, keepdim=keepdims, dtype=_C.int64) if axes != () else (x != 0).to(_C.int64)


def nonzero(x, /):
    """Where elements are not zero: the indices of each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero: a tensor without axes has no indices; reshape it to (1,)")
    return x.nonzero(as_tuple=True)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements of x2 would stand in x1, which is sorted."""
    x1, x2 = promoted(x1, x2)
    return _top.searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition, x1, x2, /):
    """Elements of x1 where the condition holds, of x2 elsewhere."""
    return _top.where(condition, *promoted(x1, x2))


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements in order along an axis."""
    return _top.sort(x, axis, descending, stable)[0]


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that put the elements in order along an axis."""
    return _top.argsort(x, axis, descending, stable=stable)


_All = collections.namedtuple("unique_all", ["values", "indices", "inverse_indices", "counts"])
_Counts = collections.namedtuple("unique_counts", ["values", "counts"])
_Inverse = collections.namedtuple("unique_inverse", ["values", "inverse_indices"])


def _unique(x):
    """(values, indices, inverse, counts) of a sorted tensor. NaNs differ from one another."""
    flat = x.reshape(-1)
    order = _top.argsort(flat, stable=True)
    ordered = flat[order]
    first = x.new_ones(ordered.shape, dtype=_C.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = first.nonzero().reshape(-1)
    ends = _top.cat([starts[1:], x.new_full((1,), len(flat), dtype=_C.int64)])[: len(starts)]
    inverse = x.new_empty(flat.shape, dtype=_C.int64)
    inverse[order] = first.cumsum(0) - 1
    return ordered[starts], order[starts], inverse.reshape(x.shape), ends - starts


def _unique_complex(x):
    """The same of complex numbers: ordered by the real part, then by the imaginary one."""
    flat = x.reshape(-1)
    _, _, by_real, _ = _unique(flat.real)
    _, _, by_imag, _ = _unique(flat.imag)
    _, indices, inverse, counts = _unique(by_real * max(len(flat), 1) + by_imag)
    return flat[indices], indices, inverse.reshape(x.shape), counts


def unique_all(x, /):
    """The distinct elements, where each stands first, which of them each element is, how often each occurs."""
    return _All(*(_unique_complex if x.dtype.is_complex else _unique)(x))


def unique_counts(x, /):
    """The distinct elements, and how often each occurs."""
    found = unique_all(x)
    return _Counts(found.values, found.counts)


def unique_inverse(x, /):
    """The distinct elements, and which of them each element is."""
    found = unique_all(x)
    return _Inverse(found.values, found.inverse_indices)


def unique_values(x, /):
    """The distinct elements."""
    return unique_all(x).values
