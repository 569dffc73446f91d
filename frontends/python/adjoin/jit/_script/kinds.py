"""adjoin.jit._script.kinds: annotations as texts: Optional[List[int]]."""

import inspect
import types
import typing

import adjoin

from ...nn.modules.module import Module
from .source import comments_of

_PLAIN = {
    int: "int", float: "float", bool: "bool", str: "str", complex: "complex", type(None): "None", None: "None",
    list: "List", tuple: "Tuple", dict: "Dict", typing.Any: "Any", typing.List: "List", typing.Dict: "Dict",  # noqa: UP006
    typing.Tuple: "Tuple",  # noqa: UP006
}  # fmt: skip


def kind_of(annotation):
    """The text of an annotation; "" where it says nothing that a program checks."""
    if isinstance(annotation, (typing.TypeVar, str)) or annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, typing.Hashable) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        parts = [kind_of(a) for a in args]
        if not all(parts):
            return ""
        if "None" in parts:
            rest = [p for p in parts if p != "None"]
            return f"Optional[{rest[0] if len(rest) == 1 else 'Union[' + ', '.join(rest) + ']'}]"
        return f"Union[{', '.join(parts)}]"
    if origin in (list, dict, tuple):
        name = {list: "List", dict: "Dict", tuple: "Tuple"}[origin]
        parts = ["..." if a is ... else kind_of(a) or "Any" for a in args]
        return f"{name}[{', '.join(parts)}]" if parts else name
    if origin in (typing.Final, typing.Annotated):
        return kind_of(args[0])
    if isinstance(annotation, type):
        if issubclass(annotation, adjoin.Tensor):
            return "Tensor"
        if annotation is adjoin.dtype:
            return "dtype"
        if annotation is adjoin.device:
            return "device"
        if issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
            return annotation.__name__
        if issubclass(annotation, Module):
            return ""
    return ""


COMMON = {
    "Tensor": adjoin.Tensor, **{name: getattr(typing, name) for name in ("List", "Dict", "Tuple", "Optional", "Union", "Any")}
}  # fmt: skip  # what annotations may name anywhere


def hints_of(function, names):
    """Annotations by the name of the parameter; names: what the function sees. Those that cannot be read are left out."""
    found = {}
    for name, value in {**getattr(function, "__annotations__", {}), **comments_of(function)}.items():
        if isinstance(value, str):
            try:
                value = eval(value, {**COMMON, **names})
            except Exception:  # an annotation that only a type checker can read says nothing here
                continue
        found[name] = value
    return found


# What isinstance asks for; a class of the program is asked for by its name there.
def type_names(wanted):
    if isinstance(wanted, (tuple, list)):
        return [name for w in wanted for name in type_names(w)]
    if isinstance(wanted, types.UnionType):
        return [name for w in typing.get_args(wanted) for name in type_names(w)]
    if wanted is range:
        return ["range"]
    text = kind_of(wanted)
    return [text] if text else None
