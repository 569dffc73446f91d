"""adjoin.jit._aten_calls: the ops of PyTorch's files by name, with arguments in the order of PyTorch's schemas.

A name stands for the function of that name that programs for PyTorch call: of the package, of nn.functional, of tensors. What is
called otherwise, or has other arguments, has a function here.
"""

import contextlib
import functools
import math

import adjoin
from adjoin import Tensor, linalg
from adjoin.nn import functional as F

# PyTorch's numbers of dtypes, as TorchScript writes them.
DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 9: "complex64",
    10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn", 25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip
NUMBERS = {getattr(adjoin, name): number for number, name in DTYPES.items()}
REDUCTIONS = ("none", "mean", "sum")
SPECIAL = {}


def special(*names):
    def keep(function):
        for name in names:
            SPECIAL[name] = function
        return function

    return keep


def dtype_of(number):
    """A dtype of PyTorch's number of one; None and dtypes stay."""
    if isinstance(number, bool) or not isinstance(number, int):
        return number
    if number not in DTYPES:
        raise NotImplementedError(f"the dtype of number {number} is not served")
    return getattr(adjoin, DTYPES[number])


def words(kwargs):
    """Keyword arguments as functions here take them."""
    made = {}
    for name, value in kwargs.items():
        if name in ("pin_memory", "layout", "device") and value is None:
            continue
        if name == "pin_memory" or name == "layout" and value in (0, 7, None):
            continue
        if name in ("dtype", "output_dtype"):
            value = dtype_of(value)
        elif name == "device" and isinstance(value, str):
            value = adjoin.device(value)
        elif name == "memory_format":
            value = memory_format(value)
        if name == "self":
            name = "input"
        made[name] = value
    return made


def memory_format(number):
    names = {0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d"}
    return getattr(adjoin, names[number]) if isinstance(number, int) else number


# What has no row and is harmless, too: nothing else of the package is reached from a file.
_ALSO = frozenset(
    "detach detach_ chalf cpu fill requires_grad_ resize_ is_complex is_contiguous is_floating_point is_signed is_conj is_neg is_same_size "
    "element_size get_device storage_offset hann_window hamming_window bartlett_window blackman_window kaiser_window resolve_neg "
    "result_type promote_types poisson binomial range to_dense to_sparse native_layer_norm native_group_norm native_batch_norm "
    "affine_grid_generator gradient max_unpool2d max_unpool3d is_grad_enabled is_autocast_enabled is_autocast_cpu_enabled".split()
)


@functools.cache
def _rows():
    """The names of all rows, without their spaces."""
    return frozenset(name.rpartition("::")[2].partition(".")[0] for name in adjoin._C.op_names(True))


def _is_op(name):
    return name in _rows() or name.removesuffix("_") in _rows()


@functools.cache
def function_of(name):
    """What computes an op of aten here."""
    if name in SPECIAL:
        return SPECIAL[name]
    for begin, module in (("linalg_", linalg), ("fft_", adjoin.fft), ("special_", adjoin.special)):
        rest = name.removeprefix(begin)
        if name.startswith(begin) and _is_op(rest) and callable(getattr(module, rest, None)):
            return getattr(module, rest)
    if _is_op(name) or name in _ALSO:
        for module in (adjoin, F, Tensor):
            made = getattr(module, name, None)
            if callable(made) and not isinstance(made, type):
                return made
        with contextlib.suppress(AttributeError):
            return getattr(adjoin.ops.aten, name)
    raise NotImplementedError(f"the op aten::{name} has no function here")


def function_in(space, name):
    """An op of a package's own space."""
    known = adjoin._C.find_op(f"{space}::{name}") is not None if space.isidentifier() and name.isidentifier() else False
    if not known or space.startswith("_"):
        raise NotImplementedError(
            f"the op {space}::{name} is not known here; its plugin, or its package, may be missing"
        )
    return getattr(getattr(adjoin.ops, space), name)


def call(name, args, kwargs):
    """The result of an op of aten."""
    return function_of(name)(*args, **words(kwargs))


# Tensors
@special("to")
def _to(input, *args, **kwargs):
    made, seen = {}, False
    for a in args:
        if isinstance(a, Tensor):
            made |= {"dtype": a.dtype, "device": a.device}
        elif isinstance(a, bool):
            made["copy" if seen else "non_blocking"] = a
            seen = True
        elif isinstance(a, int) and seen:
            made["memory_format"] = memory_format(a)
        elif isinstance(a, (int, adjoin.dtype)):
            made["dtype"] = dtype_of(a)
        elif a is not None:
            made["device"] = a
    return input.to(**{**made, **{k: v for k, v in kwargs.items() if v is not None}})


@special("_to_copy")
def _to_copy(input, **kwargs):
    return input.to(**{k: v for k, v in kwargs.items() if v is not None})


@special("size", "sym_size")
def _size(input, dim=None):
    return list(input.shape) if dim is None else input.shape[dim]


@special("stride", "sym_stride")
def _stride(input, dim=None):
    return list(input.stride()) if dim is None else input.stride()[dim]


@special("numel", "sym_numel")
def _numel(input):
    return input.numel()


@special("dim")
def _dim(input):
    return input.dim()


@special("slice")
def _slice(input, dim=0, start=None, end=None, step=1):
    if not isinstance(input, Tensor):  # of a list: (list, start, end, step)
        return input[slice(dim, start, 1 if end is None else end)]
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


@special("index", "_unsafe_index")
def _index(input, indices):
    if not isinstance(input, Tensor):
        return input.index(indices)
    return input[tuple(slice(None) if i is None else i for i in indices)]


def _put(name, in_place):
    def run(input, indices, values, accumulate=False, unsafe=False):
        target = input if in_place else input.clone()
        if all(i is not None for i in indices):
            return target.index_put_(tuple(indices), values, accumulate)
        key = tuple(slice(None) if i is None else i for i in indices)
        target[key] = target[key] + values if accumulate else values
        return target

    SPECIAL[name] = run


for _name in ("index_put_", "_index_put_impl_"):
    _put(_name, True)
for _name in ("index_put", "_unsafe_index_put"):
    _put(_name, False)


@special("copy", "lift_fresh_copy", "detach_copy")
def _copy(input, source=None, non_blocking=False):
    if source is None:
        return input.clone() if isinstance(input, Tensor) else type(input)(input)
    return source.to(input.dtype).expand_as(input).clone()


@special("lift_fresh", "alias", "_reshape_alias", "_conj", "conj")
def _lift(input, *more):
    return input.conj() if input.is_complex() and not more else input


@special("arange")
def _arange(*args, **kwargs):
    return adjoin.arange(*args, **kwargs)


@special("full")
def _full(size, fill_value, **kwargs):
    return adjoin.full(list(size), fill_value, **kwargs)


@special("scalar_tensor")
def _scalar(value, **kwargs):
    return adjoin.tensor(value, **kwargs)


@special("tensor")
def _tensor(data, dtype=None, device=None, requires_grad=False):
    made = adjoin.tensor(data, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


@special("item", "_local_scalar_dense", "ScalarImplicit", "IntImplicit", "FloatImplicit")
def _item(input):
    return input.item()


for _name, _kind in (("Int", int), ("Float", float), ("Bool", bool)):
    SPECIAL[_name] = lambda value, kind=_kind: kind(value)


@special("pow")
def _pow(base, exponent):
    return adjoin.pow(base, exponent)


@special("div")
def _div(input, other, rounding_mode=None):
    return adjoin.div(input, other, rounding_mode=rounding_mode)


@special("einsum")
def _einsum(equation, tensors, path=None):
    return adjoin.einsum(equation, *tensors)


@special("type_as")
def _type_as(input, other):
    return input.to(other.dtype)


@special("linspace")
def _linspace(start, end, steps, **kwargs):
    return adjoin.linspace(start, end, steps, **kwargs)


@special(
    "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size", "_assert_async", "warn", "_print"
)
def _nothing(*args, **kwargs):
    return None


@special("_assert_scalar")
def _assert_scalar(value, message=""):
    if not value:
        raise RuntimeError(message)


@special("sym_storage_offset")
def _storage_offset(input):
    return input.storage_offset()


for _name in ("and", "or", "xor"):
    SPECIAL[f"__{_name}__"] = getattr(adjoin, f"bitwise_{_name}")
    SPECIAL[f"__i{_name}__"] = getattr(Tensor, f"bitwise_{_name}_")
for _name, _way in (("l", "left"), ("r", "right")):
    SPECIAL[f"__{_name}shift__"] = getattr(adjoin, f"bitwise_{_way}_shift")
SPECIAL["sym_is_contiguous"] = lambda input, *more: input.is_contiguous()
SPECIAL["_shape_as_tensor"] = lambda input: adjoin.tensor(list(input.shape))
SPECIAL["zero"] = adjoin.zeros_like
SPECIAL["numpy_T"] = lambda input: input.permute(*range(input.dim())[::-1])
SPECIAL["frobenius_norm"] = lambda input, dim=None, keepdim=False: adjoin.sqrt(adjoin.sum(input * input, dim, keepdim))
SPECIAL["native_dropout"] = lambda input, p, train: (
    F.dropout(input, p, bool(train)),
    adjoin.ones_like(input, dtype=adjoin.bool),
)
SPECIAL["floordiv"] = lambda a, b: a // b
SPECIAL["__round_to_zero_floordiv"] = lambda a, b: (
    math.trunc(a / b) if abs(a) < 1 << 52 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
)

from . import _aten_layers  # noqa: E402, F401
