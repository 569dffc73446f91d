"""adjoin.jit._script.unit: a program as it is collected: functions, classes, modules, and what they ask for."""

import ast
import dataclasses
import enum
import functools
import inspect
import types

import adjoin

from ...nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from ...nn.modules.module import Module
from .. import RecursiveScriptModule, ScriptModule
from .._code import LAYOUTS
from . import names
from .again import plain
from .check import Types
from .errors import NotSupportedError, Place, refuse
from .forms import FORMS, FUNCTIONS
from .hooked import hooked, with_own_methods
from .literals import NoLiteral, literal, quoted
from .source import source_of
from .statements import Writer, place_of

_OWN = frozenset((*vars(Module()), "_own"))
_BASES = (RecursiveScriptModule, ScriptModule, Module, object)
_PYTHONS = ("ignore", "unused", "copy_to_script_wrapper")  # marks of what programs cannot call
_CONTAINERS = (Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict)


def modifier(function):
    return getattr(function, "_torchscript_modifier", "")


class Class:
    """What a class of Python's is in the program."""

    def __init__(self, python, name):
        self.python, self.name = python, name
        self.methods, self.properties = {}, set()
        self.module = issubclass(python, Module)
        self.container = ""
        if issubclass(python, (ModuleList, Sequential, ParameterList)):
            self.container = "list"
        elif issubclass(python, (ModuleDict, ParameterDict)):
            self.container = "dict"


def fresh(value, text):
    """What makes such a value anew."""
    if type(value) is list:
        return f"$list({', '.join(map(text, value))})"
    if type(value) is dict:
        return f"$dict({', '.join(text(x) for pair in value.items() for x in pair)})"
    return f"$copy({text(value)})"


def is_plain(cls):
    """Is it a class of methods with source, which a program can have?"""
    return not issubclass(cls, (Module, tuple, enum.Enum, BaseException)) and not getattr(
        cls, "__torch_script_interface__", False
    )


class Unit:
    size_type = adjoin.Size
    opaque = (types.SimpleNamespace,)

    def __init__(self, name):
        self.name = name
        self.lines, self.line_numbers = [], {}
        self.functions, self.texts, self.used = {}, {}, set()
        self.classes, self.types, self.kinds_seen = {}, {}, {}
        self.asked, self.hard, self.written = set(), set(), set()
        self.waiting, self.extra_classes, self.pythons = [], [], set()
        self.objects, self.object_ids, self.class_of = [], {}, {}
        self.weights, self.weight_names = [], {}  # (name, tensor, constant)
        self.types_of = Types(self)
        self.nowhere = Place("jit.script", 1, name)

    # Names and lines.
    def line(self, text):
        if text not in self.line_numbers:
            self.lines.append(text)
            self.line_numbers[text] = len(self.lines)
        return self.line_numbers[text]

    def fresh(self, wanted):
        base = "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "_" for c in wanted)
        base = base.replace("_locals_.", "").strip(".") or "f"
        base = base if not base[0].isdigit() else "f" + base
        name, n = base, 1
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name

    def ask(self, name, hard=False):
        """Somebody calls a method or reads an attribute of this name, of whatever object."""
        self.asked.add(name)
        if hard:
            self.hard.add(name)

    def note_type(self, hint, module):
        """A class that an annotation names may stand among the arguments and results."""
        from . import classes

        for t in [hint, *getattr(hint, "__args__", ())]:
            if isinstance(t, type) and (issubclass(t, tuple) and hasattr(t, "_fields") or issubclass(t, enum.Enum)):
                self.types[t.__name__] = t
            elif isinstance(t, type) and (t in classes or t.__module__ == module and is_plain(t)):
                self.klass(t, self.nowhere, None)

    # Functions.
    def python_of(self, f):
        """The Python function that is compiled where f is called."""
        f = getattr(f, "_scripted_from", f)
        if isinstance(f, functools.partial):
            return None
        if isinstance(f, (staticmethod, classmethod)):
            f = f.__func__
        f = inspect.unwrap(f) if callable(f) and not isinstance(f, (type, Module)) else f
        return FUNCTIONS.get(f, f) if isinstance(f, types.FunctionType) else None

    def form_of(self, method):
        """The form of a tensor's method that is Python's."""
        return FUNCTIONS.get(method) if method is not None else None

    def function(self, function, owner, place, node, defined_in=None, name=None):
        """The name of the function in the program; it is compiled if it is new."""
        key = (function, owner)
        if key in self.functions:
            return self.functions[key]
        wanted = name or (f"{self.classes[owner].name}.{function.__name__}" if owner else function.__name__)
        called = self.functions[key] = self.fresh(wanted)
        if modifier(function) in _PYTHONS:
            self.pythons.add(called)
            self.texts[called] = self.stub(called, function)
        else:
            self.waiting.append((called, function, owner, defined_in, place, node))
        return called

    def stub(self, called, function, message=None):
        """A function that raises: Python's code that a program cannot call."""
        message = message or (
            f"{function.__qualname__} is marked as {modifier(function)} and is Python's; a program cannot call it"
        )
        return f'fn {called}(*%args, **%named) {{\n  $raise("RuntimeError", {quoted(message)})\n}}'

    def compile_waiting(self):
        while self.waiting:
            called, function, owner, defined_in, place, node = self.waiting.pop(0)
            self.texts[called] = self.compiled(called, function, owner, defined_in, place, node)
            if not self.waiting:
                self.answer()

    def compiled(self, called, function, owner, defined_in, place, node):
        try:
            tree, first = source_of(function)
        except (OSError, TypeError):
            refuse(place, node, f"the source of '{function.__qualname__}' is not found", "define it in a file")
        where = place_of(function, first)
        if not isinstance(tree, ast.FunctionDef):
            refuse(where, tree, "a function that def defines is wanted", "write no lambda and no async def")
        writer = Writer(self, function, called, tree, where, owner, defined_in or owner)
        try:
            self.types_of.result(function, owner)
            return writer.text()
        except NotSupportedError as e:
            if called in self.soft:
                return self.stub(called, function, str(e))
            raise

    soft = frozenset()

    # Classes.
    def klass(self, cls, place, node):
        """The name of a class of Python's in the program."""
        if cls in self.classes:
            return self.classes[cls].name
        if issubclass(cls, Module):
            refuse(place, node, f"the module {cls.__name__} is made in a scripted function", "make it in __init__")
        if cls.__module__ in ("builtins", "collections", "typing"):
            refuse(place, node, f"'{cls.__name__}' is not in the subset that is scripted")
        found = self.register(cls)
        if dataclasses.is_dataclass(cls):
            self.dataclass_methods(found, cls)
        for name, function, where in self.own_functions(cls):
            code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
            if name in found.methods or (code is not None and code.co_filename == "<string>"):
                continue  # the dataclass's, which has no source
            self.add_method(found, name, function, where, place, node)
        return found.name

    def dataclass_methods(self, found, cls):
        """__init__, comparisons of a dataclass, which have no source; those that the class writes itself stay."""
        fields, params, lines = dataclasses.fields(cls), ["%self"], []

        def text(value):
            return literal(value, lambda o: self.known(o, None, None))

        for f in fields:
            name, made = f"%{f.name}", ""
            if f.default_factory is not dataclasses.MISSING:
                made = fresh(f.default_factory(), text)
            elif f.default is not dataclasses.MISSING:
                made = f"$copy({text(f.default)})"
            if f.init:
                params.append(name + (" = ..." if made else ""))
                if made:  # it is left out: each call makes a new one
                    lines += [
                        f"  %left_{f.name} = $is({name}, ...)",
                        f"  if %left_{f.name} {{",
                        f"    {name} = {made}",
                        "  }",
                    ]
            elif made:
                lines.append(f"  {name} = {made}")
            if f.init or made:
                lines.append(f"  $setattr(%self, {quoted(f.name)}, {name})")
        if hasattr(cls, "__post_init__"):
            lines.append("  .__post_init__(%self)")
        bodies = {"__init__": f"({', '.join(params)}) {{\n" + "\n".join(lines)}
        both = []
        for side in ("self", "other"):
            names = [f.name for f in fields if f.compare]
            both += [f"  %{side}_{n} = $getattr(%{side}, {quoted(n)})" for n in names]
            both.append(f"  %all_{side} = $tuple({', '.join(f'%{side}_{n}' for n in names)})")
        for op in ("eq", "lt", "le", "gt", "ge"):
            lines = [*both, f"  %found = ${op}(%all_self, %all_other)", "  return %found"]
            bodies[f"__{op}__"] = "(%self, %other) {\n" + "\n".join(lines)
        for name, body in bodies.items():
            if getattr(getattr(vars(cls).get(name), "__code__", None), "co_filename", "") == "<string>":
                called = found.methods[name] = self.fresh(f"{found.name}.{name}")
                self.texts[called] = f"fn {called}{body}\n}}"

    def register(self, cls):
        found = self.classes[cls] = Class(cls, self.fresh(cls.__name__))
        self.types[found.name] = cls
        return found

    def own_functions(self, cls):
        for name in dict.fromkeys(n for k in cls.__mro__ if k not in (object, Module) for n in vars(k)):
            for k in cls.__mro__:
                if name in vars(k):
                    if isinstance(vars(k)[name], (types.FunctionType, property)) and k is not object:
                        yield name, vars(k)[name], k
                    break

    def add_method(self, found, name, function, where, place, node):
        if isinstance(function, property):
            found.properties.add(name)
            if function.fset is not None:
                setter = self.function(function.fset, found.python, place, node, where, f"{found.name}.{name}.setter")
                found.methods[f"{name}.setter"] = setter
            function = function.fget
        if modifier(function) not in _PYTHONS:
            function = inspect.unwrap(function)
        found.methods[name] = self.function(function, found.python, place, node, where)

    def method_of(self, cls, name):
        """(function, the class that has it) of a module's class; the forms of the package's own layers come first."""
        for k in cls.__mro__:
            if k in _BASES:
                return None
            if name in FORMS.get(k, {}):
                return FORMS[k][name], k
            if k in _CONTAINERS:
                return None
            if name in vars(k):
                f = vars(k)[name]
                return (f, k) if isinstance(f, (types.FunctionType, property)) else None
        return None

    def method_after(self, cls, after, name):
        mro = list(cls.__mro__)
        for k in mro[mro.index(after) + 1 :]:
            if k in _BASES:
                return None
            if name in FORMS.get(k, {}):
                return FORMS[k][name], k
            if isinstance(vars(k).get(name), types.FunctionType):
                return vars(k)[name], k
        return None

    def answer(self):
        """Modules' classes get the methods that somebody has asked for."""
        for cls, found in list(self.classes.items()):
            if not found.module:
                continue
            for name in sorted(self.asked):
                if name in found.methods or (method := self.method_of(cls, name)) is None:
                    continue
                if name not in self.hard and not isinstance(method[0], property):
                    self.soft = self.soft | {f"{found.name}.{name}"}
                self.add_method(found, name, *method, self.nowhere, None)

    def varies(self, cls, name):
        return any(name in vars(m) for m in self.modules if type(m) is cls)

    modules = ()

    # Modules and tensors.
    def module(self, module, path=""):
        """The text of the object that a module is: &3."""
        if id(module) in self.object_ids:
            return f"&{self.object_ids[id(module)]}"
        number = self.object_ids[id(module)] = len(self.objects)
        self.objects.append(None)
        given = module
        module = hooked(with_own_methods(plain(module)))
        self.class_of[id(given)] = type(module)
        self.object_ids[id(module)] = number
        self.modules = (*self.modules, module)
        cls = type(module)
        if hasattr(module, "_traced"):
            return self.traced_module(module, number, path)
        found = self.classes.get(cls) or self.register(cls)
        if "forward" not in found.methods:
            method = self.method_of(cls, "forward")
            if method is not None:
                self.add_method(found, "forward", *method, self.nowhere, None)
        for k in cls.__mro__:
            for name, f in vars(k).items() if k not in _BASES else ():
                if modifier(f) == "export" and name not in found.methods:
                    self.add_method(found, name, f, k, self.nowhere, None)
        fields = {"training": module.training}
        for name, value in module.__dict__.items():
            if name not in _OWN and name not in getattr(cls, "_unscripted", ()):
                fields[name] = value
        lines = []
        prefix = path + "." if path else ""
        for name, value in {**fields, **module._parameters, **module._buffers, **module._modules}.items():
            try:
                lines.append(f"  {quoted(name)} = {self.attribute(value, prefix + name)}")
            except (NoLiteral, NotSupportedError):
                if isinstance(value, Module):
                    raise
        self.objects[number] = f"object &{number} {found.name} {{\n" + "\n".join(lines) + "\n}"
        return f"&{number}"

    def traced_module(self, module, number, path):
        """A traced module among scripted ones: a class of its own, whose forward is the trace's."""
        from .mixed import traced_function

        name = self.fresh("Traced")
        called = traced_function(self, module, f"{name}.calls", path + "." if path else "")
        self.texts[f"{name}.forward"] = (
            f"fn {name}.forward(%self, *%args, **%named) {{\n  %1 = fn:{called}(*%args, **%named)\n  return %1\n}}"
        )
        self.extra_classes.append(f'class {name} module {{\n  method "forward" = {name}.forward\n}}')
        self.objects[number] = f'object &{number} {name} {{\n  "training" = {literal(module.training)}\n}}'
        return f"&{number}"

    def attribute(self, value, name):
        if isinstance(value, Module):
            return self.module(value, name)
        if isinstance(value, adjoin.Tensor):
            return f"weight({quoted(self.weight(value, name, False))})"
        return literal(value, lambda o: self.known(o, None, None))

    def weight(self, tensor, name, constant):
        if constant and id(tensor) in self.weight_names:
            return self.weight_names[id(tensor)]
        self.weights.append((name, tensor, constant))
        self.weight_names[id(tensor)] = name
        return name

    def known(self, o, writer, node):
        """The text of what stands outside of a function, or in an attribute: an op, a function, a class, a tensor."""
        if isinstance(o, enum.Enum):
            self.types[type(o).__name__] = type(o)  # so that one among the results is what it was
        if isinstance(o, Module):
            if id(o) in self.object_ids:
                return f"&{self.object_ids[id(o)]}"
            raise NoLiteral("a module that is no part of the scripted one stands outside of the function")
        if isinstance(o, adjoin.Tensor):
            if writer is None:
                raise NoLiteral("tensors in lists and dicts are no part of a module; use register_buffer")
            name = self.weight(o.detach() if not o.is_leaf else o, f"constant.{len(self.weights)}", True)
            to = writer.temp()
            writer.emit(f"{to} = $weight({quoted(name)})", node)
            return to
        if (op := names.op_of(o)) is not None:
            return f"op({quoted(op)})"
        if isinstance(o, adjoin.memory_format):
            return f"format({_FORMATS.index(str(o).split('.')[-1])})"
        if isinstance(o, adjoin.layout):
            return f"layout({LAYOUTS.index(str(o).split('.')[-1])})"
        try:
            builtin = names.builtin_of(o)
        except TypeError:
            builtin = None
        if builtin is not None:
            return f"builtin({quoted(builtin)})"
        if isinstance(o, type):
            if issubclass(o, Module) or o.__module__ == "builtins":
                raise NoLiteral(f"the class {o.__name__} stands where a value is wanted")
            place = writer.place if writer else self.nowhere
            return f"type({quoted(self.klass(o, place, node))})"
        function = self.python_of(o) if callable(o) else None
        if function is not None:
            place = writer.place if writer else self.nowhere
            return f"function({quoted(self.function(function, None, place, node))})"
        from . import classes

        if type(o) in classes and type(o) not in self.classes:
            self.klass(type(o), self.nowhere, None)
        if type(o) in self.classes and not self.classes[type(o)].module:
            return self.instance(o)
        return None

    def instance(self, o):
        if id(o) not in self.object_ids:
            number = self.object_ids[id(o)] = len(self.objects)
            self.objects.append(None)
            fields = [f"  {quoted(k)} = {literal(v, lambda x: self.known(x, None, None))}" for k, v in vars(o).items()]
            self.objects[number] = f"object &{number} {self.classes[type(o)].name} {{\n" + "\n".join(fields) + "\n}"
        return f"&{self.object_ids[id(o)]}"

    # The whole.
    def class_text(self, found):
        out = f"class {found.name}" + (" module" if found.module else "")
        out += f" {found.container}" if found.container else ""
        for base in found.python.__mro__[1:]:
            if base is not object:
                out += f" is {quoted(self.classes[base].name if base in self.classes else base.__name__)}"
        lines = [f"  method {quoted(n)} = {f}" for n, f in found.methods.items()]
        lines += [f"  property {quoted(n)}" for n in sorted(found.properties)]
        for name, value in self.constants(found.python):
            lines.append(f"  value {quoted(name)} = {value}")
        return out + " {\n" + "\n".join(lines) + "\n}"

    def constants(self, cls):
        seen = set()
        for k in cls.__mro__:
            if k in _BASES:
                break
            for name, value in vars(k).items():
                if name in seen or name.startswith("__") or name not in self.asked or callable(value):
                    continue
                seen.add(name)
                try:
                    yield name, literal(value, lambda o: self.known(o, None, None))
                except NoLiteral:
                    continue

    def text(self):
        self.compile_waiting()
        out = ["adjoin.program 1", f"scripted {self.name}"]
        classes = [self.class_text(c) for c in self.classes.values()]
        self.compile_waiting()
        if self.lines:
            out.append(f"lines [{', '.join(quoted(line) for line in self.lines)}]")
        for name, tensor, constant in self.weights:
            shape = ", ".join(str(n) for n in tensor.shape)
            dtype = str(tensor.dtype).split(".")[-1]
            out.append(f"{'const' if constant else 'param'} {quoted(name)} : {dtype}[{shape}]")
        return "\n".join([*out, *classes, *self.extra_classes, *self.objects, *self.texts.values()]) + "\n"


_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
