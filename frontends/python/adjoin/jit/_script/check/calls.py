"""adjoin.jit._script.check.calls: the types of what calls give; arguments that a function cannot take are refused."""

import ast
import builtins
import inspect
import types as python

import adjoin

from .... import jit
from ...._names import is_ours
from ....nn.modules.module import Module
from .. import names
from ..kinds import hints_of
from . import members
from .schemas import parameters, result_of, takes
from .known import (
    BOOL, FLOAT, INT, NONE, NUMBERS, STR, TENSOR, dict_of, fits, list_of, may_be_none, of_class, optional, options, said, tuple_of, without_none,
)  # fmt: skip


class Calls:
    def arguments(self, node):
        """Types of the arguments, by place and by name; None: some are not known now."""
        args = [self.type(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        named = {k.arg: self.type(k.value) for k in node.keywords}
        if None in named or any(isinstance(a, ast.Starred) for a in node.args):
            return None
        return args, named

    def of_Call(self, node, hint=None):
        if isinstance(node.func, ast.Attribute):
            base = node.func.value
            if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super":
                self.arguments(node)
                return None
            if isinstance(base, ast.Name) and base.id == self.self_name and self.owner is not None:
                return self.own_call(node)
            of = self.look(base)
            if of is None or not hasattr(of, "value"):
                return self.method(of, node, hint)
            if isinstance(of.value, adjoin.Tensor):
                return self.method(TENSOR, node, hint)
        found = self.look(node.func)
        if not hasattr(found, "value"):
            self.arguments(node)
            return None
        return self.known_call(found.value, node, hint)

    def own_call(self, node):
        name, unit = node.func.attr, self.unit
        if issubclass(self.owner, Module):
            instances = [m for m in unit.modules if type(m) is self.owner]
            there = [members.held(m, name) for m in instances]
            if instances and not any(there) and not hasattr(self.owner, name) and not self.guarded(node):
                self.refuse(node, f"the module {self.owner.__name__} has no method '{name}'")
            parts = {type(h[0]) for h in there if h and isinstance(h[0], Module)}
            if any(there) or hasattr(Module, name):
                given = self.arguments(node)
                found = parts.pop() if len(parts) == 1 and all(there) else None
                method = unit.method_of(found, "forward") if found is not None else None
                return self.source_call(method[0], found, given, node) if method is not None else None
            method = unit.method_of(self.owner, name)
        else:
            held = inspect.getattr_static(self.owner, name, None)
            if held is None and not self.guarded(node):
                fields = unit.types_of.fields(self.owner)
                if fields is not None and name not in fields:
                    self.refuse(node, f"a {self.owner.__name__} has no method '{name}'")
            method = (held, self.owner) if isinstance(held, python.FunctionType) else None
        given = self.arguments(node)
        return self.source_call(method[0], self.owner, given, node) if method is not None else None

    def source_call(self, function, owner, given, node):
        """A call of a function with source: its parameters and annotations are held to."""
        function = self.unit.python_of(function)
        if function is None or owner is not None and not isinstance(owner, type):
            return None
        if given is not None and not is_ours(function.__module__):
            args, named = given
            try:
                bound = inspect.signature(function).bind(*([None] if owner is not None else []), *args, **named)
            except TypeError as e:
                self.refuse(node, f"{function.__name__}(): {e}")
            hints = hints_of(function, names.seen_by(function))
            kinds = inspect.signature(function).parameters
            for name, t in bound.arguments.items():
                if name not in hints or kinds[name].kind in (
                    inspect.Parameter.VAR_POSITIONAL,
                    inspect.Parameter.VAR_KEYWORD,
                ):
                    continue
                wanted = self.annotation(node, hints[name])
                if not fits(t, wanted) and not (t in NUMBERS and wanted in NUMBERS) and not self.converts(t, wanted):
                    self.refuse(node, f"{function.__name__}(): '{name}' is a {said(wanted)}, and a {said(t)} is given")
        return self.unit.types_of.result(function, owner)

    def converts(self, t, wanted):
        """Is it turned into the other where a function begins?"""
        if t.name == "Tuple" and any(w.name == "List" for w in options(wanted)):
            return True
        return (
            wanted in NUMBERS and t == TENSOR or t == STR and wanted is not None and wanted.name in ("device", "Union")
        )

    def known_call(self, f, node, hint):
        if f is jit.annotate:
            if len(node.args) == 2:
                wanted = self.annotation(node, self.evaluated(node.args[0]))
                self.assigned_to(wanted, self.type(node.args[1], wanted), node, "annotate()")
                return wanted
            return None
        if f in (isinstance, jit.isinstance, hasattr):
            return BOOL
        if f is jit._unwrap_optional and len(node.args) == 1:
            return without_none(self.type(node.args[0]))
        if f is getattr or f is setattr:
            return None
        if (op := names.op_of(f)) is not None:
            return self.op_call(names.as_op(f), op, node)
        builtin = (
            names.builtin_of(f) if isinstance(f, (python.BuiltinFunctionType, type, python.FunctionType)) else None
        )
        if builtin is not None:
            return self.builtin_call(builtin, node, hint)
        given = self.arguments(node)
        if isinstance(f, type):
            return self.make(f, given, node)
        if isinstance(f, python.FunctionType) or hasattr(f, "_scripted_from"):
            function = self.unit.python_of(f)
            if function is not None:
                return self.source_call(function, None, given, node)
        return None

    def make(self, cls, given, node):
        if cls.__module__ in vars(builtins) or issubclass(cls, (Module, BaseException)):
            return None
        made = of_class(cls)
        if made is None or given is None:
            return made
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            args, named = given
            hints = members.class_hints(cls)
            for name, t in [*zip(cls._fields, args, strict=False), *named.items()]:
                if name in hints:
                    wanted = self.annotation(node, hints[name])
                    if not fits(t, wanted) and not (t in NUMBERS and wanted in NUMBERS):
                        self.refuse(
                            node, f"{cls.__name__}: the field '{name}' is a {said(wanted)}, and a {said(t)} is given"
                        )
        elif made.name != "enum" and isinstance(vars(cls).get("__init__"), python.FunctionType):
            init = vars(cls)["__init__"]
            if init.__code__.co_filename != "<string>":
                self.source_call(init, cls, given, node)
        return made

    def op_call(self, f, op, node, first=()):
        """A call of an op; first: the tensor whose method it is."""
        given, wanted = self.arguments(node), parameters(f)
        if given is not None and wanted is not None:
            kinds = {name: kind for kind, name in wanted}
            args = [*zip((kind for kind, _ in wanted[len(first) :]), given[0], node.args, strict=False)]
            args += [(kinds[k.arg], given[1][k.arg], k.value) for k in node.keywords if k.arg in kinds]
            for kind, t, a in args:
                if kind == "Tensor[]" and t == TENSOR and kind == wanted[-1][0]:  # einsum("i,i", x, y)
                    continue
                if not takes(kind, t):
                    told = "ask 'is not None' before" if may_be_none(t) and takes(kind, without_none(t)) else ""
                    self.refuse(a, f"{op}(): '{ast.unparse(a)}' is a {said(t)}, and a {kind} is wanted", told)
        return result_of(f)

    def builtin_call(self, name, node, hint):
        given = self.arguments(node)
        args = given[0] if given is not None else []
        first = args[0] if args else None
        if name == "len" and first is not None and (first in NUMBERS or first == NONE or may_be_none(first)):
            self.refuse(node, f"len() of a {said(first)}")
        if name in members.NUMBER_OF and (
            may_be_none(first) or first is not None and first.name in ("List", "Dict", "Tuple")
        ):
            if name != "bool":
                self.refuse(node, f"{name}() of a {said(first)}")
        if name in ("range", "range_"):
            for t in args:
                if t is not None and t not in (INT, BOOL, TENSOR) and not t.python:
                    self.refuse(node, f"range() of a {said(t)}")
            return list_of(INT)
        if name == "to_list":
            return hint if not args else list_of(self.element(first))
        if name == "to_dict":
            return hint or dict_of()
        if name == "sorted" and first is not None and first.name == "List":
            return first
        if name in ("min", "max", "abs", "sum", "round", "power", "divmod", "to_tuple", "complex"):
            if name == "abs" and first is not None and first not in NUMBERS and first != TENSOR and not first.python:
                self.refuse(node, f"abs() of a {said(first)}")
            return first if name == "abs" and first != BOOL else None
        if name == "enumerate":
            return list_of(tuple_of(INT, self.element(first)))
        if name == "zip":
            return list_of(tuple_of(*map(self.element, args))) if given is not None else None
        if name == "math.floor" and first == TENSOR:
            return INT
        return members.BUILTINS.get(name, FLOAT if name.startswith("math.") and name not in _WHOLE else None)

    def element(self, of):
        """The type of what a loop over it gives."""
        if of is None:
            return None
        if of.name == "List":
            return of.of[0]
        if of.name == "Dict":
            return of.of[0]
        if of.name == "Tuple":
            return of.of[0] if of.of and all(t == of.of[0] for t in of.of) else None
        return of if of in (STR, TENSOR) else None

    def method(self, of, node, hint):
        """A method of a value."""
        name, node.function = node.func.attr, None
        given = self.arguments(node) if not (of and of.name == "List" and name in ("append", "insert")) else None
        if of is None:
            return None
        if may_be_none(of) or of == NONE:
            self.refuse(
                node, f"'{ast.unparse(node.func.value)}' may be None, it is {said(of)}: '.{name}' is called",
                "ask 'is not None' before",
            )  # fmt: skip
        if of == TENSOR:
            found = getattr(adjoin.Tensor, name, None)
            if found is None:
                self.refuse(node, f"a Tensor has no method '{name}'")
            node.function = found if isinstance(found, python.FunctionType) else None  # the writer calls it
            if name == "size":
                return INT if node.args or node.keywords else list_of(INT)
            if name in members.TENSOR_METHODS:
                return members.TENSOR_METHODS[name]
            return self.op_call(found, name, node, (of,)) if isinstance(found, names.METHOD) else None
        if of == STR:
            if name not in members.TEXT_METHODS:
                self.refuse(node, f"a str has no method '{name}' in a program" if not hasattr(str, name) else
                            f"'.{name}' of a str is not in the subset that is scripted")  # fmt: skip
            return members.TEXT_METHODS[name]
        if of.name == "List":
            return self.list_method(of, name, node)
        if of.name == "Dict":
            return self.dict_method(of, name, node, given)
        if of in NUMBERS or of.name == "Tuple" and name not in ("count", "index"):
            self.refuse(node, f"a {said(of)} has no method '{name}'")
        if of.python is not None and of.name != "enum":
            return self.instance_call(of, name, given, node)
        return None

    def instance_call(self, of, name, given, node):
        held = inspect.getattr_static(of.python, name, None)
        if held is None:
            fields = self.unit.types_of.fields(of.python)
            if fields is not None and name not in fields:
                self.refuse(node, f"a {of.python.__name__} has no method '{name}'")
            return None
        if isinstance(held, python.FunctionType) and not hasattr(of.python, "_fields"):
            return self.source_call(held, of.python, given, node)
        return None

    def list_method(self, of, name, node):
        if name not in members.LIST_METHODS:
            self.refuse(node, f"a List has no method '{name}'")
        inner = of.of[0]
        if name in ("append", "insert"):
            if len(node.args) != (1 if name == "append" else 2) or node.keywords:
                self.refuse(node, f"'.{name}' of a List takes {1 if name == 'append' else 2} arguments")
            t = self.type(node.args[-1], inner)
            if not fits(t, inner):
                self.refuse(node, f"a {said(t)} is put into a {said(of)}")
        return {"pop": inner, "index": INT, "count": INT, "copy": of}.get(name, NONE)

    def dict_method(self, of, name, node, given):
        if name not in members.DICT_METHODS:
            self.refuse(node, f"a Dict has no method '{name}'")
        key, value = of.of
        if name in ("get", "pop", "setdefault") and given is not None and given[0] and not fits(given[0][0], key):
            self.refuse(node, f"a {said(of)} is asked for a {said(given[0][0])}")
        if name == "get":
            if len(node.args) == 2:
                return value if fits(given and given[0][1], value) else None
            return optional(value)
        return {
            "keys": list_of(key), "values": list_of(value), "items": list_of(tuple_of(key, value)), "pop": value,
            "setdefault": value, "popitem": tuple_of(key, value), "copy": of,
        }.get(name, NONE)  # fmt: skip


_WHOLE = ("math.pow", "math.prod", "math.trunc", "math.floor", "math.ceil")
