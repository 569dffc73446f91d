"""adjoin._overridden: functions of Python's that ``__torch_function__`` sees by their own names, as it sees ops.

def f(input, dim=0):
    if overridden(input):
        return handed_over(f, (input,), locals())
"""

import functools
import types

from . import _C
from ._C import handle_torch_function
from ._C import has_torch_function_variadic as overridden

__all__ = ["as_op", "handed_over", "of_the_object", "overridden"]

# The ops behind the special methods that an override sees for operators, and whether the operands stand the other way round.
_OPERATORS = {
    "__rsub__": ("sub", True),
    "__rdiv__": ("div", True),
    "__floordiv__": ("floor_divide", False),
    "__rfloordiv__": ("floor_divide", True),
    "__rmod__": ("remainder", True),
    "__rpow__": ("pow", True),
    "__rmatmul__": ("matmul", True),
    "__rlshift__": ("bitwise_left_shift", True),
    "__rrshift__": ("bitwise_right_shift", True),
    "__eq__": ("eq", False),
    "__invert__": ("bitwise_not", False),
    **{f"__{sign}__": (f"bitwise_{sign}", False) for sign in ("and", "or", "xor")},
    **{f"__{sign}shift__": (f"bitwise_{side}_shift", False) for sign, side in (("l", "left"), ("r", "right"))},
    **{f"__i{sign}__": (f"bitwise_{sign}_", False) for sign in ("and", "or", "xor")},
    **{f"__i{sign}shift__": (f"bitwise_{side}_shift_", False) for sign, side in (("l", "left"), ("r", "right"))},
}


def as_op(func, args):
    """What an override got for an operator as a call of its op: (function, arguments)."""
    found = _OPERATORS.get(getattr(func, "__name__", ""))
    if found is None or getattr(_C.Tensor, func.__name__, None) is not func:
        return func, args
    name, swapped = found
    op = getattr(_C.Tensor, name) if name.endswith("_") else _C.find_op(name)
    return op, type(args)(reversed(args)) if swapped else args


def of_the_object(func):
    """Is it a property or a method that tells or changes something of the tensor itself, and calls no op?"""
    return isinstance(func, types.MethodWrapperType) or func in _own()


@functools.cache
def _own():
    slots = ("bool", "float", "int", "index", "len", "contains", "repr")
    return {*_C.methods_of_tensors(), *(getattr(_C.Tensor, f"__{name}__") for name in slots)}


def handed_over(function, relevant, given):
    """What the override of a relevant argument makes of a call; ``given`` are the function's locals() before it has more."""
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    required = count - len(function.__defaults__ or ())
    args = tuple(given[name] for name in names[:required])
    if code.co_flags & 4:  # *args
        args += tuple(given[code.co_varnames[len(names)]])
    return handle_torch_function(function, relevant, args, {name: given[name] for name in names[required:]})
