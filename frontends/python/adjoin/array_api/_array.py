"""adjoin.array_api._array: the arrays of this namespace: tensors whose operators promote as the standard says.

`Array` is a subclass of `Tensor`, so every function takes one, gradients pass through it, and results of calls with one are ones.
What PyTorch says otherwise on a tensor is the standard's here: operators between unlike dtypes, `x.size`, steps below zero in an
index. A tensor made elsewhere stays what it is.
"""

import math

from .. import _C
from .._C import Tensor
from . import _dtypes

_NUMBERS = (bool, int, float, complex)


class Count(int):
    """How many elements there are; called, the sizes, as of any tensor."""

    def __new__(cls, array):
        made = int.__new__(cls, math.prod(array.shape))
        made._shape = array.shape
        return made

    def __call__(self, dim=None):
        return self._shape if dim is None else self._shape[dim]


class Array(Tensor):
    """A tensor under the array API standard's rules; `asarray` and the other functions of the namespace make them."""

    @property
    def size(self):
        """The number of elements. x.size() gives the sizes, as a tensor's does."""
        return Count(self)

    def __getitem__(self, key):
        key, turned = _plain_key(self, key)
        found = Tensor.__getitem__(self, key)
        return found.flip(turned) if turned else found

    def __setitem__(self, key, value):
        key, turned = _plain_key(self, key)
        if turned and isinstance(value, Tensor):
            value = value.expand(Tensor.__getitem__(self, key).shape).flip(turned)
        if isinstance(value, Tensor) and value.dtype != self.dtype:
            value = value.to(self.dtype)
        Tensor.__setitem__(self, key, value)

    def __index__(self):
        if not _dtypes.is_integral(self.dtype):
            raise TypeError(f"__index__: only whole numbers are indices, not {self.dtype}")
        return int(self)

    __hash__ = Tensor.__hash__


def _part(name):
    """What a property of tensors gives, as an array."""
    of = getattr(Tensor, name).__get__
    return property(lambda self: as_array(of(self)), doc=getattr(Tensor, name).__doc__)


for _name in ("T", "mT", "H", "mH", "real", "imag"):
    setattr(Array, _name, _part(_name))


def as_array(made):
    """A tensor as an array over the same memory and history; what is one already comes back itself."""
    return made if isinstance(made, Array) else made.as_subclass(Array)


# Indices


def _plain_key(x, key):
    """A key that tensors take, and the dimensions of its result to be turned around: those of steps below zero."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, (slice, Tensor)) for part in parts):
        return key, ()
    taken = sum(_dims_of(part) for part in parts)
    made, turned, dim, out = [], [], 0, 0
    for part in parts:
        if part is Ellipsis:
            dim += x.ndim - taken
            out += x.ndim - taken
        elif isinstance(part, slice):
            if part.step is not None and part.step < 0 and dim < x.ndim:
                places = range(*part.indices(x.shape[dim]))
                part = slice(places[-1], places[0] + 1, -part.step) if places else slice(0, 0)
                turned.append(out)
            dim, out = dim + 1, out + 1
        elif isinstance(part, Tensor):
            if part.dtype == _C.bool:
                part = _mask(x, part, dim)
            elif _dtypes.is_integral(part.dtype) and part.ndim and part.dtype != _C.int64:
                part = part.to(_C.int64)
            dim += _dims_of(part)
        elif part is None:
            out += 1
        else:
            dim += 1
        made.append(part)
    return tuple(made) if isinstance(key, tuple) else made[0], tuple(turned)


def _dims_of(part):
    """How many dimensions of an array a part of a key is about."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype == _C.bool else 1


def _mask(x, mask, dim):
    """A mask without elements chooses nothing, whatever the sizes beside its own."""
    wanted = x.shape[dim : dim + mask.ndim]
    if mask.shape == wanted or not mask.ndim or len(wanted) < mask.ndim:
        return mask
    if all(n in (0, size) for n, size in zip(mask.shape, wanted, strict=True)):
        return mask.new_zeros(wanted)
    return mask


# Operators


def _binary(name, function, swapped=False):
    def operate(self, other):
        if not isinstance(other, (Tensor, *_NUMBERS)):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    return _named(operate, name)


def _in_place(name, function):
    def operate(self, other):
        if not isinstance(other, (Tensor, *_NUMBERS)):
            return NotImplemented
        made = function(self, other)
        if made.dtype != self.dtype:
            raise TypeError(f"{name}: the result is {made.dtype}, the array is {self.dtype}; write x = x ... instead")
        if made.shape != self.shape:
            raise ValueError(f"{name}: the result has shape {list(made.shape)}, the array {list(self.shape)}")
        return self.copy_(made)

    return _named(operate, name)


def _unary(name, function):
    def operate(self):
        return function(self)

    return _named(operate, name)


def _named(function, name):
    function.__name__ = name
    function.__qualname__ = f"Array.{name}"
    return function


def give_operators(functions):
    """Array's operators, from the namespace's functions of their names."""
    for symbol, name in {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
        "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
        "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    }.items():  # fmt: skip
        function = functions[name]
        setattr(Array, f"__{symbol}__", _binary(f"__{symbol}__", function))
        setattr(Array, f"__r{symbol}__", _binary(f"__r{symbol}__", function, swapped=True))
        setattr(Array, f"__i{symbol}__", _in_place(f"__i{symbol}__", function))
    for symbol, name in {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    }.items():  # fmt: skip
        setattr(Array, f"__{symbol}__", _binary(f"__{symbol}__", functions[name]))
    for symbol, name in {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}.items():
        setattr(Array, f"__{symbol}__", _unary(f"__{symbol}__", functions[name]))
