"""adjoin._other_forms: calls that no schema takes and PyTorch understands; asked where a call fits no overload.

Numbers among the tensors, as older programs have them: ``x.add_(0.5, y)`` is ``x.add_(y, alpha=0.5)``. Indices as a tensor:
``tensor_split(x, indices)``. ``stable=None``. Lists of numbers for subscripts: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
"""

import warnings

from . import _C

_SCALED = {"add": ("alpha", 2), "sub": ("alpha", 2), "addcmul": ("value", 3), "addcdiv": ("value", 3)}
_PRODUCTS = ("addmm", "addmv", "addr", "addbmm", "baddbmm")


def _number(value):
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _in_todays_places(name, args):
    """(tensors, numbers by name), or None where it is no such form."""
    if name in _SCALED:
        word, tensors = _SCALED[name]
        if len(args) == tensors + 1 and _number(args[1]):
            return (args[0], *args[2:]), {word: args[1]}
    elif name in _PRODUCTS:
        numbers = [a for a in args if _number(a)]
        tensors = tuple(a for a in args if not _number(a))
        if len(tensors) == 3 and len(numbers) in (1, 2) and not any(map(_number, args[-2:])):
            return tensors, dict(zip(("beta", "alpha"), numbers, strict=False))
    return None


def _of_an_older_program(op, args, kwargs):
    name = op.__name__
    found = _in_todays_places(name.removesuffix("_"), args)
    if found is None:
        return NotImplemented
    tensors, numbers = found
    warnings.warn(
        f"This overload of {name} is deprecated: give {' and '.join(numbers)} by name, behind the tensors",
        stacklevel=3,
    )
    return op(*tensors, **{**kwargs, **numbers})


def _split_by_a_tensor(op, args, kwargs):
    words = ("input", "tensor_indices_or_sections", "dim")
    given = dict(zip(words, args, strict=False)) | kwargs
    at = given.pop("tensor_indices_or_sections", given.pop("indices_or_sections", None))
    if not isinstance(at, _C.Tensor) or not {"input"} <= set(given) <= {"input", "dim"}:
        return NotImplemented
    if at.dtype is not _C.int64 or at.dim() > 1:
        raise RuntimeError(
            "tensor_split: expected indices or sections of dtype long and of one dimension at most, they are "
            f"{at.dtype} of shape {list(at.shape)}"
        )
    return op(given["input"], at.tolist(), given.get("dim", 0))


def _sorted_either_way(op, args, kwargs):
    if kwargs.get("stable", False) is not None:
        return NotImplemented
    return op(*args, **{**kwargs, "stable": False})


def _letter(n):
    if n is ...:
        return "..."
    if not isinstance(n, int) or not 0 <= n < 52:
        raise ValueError(f"einsum: subscripts of a list are Ellipsis or numbers from 0 to 51, one is {n!r}")
    return chr(ord("A") + n if n < 26 else ord("a") + n - 26)


def _einsum_of_lists(op, args, kwargs):
    """einsum with a list of numbers behind each tensor, and one for the result."""
    if kwargs or len(args) < 2 or not isinstance(args[0], _C.Tensor):
        return NotImplemented
    tensors, lists = args[0 : len(args) - len(args) % 2 : 2], args[1::2]
    if not all(isinstance(t, _C.Tensor) for t in tensors) or not all(isinstance(n, (list, tuple)) for n in lists):
        return NotImplemented
    equation = ",".join("".join(map(_letter, numbers)) for numbers in lists)
    if len(args) % 2:
        equation += "->" + "".join(map(_letter, args[-1]))
    return op(equation, list(tensors))


_KNOWN = dict.fromkeys((*_SCALED, *_PRODUCTS), _of_an_older_program) | {
    "tensor_split": _split_by_a_tensor, "sort": _sorted_either_way, "argsort": _sorted_either_way,
    "einsum": _einsum_of_lists,
}  # fmt: skip


def call(op, args, kwargs):
    """What the call means; NotImplemented where it is a mistake."""
    known = _KNOWN.get(op.__name__.removesuffix("_"))
    return known(op, args, kwargs) if known else NotImplemented
