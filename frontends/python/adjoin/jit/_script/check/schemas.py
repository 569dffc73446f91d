"""adjoin.jit._script.check.schemas: what an op takes and gives, as its schemas say it."""

import functools
import re

from .known import BOOL, DEVICE, DTYPE, FLOAT, INT, NONE, NUMBERS, STR, TENSOR, fits, list_of, options

_RESULTS = {"Tensor": TENSOR, "bool": BOOL, "int": INT, "float": FLOAT, "Tensor[]": list_of(TENSOR), "()": NONE}
_TAKEN = {
    "Tensor": (TENSOR,), "Operand": (TENSOR, *NUMBERS), "Scalar": (TENSOR, *NUMBERS), "float": (TENSOR, *NUMBERS),
    "int": (INT, BOOL, TENSOR), "size": (INT, BOOL, TENSOR), "dim": (INT, BOOL, TENSOR, STR), "bool": (BOOL, INT, TENSOR),
    "str": (STR,), "dtype": (DTYPE, INT), "device": (DEVICE, STR, INT),
}  # fmt: skip


def _plain(text):
    """Tensor(a)? and Tensor<int64> without what says more of it."""
    return re.sub(r"\(a!?\)|<\w+>", "", text)


@functools.lru_cache(maxsize=1024)
def result_of(op):
    """The type of what an op gives; None where its schemas do not agree."""
    found = set()
    for schema in getattr(op, "schemas", ()):
        text = _plain(schema.rpartition(" -> ")[2])
        found.add(None if text.startswith("(") and text != "()" else _RESULTS.get(text))
    return found.pop() if len(found) == 1 else None


@functools.lru_cache(maxsize=1024)
def parameters(op):
    """[(kind, name)] of the arguments by place, where an op has one schema; None: it has several."""
    schemas = getattr(op, "schemas", ())
    if len(schemas) != 1:
        return None
    inside = schemas[0][schemas[0].index("(") + 1 : schemas[0].rindex(") ->")]
    found = []
    for part in re.split(r", (?![^\[(]*[\])])", inside):
        if part == "*":
            break
        kind, _, name = _plain(part).partition(" ")
        found.append((kind, name.partition("=")[0]))
    return found


def takes(kind, t):
    """May a value of the type stand for a parameter of this kind?"""
    if t is None:
        return True
    base = kind.removesuffix("?")
    if t == NONE or NONE in options(t):
        if base == kind:
            return False
        return all(takes(base, x) for x in options(t) if x != NONE)
    if t.python is not None:
        return True
    if base.endswith("]"):
        inner = base.partition("[")[0]
        if inner == "Tensor":
            return t.name == "Tuple" or t.name == "List" and fits(t.of[0], TENSOR)
        return t.name in ("List", "Tuple") or t in (INT, BOOL, FLOAT, TENSOR)
    return base not in _TAKEN or all(any(fits(x, wanted) for wanted in _TAKEN[base]) for x in options(t))
