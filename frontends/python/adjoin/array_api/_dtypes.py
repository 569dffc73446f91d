"""adjoin.array_api._dtypes: kinds of dtypes, the standard's promotion, casts and limits."""

import functools

from .. import _C
from .._C import Tensor
from .._numeric import finfo as _finfo
from .._numeric import iinfo as _iinfo

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS = {
    "bool": (_C.bool,),
    "signed integer": (_C.int8, _C.int16, _C.int32, _C.int64),
    "unsigned integer": (_C.uint8, _C.uint16, _C.uint32, _C.uint64),
    "real floating": (_C.float32, _C.float64),
    "complex floating": (_C.complex64, _C.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


def is_integral(dtype):
    return dtype in KINDS["integral"]


def isdtype(dtype, kind):
    """Is a dtype of that kind: a dtype, the name of a kind, or a tuple of both?"""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: there is no kind {kind!r}; the kinds are {', '.join(map(repr, KINDS))}")
        extra = getattr(dtype, "is_floating_point", False) and kind in (
            "real floating",
            "numeric",
        )  # float16 and bfloat16, say
        return extra or dtype in KINDS[kind]
    if not isinstance(kind, _C.dtype):
        raise TypeError(
            f"isdtype: argument 'kind' must be a dtype, a str or a tuple of them, not {type(kind).__name__}"
        )
    return dtype == kind


def _promote(a, b):
    """As promote_types, and for the wider unsigned integers, which PyTorch promotes to nothing else, as the standard says."""
    if a == b:
        return a
    wide = KINDS["unsigned integer"][1:]
    if a not in wide and b not in wide or not (is_integral(a) and is_integral(b)):
        return _C.promote_types(a, b)
    signed, unsigned = KINDS["signed integer"], KINDS["unsigned integer"]
    if a in unsigned and b in unsigned:
        return max(a, b, key=unsigned.index)
    a, b = (a, b) if a in signed else (b, a)
    if b == _C.uint64:
        raise TypeError(f"result_type: no dtype holds all of {a} and {b}; cast one of them with astype")
    return max(a, signed[unsigned.index(b) + 1], key=signed.index)


def result_type(*arrays_and_dtypes):
    """The dtype of a result of such tensors, dtypes and Python numbers. A tensor's number of dimensions plays no part."""
    dtypes, numbers = [], []
    for item in arrays_and_dtypes:
        if isinstance(item, Tensor):
            dtypes.append(item.dtype)
        elif isinstance(item, _C.dtype):
            dtypes.append(item)
        elif isinstance(item, (bool, int, float, complex)):
            numbers.append(item)
        else:
            raise TypeError(f"result_type: takes tensors, dtypes and numbers, not {type(item).__name__}")
    if not dtypes:
        raise ValueError("result_type: takes at least one tensor or dtype")
    dtype = functools.reduce(_promote, dtypes)
    for number in numbers:
        dtype = _with_number(dtype, number)
    return dtype


def _with_number(dtype, number):
    """A number takes the tensor's dtype where its kind is no higher, else a dtype of its own kind."""
    if isinstance(number, bool) or (isinstance(number, int) and dtype != _C.bool):
        return dtype
    if isinstance(number, int):
        return _C.int64
    if isinstance(number, float):
        return dtype if dtype.is_floating_point or dtype.is_complex else _C.get_default_dtype()
    if dtype.is_complex:
        return dtype
    wide = dtype if dtype.is_floating_point else _C.get_default_dtype()
    return _C.promote_types(wide, _C.complex64)


def promoted(*operands):
    """Tensors and numbers as tensors of their common dtype, on the tensors' device."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if len(tensors) == len(operands) and all(x.dtype == tensors[0].dtype for x in tensors):
        return operands
    if not tensors:
        raise TypeError("a function of two arrays takes at least one tensor; make one of a number: asarray(number)")
    dtype, device = result_type(*operands), tensors[0].device
    for x in operands:
        if type(x) is int and side_of(x, dtype):
            low, high = _ends(dtype)
            raise OverflowError(
                f"{x} does not fit into {dtype}, which holds {low} to {high}; cast the array to a wider dtype"
            )
    return tuple(x.to(dtype) if isinstance(x, Tensor) else _C.tensor(x, dtype=dtype, device=device) for x in operands)


@functools.cache
def _ends(dtype):
    limits = _iinfo(dtype)
    return limits.min, limits.max


def side_of(number, dtype):
    """Where a whole number lies beside all numbers of a dtype: 1 above, -1 below, 0 among them."""
    if not is_integral(dtype):
        return 0
    low, high = _ends(dtype)
    return (number > high) - (number < low)


def astype(x, dtype, /, *, copy=True, device=None):
    """A tensor's elements in another dtype."""
    if x.dtype.is_complex and not dtype.is_complex:
        raise TypeError(
            f"astype: {x.dtype} has an imaginary part that {dtype} has no place for; take real(x) or abs(x)"
        )
    return x.to(device=device, dtype=dtype, copy=copy)


def can_cast(from_, to, /):
    """Does promotion lead from one dtype (or a tensor's) to another?"""
    start = from_.dtype if isinstance(from_, Tensor) else from_
    if start == _C.bool and to != _C.bool:
        return False  # promotion of truths to numbers is not the standard's
    try:
        return _promote(start, to) == to
    except TypeError:
        return False


class _Limits:
    """The limits of a dtype with the dtype itself, where PyTorch's have its name."""

    def __init__(self, limits, dtype):
        self._limits, self.dtype = limits, dtype

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._limits, name)

    def __repr__(self):
        return repr(self._limits)


def finfo(type, /):
    """The limits of a floating-point dtype, of a complex one's parts, or of a tensor's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    return _Limits(_finfo(dtype), dtype.to_real() if dtype.is_complex else dtype)


def iinfo(type, /):
    """The limits of an integer dtype, or of a tensor's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    return _Limits(_iinfo(dtype), dtype)
