"""adjoin.jit._script.check.members: what tensors, texts, lists and dictionaries have, and of which type."""

import inspect
import typing

from .known import BOOL, DEVICE, DTYPE, FLOAT, INT, NONE, STR, TENSOR, list_of, optional, options, tuple_of

TENSOR_ATTRIBUTES = {
    "shape": list_of(INT), "dtype": DTYPE, "device": DEVICE, "requires_grad": BOOL, "ndim": INT, "grad": optional(TENSOR),
    "T": TENSOR, "mT": TENSOR, "H": TENSOR, "data": TENSOR, "is_cuda": BOOL, "is_sparse": BOOL, "is_leaf": BOOL,
    "is_quantized": BOOL, "real": TENSOR, "imag": TENSOR, "itemsize": INT, "nbytes": INT,
}  # fmt: skip
TENSOR_METHODS = {  # of those that are no ops
    "dim": INT, "nelement": INT, "element_size": INT, "ndimension": INT, "storage_offset": INT, "get_device": INT,
    "is_contiguous": BOOL, "detach": TENSOR, "detach_": TENSOR, "to": TENSOR, "cpu": TENSOR, "cuda": TENSOR,
    **dict.fromkeys(
        "requires_grad_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_".split(), TENSOR),
}  # fmt: skip

TEXT_METHODS = {
    **dict.fromkeys(
        "upper lower swapcase title capitalize strip lstrip rstrip replace join format center ljust rjust zfill expandtabs "
        "casefold removeprefix removesuffix".split(), STR),
    **dict.fromkeys(
        "isupper islower isdigit isspace isalnum isalpha isdecimal isnumeric istitle isidentifier isprintable isascii startswith "
        "endswith".split(), BOOL),
    **dict.fromkeys("find rfind index rindex count".split(), INT), "split": list_of(STR), "rsplit": list_of(STR),
    "splitlines": list_of(STR), "partition": tuple_of(STR, STR, STR), "rpartition": tuple_of(STR, STR, STR),
}  # fmt: skip
LIST_METHODS = ("append", "extend", "insert", "remove", "pop", "clear", "index", "count", "sort", "reverse", "copy")
DICT_METHODS = ("keys", "values", "items", "get", "pop", "popitem", "setdefault", "update", "clear", "copy")

BUILTINS = {
    "len": INT, "int": INT, "float": FLOAT, "bool": BOOL, "str": STR, "repr": STR, "ord": INT, "chr": STR, "hex": STR,
    "bin": STR, "oct": STR, "print": NONE, "hasattr": BOOL, "tensor": TENSOR, "is_tensor": BOOL, "is_grad_enabled": BOOL, "get_default_dtype": DTYPE,
    "autocast_enabled": BOOL, "autocast_dtype": DTYPE,
    "numel": INT, "device": DEVICE, "any": BOOL, "all": BOOL, "hash": INT, "format": STR, "math.isnan": BOOL,
    "math.isinf": BOOL, "math.isfinite": BOOL, "math.floor": INT, "math.ceil": INT, "math.gcd": INT, "math.factorial": INT,
}  # fmt: skip
NUMBER_OF = ("int", "float", "bool", "complex")  # builtins that make a number of a number, a text or a tensor


def part_of(hint, name):
    """What is in a List, as a hint says it; None: it says nothing."""
    found = [t for t in options(hint) if t is not None and t.name == name]
    return found[0].of[0] if len(found) == 1 else None


def class_hints(cls):
    """Annotations in the body of a class and of those above it."""
    found = {}
    for k in reversed(cls.__mro__):
        for name, value in vars(k).get("__annotations__", {}).items():
            if not isinstance(value, str):
                found[name] = value
                continue
            module = inspect.getmodule(k)
            try:
                found[name] = eval(value, {**vars(typing), **vars(module)} if module else dict(vars(typing)))
            except Exception:  # only a type checker can read it
                continue
    return found


def held(module, name):
    """(value,) of an attribute of the instance or of its class; (): there is none."""
    for space in (module.__dict__, module._parameters, module._buffers, module._modules):
        if name in space:
            return (space[name],)
    value = inspect.getattr_static(type(module), name, None)
    return () if value is None or callable(value) or hasattr(value, "__get__") else (value,)
