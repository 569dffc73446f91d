#!/usr/bin/env python3
"""frontends/python/stubs/make.py: writes .pyi files for the package, from what it has when it is imported.

    make.py LIBADJOIN.so MODULE.so SOURCES OUT      OUT becomes a folder of stubs as deep as the package

Ops come with the types of their schemas, the rest with what is annotated or known by name, else Any. No op
is named here: what a row adds is typed with the next build.
"""

import ctypes
import importlib
import inspect
import os
import pathlib
import shutil
import re
import sys
import tempfile
import types

import known
from schema import signatures

# Methods that take other arguments than those of a base are PyTorch's.
HEAD = '''# mypy: disable-error-code="override, misc"
"""Made by frontends/python/stubs/make.py."""

import builtins
import types as _types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, overload
from typing_extensions import Self

'''
ALIASES = """_Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex
_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_memory_format: TypeAlias = memory_format
_Device: TypeAlias = device | builtins.str | builtins.int

"""
PUBLIC = ("Generator", "Size", "Tensor")
OURS = {"_Device", "_device", "_dtype", "_layout", "_memory_format", "_Number"}
first_seen = {}  # what a module has before this program imports the modules inside it
GENERIC = {"tuple": "[Any, ...]", "list": "[Any]", "dict": "[Any, Any]", "set": "[Any]"}
C_TYPES = ("dtype", "device", "layout", "memory_format")


def is_op(thing):
    return type(thing).__name__ in ("Op", "OpMethod")


def at_home(thing):
    """Does its module have it, under its own name?"""
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    return home is not None and home.__name__.split(".")[0] == "adjoin" and getattr(home, thing.__name__, None) is thing


def tagged(name, word):
    """The parameters that the row's tags name after that word."""
    tags = " ".join(info["tags"] for info in C.op_info(name) or [])
    return {tag.removeprefix(word) for tag in tags.replace(",", " ").split() if tag.startswith(word)}


def spread_of(name):
    """Parameters whose elements may be arguments of their own: view(2, 3)."""
    return tagged(name, "varargs:")


def without_numbers(name, schemas):
    """The schemas with tensors alone where the row says so: maximum(x, 2) is refused."""
    for parameter in tagged(name, "tensor:"):
        schemas = [schema.replace(f"Operand {parameter}", f"Tensor {parameter}") for schema in schemas]
    return schemas


def native(thing):
    """Is it one of _C's types?"""
    return isinstance(thing, type) and vars(C).get(thing.__name__) is thing


class Stub:
    """The text of one module."""

    def __init__(self, name):
        self.name, self.body, self.named = name, [], {}

    def results(self, fields):
        """A class for several results with names; without them each has its type's."""
        if any(name == kind for name, kind in fields):
            return f"tuple[{', '.join(kind for _, kind in fields)}]"
        title = "_" + "_".join(name for name, _ in fields)
        self.named[title] = "".join(f"    {name}: {kind}\n" for name, kind in fields)
        return title

    def op(self, name, thing, indent="", method=False):
        schemas = without_numbers(name, list(thing.schemas))
        out = "out" in (getattr(thing, "__text_signature__", "") or "")
        heads = signatures(schemas, self.results, method, out, spread_of(name)) or [
            "(self, *args: Any, **kwargs: Any) -> Any"
        ]
        self.heads(name, heads, indent)

    def heads(self, name, heads, indent="", decorator=""):
        for head in heads:
            if len(heads) > 1:
                self.body.append(f"{indent}@overload")
            if decorator:
                self.body.append(indent + decorator)
            self.body.append(f"{indent}def {name}{head}: ...")

    def function(self, name, thing, indent="", owner=None):
        decorator = ""
        if isinstance(thing, (staticmethod, classmethod)):
            decorator = "@" + type(thing).__name__
            thing = thing.__func__
        self.heads(name, [head_of(name, thing, owner, decorator, self.name)], indent, decorator)

    def klass(self, name, cls):
        bases = [self.base(b) for b in cls.__bases__ if b is not object]
        self.body.append(f"class {name}({', '.join(bases)}):" if bases else f"class {name}:")
        before = len(self.body)
        members = {n: m for n, m in vars(cls).items() if n.isidentifier()}
        for n, m in sorted(members.items()):
            self.member(cls, n, m)
        if len(self.body) == before:
            self.body[-1] += " ..."

    def base(self, cls):
        if native(cls):
            return cls.__name__ if self.name == "adjoin._C" else f"adjoin._C.{cls.__name__}"
        if cls is types.ModuleType:
            return "_types.ModuleType"
        if cls.__module__ == "builtins":
            return f"builtins.{cls.__name__}" + GENERIC.get(cls.__name__, "")
        if at_home(cls):
            return cls.__name__ if cls.__module__ == self.name else f"{cls.__module__}.{cls.__name__}"
        return "builtins.tuple[Any, ...]" if issubclass(cls, tuple) else "Any"

    def member(self, cls, name, thing):
        tensor = cls.__name__ == "Tensor" and native(cls)
        if tensor and name in known.PROPERTIES:
            kind, written = known.PROPERTIES[name]
            self.property(name, kind, written)
        elif tensor and name in (known.METHODS | known.OPERATORS):
            self.heads(name, [(known.METHODS | known.OPERATORS)[name]], "    ")
        elif is_op(thing):
            if not name.startswith("_"):
                self.op(name, thing, "    ", method=True)
        elif isinstance(thing, property) or inspect.isdatadescriptor(thing):
            if name not in ("__dict__", "__weakref__", "__class__"):
                self.property(name, "Any", True)
        elif isinstance(thing, (staticmethod, classmethod)) or callable(thing) and not isinstance(thing, type):
            if name not in (
                "__new__",
                "__getattribute__",
                "__init_subclass__",
                "__subclasshook__",
                "__class_getitem__",
            ):
                self.function(name, thing, "    ", cls)
        elif not name.startswith("__"):
            self.body.append(f"    {name}: Any")

    def property(self, name, kind, written):
        self.body += ["    @builtins.property", f"    def {name}(self) -> {kind}: ..."]
        if written:
            self.body += [f"    @{name}.setter", f"    def {name}(self, value: {kind}) -> None: ..."]

    def text(self):
        uses = sorted({w for line in self.body for w in modules_in(line)} - {self.name})
        own = {m[1] for line in self.body if (m := re.match(r"(?:class |def )?(\w+)[:(]", line))}  # not imported then
        lines = [HEAD.replace("Iterator, Sequence", "Iterator") if "Sequence" in own else HEAD]
        lines += (f"import {m}\n" for m in uses)
        if self.name != "adjoin._C":
            public = {line.split()[-1] for line in self.body if line.startswith("from adjoin._C import ")}
            names = [f"{n} as {n}" if n in public else n for n in PUBLIC if n in public or n not in own]
            lines.append(f"from adjoin._C import {', '.join([*names, *sorted(OURS)])}\n")
        for title, fields in sorted(self.named.items()):
            lines.append(f"\nclass {title}(NamedTuple):\n{fields}")
        return (
            "".join(lines) + "\n" + "\n".join(self.body) + "\n" + ("\n" + ALIASES if self.name == "adjoin._C" else "")
        )


def modules_in(line):
    if not line.startswith("class "):
        return
    for word in line[line.find("(") + 1 :].rstrip("): .").split(", "):
        if word.startswith("adjoin."):
            yield word.rpartition(".")[0]


def head_of(name, thing, owner, decorator, module):
    try:
        params = list(inspect.signature(thing).parameters.values())
    except (ValueError, TypeError):
        first = "self, " if owner and decorator != "@staticmethod" else ""
        return f"({first}*args: Any, **kwargs: Any) -> {known.RETURNS.get(name, 'Any')}"
    texts, star = [], False
    for i, p in enumerate(params):
        if p.kind is p.VAR_POSITIONAL or p.kind is p.KEYWORD_ONLY and not star:
            star = True
            if p.kind is p.KEYWORD_ONLY:
                texts.append("*")
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        own = i == 0 and owner is not None and decorator != "@staticmethod"
        texts.append(f"{mark}{p.name}" + ("" if own else ": Any") + ("" if p.default is p.empty else " = ..."))
        last_positional = i + 1 == len(params) or params[i + 1].kind is not p.POSITIONAL_ONLY
        if p.kind is p.POSITIONAL_ONLY and last_positional:
            texts.append("/")
    return f"({', '.join(texts)}) -> {returned(name, owner, module)}"


def returned(name, owner, module):
    if owner is None:
        tensor = module in known.OF_TENSORS and not name.startswith("_")
        return "Tensor" if tensor else known.FUNCTIONS.get(f"{module}.{name}", "Any")
    if name in known.RETURNS_SELF and any(c.__name__ == "Module" for c in owner.__mro__):
        return "Self"
    if name == "forward" and module.startswith("adjoin.nn.modules"):
        return (
            "Any"
            if owner.__name__ in ("Module", "LSTM", "GRU", "RNN", "RNNBase", "MultiheadAttention", "LSTMCell")
            else "Tensor"
        )
    return known.RETURNS.get(name, "Any")


def names_of(module):
    """What a user may write after the module's name, and private names that are classes or functions of it."""
    own = {n for n, f in vars(module).items() if isinstance(f, types.FunctionType) and f.__module__ == module.__name__}
    for name in sorted(set(dir(module)) | set(getattr(module, "__all__", ())) | own):
        if name.isidentifier() and not name.startswith("__") and name not in OURS:
            try:
                yield name, getattr(module, name)
            except AttributeError:
                continue
            except RuntimeError:  # what wants a device: there is none while this runs
                yield name, None


def stub_of(module):
    stub, late = Stub(module.__name__), []
    for name, thing in names_of(module):
        if isinstance(thing, types.ModuleType):
            own = thing.__name__.split(".")[0] == "adjoin" and thing.__name__ in sys.modules
            if own and name in first_seen[module.__name__]:
                parent, _, last = thing.__name__.rpartition(".")
                late.append(f"from {parent} import {last} as {name}" if parent else f"import {last} as {name}")
        elif native(thing):
            if module is C:
                stub.klass(name, thing)
            elif name == thing.__name__:
                late.append(f"from adjoin._C import {name} as {name}")
        elif is_op(thing):
            stub.op(name, thing)
        elif type(thing).__name__ in C_TYPES:
            stub.body.append(f"{name}: {'_' + type(thing).__name__}")
        elif type(thing).__name__ in ("_Named", "There"):  # FloatTensor and its like
            stub.body += [
                f"class {name}(Tensor):",
                "    def __init__(self, *args: Any) -> None: ...",
                "    @builtins.property",
                "    def dtype(self) -> _dtype: ...",
            ]
        elif isinstance(thing, type) or isinstance(thing, types.FunctionType):
            if at_home(thing) and thing.__module__ != module.__name__:
                late.append(f"from {thing.__module__} import {thing.__name__} as {name}")
            elif (thing.__module__ or "").split(".")[0] != "adjoin":
                continue  # of the standard library
            else:
                stub.klass(name, thing) if isinstance(thing, type) else stub.function(name, thing)
        elif name in known.FUNCTIONS:
            stub.heads(name, [known.FUNCTIONS[name]])
        elif isinstance(thing, types.BuiltinFunctionType):
            stub.function(name, thing)
        elif isinstance(thing, (float, int, str)):
            kind = next(k for k in type(thing).__mro__ if k.__module__ == "builtins")
            stub.body.append(f"{name}: builtins.{kind.__name__}")
        elif not name.startswith("_"):
            stub.body.append(f"{name}: Any")
    stub.body += late
    return stub


def write(out, module):
    parts = module.__name__.split(".")[1:]
    package = bool(getattr(module, "__path__", ())) or module.__name__ == "adjoin"
    path = out.joinpath(*parts, "__init__.pyi") if package else out.joinpath(*parts).with_suffix(".pyi")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(stub_of(module).text(), encoding="utf-8")


def main():
    library, built, sources, out, *packs = map(pathlib.Path, sys.argv[1:])
    ctypes.CDLL(str(library.resolve()))  # found by its name from now on
    with tempfile.TemporaryDirectory() as folder:  # the package as it will be installed
        package = pathlib.Path(folder, "adjoin")
        package.mkdir()
        for entry in sources.resolve().iterdir():
            (package / entry.name).symlink_to(entry)
        (package / built.name).symlink_to(built.resolve())
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        for variable in [v for v in os.environ if v.startswith("ADJOIN_")]:
            del os.environ[variable]
        pathlib.Path(folder, "packs").mkdir()  # whose ops have stubs like the core's
        for pack in packs:
            pathlib.Path(folder, "packs", pack.name).symlink_to(pack.resolve())
        os.environ["ADJOIN_PLUGIN_PATH"] = str(pathlib.Path(folder, "packs"))
        import adjoin

        global C
        C = importlib.import_module("adjoin._C")
        # What stands in a folder that is no package belongs to another name.
        inside = [
            f
            for f in sources.rglob("*.py")
            if all((p / "__init__.py").exists() for p in f.parents if sources in p.parents)
        ]
        files = [f.relative_to(sources).with_suffix("") for f in inside]
        names = {".".join(["adjoin", *(part for part in f.parts if part != "__init__")]) for f in files}
        found = sorted({"adjoin._C"} | names - {"adjoin", "adjoin.demo.__main__"})
        modules = [adjoin]
        first_seen["adjoin"] = set(dir(adjoin))
        for name in found:
            try:
                modules.append(importlib.import_module(name))
            except Exception as error:  # no reason to stop a build; the tests miss the stub
                print(f"stubs: {name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            first_seen[name] = set(dir(modules[-1]))
        # autograd.gradcheck is a function, and a module of that name whose import took its place.
        for module in [m for m in modules if "__getattr__" in vars(m)]:
            for name, thing in list(vars(module).items()):
                if (
                    isinstance(thing, types.ModuleType)
                    and thing.__name__ == f"{module.__name__}.{name}"
                    and hasattr(thing, name)
                ):
                    delattr(module, name)
        shutil.rmtree(out, ignore_errors=True)
        for module in modules:
            write(out, module)
        (out / "py.typed").touch()
    os.utime(out)


if __name__ == "__main__":
    main()
