"""adjoin.jit._script.check: types are followed through a function before it is written: what cannot be right is refused at its line.

A type is known where an annotation, a constant, an op or a function says it; what is not known is let through, and checked when the
program runs."""

import ast
import dataclasses
import inspect
import types

from ...._names import is_ours
from ..kinds import hints_of
from ..names import seen_by
from ..source import source_of
from ..statements import assigned, place_of
from . import members
from .flow import Flow
from .known import Bad, typed


class Types:
    """What is known of the functions and classes of a program."""

    def __init__(self, unit):
        self.unit, self.results, self.classes = unit, {}, {}

    def flow(self, function, owner):
        tree, first = source_of(function)
        if not isinstance(tree, ast.FunctionDef):
            return None
        return Flow(
            self.unit, function, tree, place_of(function, first), owner, seen_by(function, owner), assigned(tree)
        )

    def result(self, function, owner):
        """The type of what a function gives, which is followed if it is new; None: not known."""
        key = function, owner
        if key not in self.results:
            self.results[key] = None  # while it is followed
            if _is_ours(function) or getattr(function, "_torchscript_modifier", ""):
                self.results[key] = _said(function)
            elif isinstance(function, types.FunctionType):
                try:
                    flow = self.flow(function, owner)
                except (OSError, SyntaxError):
                    return None
                if flow is not None:
                    self.results[key] = _said(function)  # where it calls itself
                    self.results[key] = flow.run()
        return self.results[key]

    def said(self, function, owner):
        """The result's type as an annotation says it; None: not known."""
        found = self.results.get((inspect.unwrap(function), owner))
        return None if found is None else str(found)

    def fields(self, cls):
        """{name: type} of the attributes of a plain class; None: they are not known."""
        if cls not in self.classes:
            self.classes[cls] = None  # while it is looked at
            self.classes[cls] = self._fields(cls)
        return self.classes[cls]

    def _fields(self, cls):
        if (
            hasattr(cls, "__getattr__")
            or _is_ours(cls)
            or any(k.__init__ is not object.__init__ for k in cls.__mro__[1:-1])
        ):
            return None
        found = {}
        for name, hint in members.class_hints(cls).items():
            try:
                found[name] = typed(hint)
            except Bad:
                found[name] = None
        init = vars(cls).get("__post_init__" if dataclasses.is_dataclass(cls) else "__init__")
        if not isinstance(init, types.FunctionType):
            return found
        try:
            flow = self.flow(init, cls)
        except (OSError, SyntaxError):
            return None
        if flow is None:
            return None
        flow.run()
        return {**flow.attributes, **found}


def _is_ours(o):
    return is_ours(getattr(o, "__module__", ""))


def _said(function):
    """What the annotation of a function's result says."""
    try:
        return typed(hints_of(function, seen_by(function)).get("return", ""))
    except (Bad, AttributeError):
        return None
