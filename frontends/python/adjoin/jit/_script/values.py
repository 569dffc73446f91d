"""adjoin.jit._script.values: named tuples and instances of scripted classes, on their way into a program and back."""

import enum
from collections import namedtuple

from ... import return_types
from ...nn.modules.module import Module

NAMED, OBJECT = 3, 4
types = {}  # the Python classes that scripted programs know, by their names there


def described(o):
    """(kind, name, fields) of a value that is no plain one."""
    if isinstance(o, enum.Enum):
        types[type(o).__name__] = type(o)  # it may come back
        return NAMED, "enum " + type(o).__name__, {"name": o.name, "value": o.value}
    if isinstance(o, tuple) and hasattr(type(o), "_fields"):
        return NAMED, type(o).__name__, o._asdict()
    if isinstance(o, tuple) and hasattr(type(o), "n_fields"):  # the results of an op
        return NAMED, type(o).__name__, dict(zip(type(o).__match_args__, o, strict=True))
    for name, cls in types.items():
        if type(o) is cls:
            return OBJECT, name, dict(vars(o))
    for plain in (int, float, str):
        if isinstance(o, plain):
            raise TypeError(f"a scripted program takes no {type(o).__name__}; give a {plain.__name__}({o!r})")
    raise TypeError(
        f"a scripted program takes no {type(o).__name__}: tensors, numbers, texts, None, lists, tuples, dictionaries, and "
        "instances of classes that it knows"
    )


def made(kind, name, fields):
    """The Python value: of the class that has the name, if it is known here."""
    name = name.removeprefix("enum ")
    cls = types.get(name)
    if kind == NAMED:
        if cls is not None and issubclass(cls, enum.Enum):
            return cls(fields["value"])
        if cls is not None and hasattr(cls, "_fields"):
            return cls(*fields.values())
        if cls is None and (cls := getattr(return_types, name, None)) is not None:
            return cls(tuple(fields.values()))
        return namedtuple(name, fields)(*fields.values())
    if cls is not None and issubclass(cls, Module):
        raise AttributeError(f"'{name}' is a module, which stays inside of a scripted program")
    if cls is None:
        cls = type(name, (), {"__repr__": lambda self: f"{name}({vars(self)})"})
    o = object.__new__(cls)
    vars(o).update(fields)
    return o
