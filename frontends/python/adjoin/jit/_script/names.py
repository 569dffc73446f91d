"""adjoin.jit._script.names: what a name of Python's stands for in a program: an op, a builtin, a function, a class, a constant."""

import builtins
import collections
import math
import operator
import types

import adjoin

OP, METHOD = type(adjoin.add), type(adjoin.Tensor.add)
FALSE = (  # functions of the package that are false in a program
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tracing", "_is_tracing", "_get_tracing_state",
)  # fmt: skip
_SPACES = {"adjoin": "", "adjoin.nn.functional": "nn::"}
_PYTHON = {
    len: "len", range: "range", enumerate: "enumerate", zip: "zip", int: "int", float: "float", bool: "bool", str: "str",
    complex: "complex", repr: "repr", list: "to_list", tuple: "to_tuple", dict: "to_dict", collections.OrderedDict: "to_dict", abs: "abs", min: "min",
    max: "max", sum: "sum", any: "any", all: "all", sorted: "sorted", reversed: "reversed", round: "round",
    divmod: "divmod", pow: "power", ord: "ord", chr: "chr", hex: "hex", bin: "bin", oct: "oct", print: "print",
    hasattr: "hasattr", getattr: "getattr", operator.add: "add", operator.mul: "mul", operator.sub: "sub",
    operator.neg: "neg", operator.getitem: "getitem", operator.not_: "not", operator.floordiv: "floordiv",
    operator.mod: "mod", operator.truediv: "div", operator.eq: "eq", operator.lt: "lt",
}  # fmt: skip


def _math():
    known = "sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc gamma lgamma fabs"
    known += " radians degrees remainder floor ceil trunc pow atan2 fmod hypot copysign isnan isinf isfinite gcd factorial prod"
    return {getattr(math, name): f"math.{name}" for name in known.split()}


_FUNCTIONS = {**_PYTHON, **_math()}


def _of_adjoin():
    """Functions of the package that are no ops, and no Python that could be scripted."""
    return {
        adjoin.tensor: "tensor", adjoin.as_tensor: "tensor", adjoin.is_tensor: "is_tensor",
        adjoin.is_grad_enabled: "is_grad_enabled", adjoin.get_default_dtype: "get_default_dtype", adjoin.device: "device", adjoin.finfo: "finfo",
        adjoin.iinfo: "iinfo", adjoin.numel: "numel", adjoin.is_autocast_enabled: "autocast_enabled",
        adjoin.get_autocast_dtype: "autocast_dtype",
    }  # fmt: skip


# Functions in Python whose work is that of an op, or of a method of a tensor.
_METHODS = (
    "detach detach_ split nonzero fill_ is_floating_point is_complex is_signed get_device unique unique_consecutive"
).split()

_known = {}


def builtin_of(o):
    """The builtin that a function of Python's or the package's is; None: it is none."""
    if not _known:
        _known.update({id(f): name for f, name in {**_FUNCTIONS, **_of_adjoin()}.items()})
    return _known.get(id(o))


def method_of(o):
    """The method of its first argument that a function is."""
    name = getattr(o, "__name__", "")
    return name if name in _METHODS and getattr(adjoin, name, None) is o else None


def as_op(o):
    """The op that a value is, or that a name of PyTorch's, ``torch.ops.aten.add.Tensor``, stands for as it is; None: it is none."""
    if type(o).__name__ in ("OpOverload", "OpOverloadPacket"):
        o = o._op
    return o if isinstance(o, OP) else None


def op_of(o):
    """The op's name in the registry."""
    if (o := as_op(o)) is None:
        return None
    home, name = o.__module__, o.__name__
    if home in _SPACES:
        return _SPACES[home] + name
    return home.removeprefix("adjoin.ops.").removeprefix("adjoin.") + "::" + name


def is_namespace(o):
    """Does it hold names that are known now: a module, the overloads of an op?"""
    return isinstance(o, types.ModuleType) or type(o).__name__ == "OpOverloadPacket"


def seen_by(function, owner=None):
    """Names that a function sees from outside; its class may have none yet while it is made."""
    names = dict(vars(builtins))
    if owner is not None:
        names[owner.__name__] = owner
    names.update(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return names
