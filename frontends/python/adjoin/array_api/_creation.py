"""adjoin.array_api._creation: functions that make arrays."""

import adjoin as _top

from .. import _C
from .._C import Tensor
from .._C import from_dlpack as _from_dlpack
from ._array import as_array

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones",
    "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def _sizes(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of numbers, nested sequences, another library's array or a tensor. `copy=False` refuses what would be copied."""
    if not isinstance(obj, Tensor):
        return as_array(_top.asarray(obj, dtype=dtype, device=device, copy=copy))
    obj = as_array(obj)
    made = obj.to(device=device, dtype=dtype, copy=copy is True)
    if copy is False and made is not obj:
        raise ValueError(
            f"asarray: {obj.dtype} on {obj.device} becomes {made.dtype} on {made.device} by a copy, which copy=False forbids; "
            "drop copy=False"
        )
    return made


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from start to stop, which is left out."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # nothing lies between; the package's own function refuses a step the other way
        whole = all(isinstance(number, int) for number in (start, stop, step))
        return empty(0, dtype=dtype or (_C.int64 if whole else None), device=device)
    return as_array(_top.arange(start, stop, step, dtype=dtype, device=device))


def empty(shape, *, dtype=None, device=None):
    """A tensor whose elements are not set."""
    return as_array(_top.empty(_sizes(shape), dtype=dtype, device=device))


def empty_like(x, /, *, dtype=None, device=None):
    """A tensor of x's shape whose elements are not set."""
    return as_array(_top.empty_like(x, dtype=dtype, device=device))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on the k-th diagonal, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    made = zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over another library's memory; on another device, or with copy=True, of its own."""
    given = {} if device is None else {"device": device}
    return as_array(_from_dlpack(x, copy=copy, **given))


def full(shape, fill_value, *, dtype=None, device=None):
    """A tensor of one value."""
    return as_array(_top.full(_sizes(shape), fill_value, dtype=dtype, device=device))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """A tensor of x's shape and of one value."""
    return as_array(_top.full_like(x, fill_value, dtype=dtype, device=device))


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` numbers at equal distances, with the last or without it."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = _C.promote_types(_C.get_default_dtype(), _C.complex64)
    made = as_array(_top.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device))
    return made if endpoint else made[:-1]


def meshgrid(*arrays, indexing="xy"):
    """The coordinates of a grid."""
    return tuple(_top.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape, *, dtype=None, device=None):
    """A tensor of ones."""
    return as_array(_top.ones(_sizes(shape), dtype=dtype, device=device))


def ones_like(x, /, *, dtype=None, device=None):
    """A tensor of x's shape, of ones."""
    return as_array(_top.ones_like(x, dtype=dtype, device=device))


def tril(x, /, *, k=0):
    """What lies on and below the k-th diagonal."""
    return _top.tril(x, k)


def triu(x, /, *, k=0):
    """What lies on and above the k-th diagonal."""
    return _top.triu(x, k)


def zeros(shape, *, dtype=None, device=None):
    """A tensor of zeros."""
    return as_array(_top.zeros(_sizes(shape), dtype=dtype, device=device))


def zeros_like(x, /, *, dtype=None, device=None):
    """A tensor of x's shape, of zeros."""
    return as_array(_top.zeros_like(x, dtype=dtype, device=device))
