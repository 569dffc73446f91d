"""adjoin.jit._script.check.known: types of values, as far as they are known while a function is compiled. None: not known."""

import dataclasses
import enum
import inspect
import types
import typing

import adjoin

from ...._names import is_ours
from ....nn.modules.module import Module


@dataclasses.dataclass(frozen=True)
class Type:
    """int, List[int], a class: what a value is."""

    name: str
    of: tuple = ()
    python: object = None  # of a class: the class

    def __str__(self):
        if self.name == "Union" and NONE in self.of and len(self.of) == 2:
            return f"Optional[{next(said(t) for t in self.of if t != NONE)}]"
        return f"{self.name}[{', '.join(map(said, self.of))}]" if self.of else self.name


def said(t):
    return "Any" if t is None else str(t)


TENSOR, INT, FLOAT, BOOL, STR, COMPLEX = map(Type, ("Tensor", "int", "float", "bool", "str", "complex"))
NONE, DEVICE, DTYPE = map(Type, ("None", "device", "dtype"))
NUMBERS = (INT, FLOAT, COMPLEX, BOOL)
_PLAIN = {
    int: INT, float: FLOAT, bool: BOOL, str: STR, complex: COMPLEX, type(None): NONE, None: NONE,
    adjoin.device: DEVICE, adjoin.dtype: DTYPE,
}  # fmt: skip
PYTHON = {t.name: cls for cls, t in _PLAIN.items() if cls is not None} | {"List": list, "Dict": dict, "Tuple": tuple}
_BARE = {
    list: "List", dict: "Dict", tuple: "Tuple", typing.List: "List", typing.Dict: "Dict",  # noqa: UP006
    typing.Tuple: "Tuple", typing.Optional: "Optional",  # noqa: UP006
}  # fmt: skip
_INSIDE = {"List": "int", "Dict": "int, int", "Tuple": "int, int", "Optional": "int"}


class Bad(Exception):
    """An annotation that no program can have."""


def union(parts):
    """One of the parts; not known, if one of them is not."""
    flat = []
    for t in parts:
        if t is None:
            return None
        flat += [x for x in (t.of if t.name == "Union" else (t,)) if x not in flat]
    flat = [x for i, x in enumerate(flat) if x not in flat[:i]]
    return flat[0] if len(flat) == 1 else Type("Union", tuple(flat))


def optional(t):
    return union((t, NONE))


def without_none(t):
    return union(x for x in t.of if x != NONE) if may_be_none(t) else t


def may_be_none(t):
    return t is not None and t.name == "Union" and NONE in t.of


def list_of(t=None):
    return Type("List", (t,))


def tuple_of(*parts):
    return Type("Tuple", tuple(parts))


def dict_of(key=None, value=None):
    return Type("Dict", (key, value))


def options(t):
    """The types that a value of this one may have."""
    return () if t is None else t.of if t.name == "Union" else (t,)


def bare(annotation):
    """The name of a List, Dict, Tuple or Optional without what is inside; "": it is none."""
    return _BARE.get(annotation, "") if isinstance(annotation, typing.Hashable) else ""


def typed(annotation):
    """The type that an annotation says."""
    if annotation is inspect.Parameter.empty or isinstance(annotation, (str, typing.TypeVar)):
        return None
    if name := bare(annotation):
        raise Bad(f"{name} says nothing of what is inside; write {name}[{_INSIDE[name]}] or what it holds")
    if isinstance(annotation, typing.Hashable) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return union(map(typed, args))
    if origin is list:
        return list_of(typed(args[0]))
    if origin is dict:
        key = typed(args[0])
        if key is not None and key.name not in ("int", "float", "complex", "str", "bool", "Tensor", "device", "enum"):
            raise Bad(f"the keys of a Dict are int, float, complex, str, bool or Tensor, not {key}")
        return dict_of(key, typed(args[1]))
    if origin is tuple:
        if ... in args:
            return None
        return Type("Tuple", tuple(map(typed, args)))
    if origin in (typing.Final, typing.Annotated):
        return typed(args[0])
    if isinstance(annotation, type):
        if issubclass(annotation, adjoin.Tensor):
            return TENSOR
        if not issubclass(annotation, Module) and not getattr(annotation, "__torch_script_interface__", False):
            return of_class(annotation)
    return None


def of_class(cls):
    if cls.__module__ in ("builtins", "typing", "collections") or is_ours(cls.__module__):
        return None
    if issubclass(cls, enum.Enum):
        return Type("enum", (), cls)
    return Type(cls.__name__, (), cls)


def of_value(o):
    """The type of a constant or of a module's attribute."""
    if isinstance(o, adjoin.Tensor):
        return TENSOR
    if isinstance(o, (list, tuple)) and not hasattr(o, "_fields") and type(o) in (list, tuple):
        parts = [of_value(x) for x in o]
        if isinstance(o, tuple):
            return tuple_of(*parts)
        return list_of(parts[0] if parts and all(p == parts[0] for p in parts) else None)
    if type(o) is dict:
        keys, values = {of_value(k) for k in o}, {of_value(v) for v in o.values()}
        return dict_of(keys.pop() if len(keys) == 1 else None, values.pop() if len(values) == 1 else None)
    if isinstance(o, enum.Enum):
        return Type("enum", (), type(o))
    return _PLAIN.get(type(o))


def fits(value, wanted):
    """May a value of this type stand where the other is wanted?"""
    if value is None or wanted is None or value == wanted:
        return True
    if value.name == "Union":
        return all(fits(t, wanted) for t in value.of)
    if wanted.name == "Union":
        return any(fits(value, t) for t in wanted.of)
    if wanted == INT and value == BOOL:
        return True
    if value.name == wanted.name in ("List", "Dict"):
        return all(alike(a, b) for a, b in zip(value.of, wanted.of, strict=True))
    if value.name == wanted.name == "Tuple":
        return len(value.of) == len(wanted.of) and all(map(fits, value.of, wanted.of))
    if isinstance(value.python, type) and isinstance(wanted.python, type):
        return issubclass(value.python, wanted.python)
    if isinstance(value.python, type) and issubclass(value.python, tuple) and wanted.name == "Tuple":
        return True
    return False


def alike(a, b):
    """Are both the same, as far as they are known?"""
    if a is None or b is None or a == b:
        return True
    return a.name == b.name and len(a.of) == len(b.of) > 0 and all(map(alike, a.of, b.of))


def joined(a, b):
    """The type of a value that is of one or the other; (type, False): there is none."""
    if a is None or b is None:
        return None, True
    if fits(a, b):
        return b, True
    if fits(b, a):
        return a, True
    if NONE in (a, b) or may_be_none(a) or may_be_none(b):
        inner, well = joined(without_none(a) if a != NONE else b, without_none(b) if b != NONE else a)
        return (optional(inner), True) if well else (None, False)
    if a.name == b.name == "Tuple" and len(a.of) == len(b.of):
        parts = [joined(x, y) for x, y in zip(a.of, b.of, strict=True)]
        return Type("Tuple", tuple(p for p, _ in parts)), all(well for _, well in parts)
    return None, False
