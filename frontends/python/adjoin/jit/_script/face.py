"""adjoin.jit._script.face: what a scripted function and a scripted module are to Python."""

import copy
import functools
import inspect
import re

from ... import _C
from ...nn.modules.module import Module
from .. import Error, RecursiveScriptModule, ScriptFunction, _tracing, is_tracing
from .again import plain
from .unit import Unit
from .values import types

PARAM, CONSTANT = 2, 3


def program_of(unit):
    """The program of what has been collected."""
    handle = _C.program_parse(unit.text())
    types.update(unit.types)
    values = {name: tensor for name, tensor, _ in unit.weights}
    for what in (PARAM, CONSTANT):
        for i, (name, _, _) in enumerate(_C.program_values(handle, what)):
            _C.program_set_weight(handle, what, i, values[name])
    return handle


@functools.cache
def raised_class(cls):
    """The class of errors, which is one of jit.Error, too."""
    try:
        return type(cls.__name__, (cls, Error), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    except TypeError:  # both lie differently in memory
        return cls


def raised(e):
    """The error of a running program as Python gets it."""
    cls = type(e) if isinstance(e, Error) else raised_class(type(e))
    if cls is type(e):
        return e
    made = cls.__new__(cls, *e.args)
    made.args = e.args
    vars(made).update(vars(e))
    return made.with_traceback(e.__traceback__)


def called(scripted, name, args, kwargs):
    """A call of scripted code. A trace keeps it, with its decisions."""
    if not is_tracing() or getattr(_tracing, "inline", False):
        if range in map(type, args):
            args = tuple(list(a) if type(a) is range else a for a in args)
        try:
            return _C.script_call(scripted._handle, scripted._path + name, args, kwargs)
        except Exception as e:
            raise raised(e) from e.__cause__
    if _tracing.scripts is None:
        from .mixed import Scripts

        _tracing.scripts = Scripts(_tracing.params)
    return _tracing.scripts.call(scripted, name, args, kwargs)


class _Shown:
    """What both show of their program."""

    _result = None  # the type of what it gives, where that is known

    @property
    def graph(self):
        """The program as text, which is also the form in files; it lists inputs, results and calls."""
        from .._graph import Graph

        text = _C.program_text(self._handle)
        return Graph(text, getattr(self, "name", None) or f"{self.original_name}.forward", self._result)

    inlined_graph = graph

    @property
    def code(self):
        """The program as Python, for people; `graph` is the text that files hold."""
        from .code import python_of

        return python_of(self.graph)

    def graph_for(self, *args, **kwargs):
        """The program: it is the same for all arguments."""
        return self.graph

    def save(self, f, _extra_files=None):
        from .._traced import save

        save(self, f, _extra_files)


class Function(_Shown, ScriptFunction):
    """A function that runs as a program. Its arguments are copied: what it does to a list stays its own."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        unit = Unit(function.__name__ if function.__name__.isidentifier() else "f")
        self._scripted_from = self._original = function
        self._path = ""
        self.name = unit.function(unit.python_of(function), None, unit.nowhere, None)
        unit.name = self.name
        self._handle = program_of(unit)
        self._result = unit.types_of.said(function, None)
        self.qualified_name = f"__torch__.{function.__module__}.{function.__qualname__}"

    def __call__(self, *args, **kwargs):
        return called(self, self.name, args, kwargs)

    def __repr__(self):
        return f"<scripted function {self.name}>"


class ScriptedModule(_Shown, RecursiveScriptModule):
    """A module that runs as a program; parameters and buffers are the original's own."""

    def __init__(self, handle, path, functions, original=None, ready=True, root=None):
        Module.__init__(self)
        original = plain(original)
        self.__dict__.update(
            _handle=handle,
            _path=path,
            _functions=functions,
            _ready=False,
            _root=root or self,
            _written=frozenset(),
            _assigned=None,
        )
        self.__dict__["original_name"] = type(original).__name__ if original is not None else "Module"
        if original is not None:
            self.__dict__["_original"] = original
            self._parameters.update(original._parameters)
            self._buffers.update(original._buffers)
            self._non_persistent_buffers_set.update(original._non_persistent_buffers_set)
            for name, child in original._modules.items():
                inside = path + name + "."
                self._modules[name] = (
                    None if child is None else ScriptedModule(handle, inside, functions, child, root=self._root)
                )
            self.__dict__["training"] = original.training
        self.__dict__["_ready"] = ready

    def _call_function(self, name, args, kwargs):
        result = called(self, name, args, kwargs)
        if self._root._written:
            self._root._follow()
        return result

    def _in_program(self, name):
        """Has the program this attribute? Parts that were traced have none."""
        try:
            _C.script_get(self._handle, self._path + name)
        except (AttributeError, RuntimeError):
            return False
        return True

    def _follow(self):
        """Parameters and buffers to which the code has assigned are what the program has now."""
        if self._assigned is None:
            self.__dict__["_assigned"] = [
                (module, space, name)
                for module in self.modules()
                for space in (module._parameters, module._buffers)
                for name in self._written & space.keys()
                if module._in_program(name)
            ]
        for module, space, name in self._assigned:
            space[name] = _C.script_get(module._handle, module._path + name)

    def forward(self, *args, **kwargs):
        return self._call_function("forward", args, kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__") or not self.__dict__.get("_ready"):
                raise
        if f"{self._path}{name}" in self._functions:
            held = inspect.getattr_static(type(self.__dict__.get("_original")), name, None)
            return self._method(name) if isinstance(held, property) else functools.partial(self._method, name)
        try:
            return _C.script_get(self._handle, self._path + name)
        except AttributeError:
            raise AttributeError(f"'{self.original_name}' object has no attribute '{name}'") from None

    def _method(self, name, /, *args, **kwargs):
        return self._call_function(name, args, kwargs)

    def __setattr__(self, name, value):
        if not self.__dict__.get("_ready") or name in ("_handle", "_path"):
            return super().__setattr__(name, value)
        if isinstance(value, Module) or name in self._modules:
            from .swap import swap

            return swap(self, name, value)
        if name in self._parameters or name in self._buffers:
            super().__setattr__(name, value)
            return self._give_weights()
        if name == "training":
            self.__dict__["training"] = value
        return _C.script_set(self._handle, self._path + name, value)

    def __delattr__(self, name):
        raise RuntimeError(
            f"jit.script: '{name}' cannot go from a scripted {self.original_name}, whose code may need it; change the original and "
            "script that"
        )

    def add_module(self, name, module):
        if not self.__dict__.get("_ready"):
            return super().add_module(name, module)
        setattr(self, name, module)

    register_module = add_module

    def _give_weights(self):
        """The program has the tensors that the module has now."""
        named = {}
        for prefix, module in self.named_modules(remove_duplicate=False):
            for name, t in [*module._parameters.items(), *module._buffers.items()]:
                if t is not None:
                    named[self._path + (prefix + "." if prefix else "") + name] = t
        for i, (name, _, _) in enumerate(_C.program_values(self._handle, PARAM)):
            if name in named:
                _C.program_set_weight(self._handle, PARAM, i, named[name])

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self._give_weights()
        for i in range(len(_C.program_values(self._handle, CONSTANT))):
            _C.program_set_weight(self._handle, CONSTANT, i, fn(_C.program_weight(self._handle, CONSTANT, i)))
        return self

    def _get_name(self):
        return "RecursiveScriptModule"

    def extra_repr(self):
        return f"original_name={self.original_name}"

    def _has(self, name):
        return f"{self._path}{name}" in self._functions

    def __len__(self):
        return self._method("__len__") if self._has("__len__") else len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __contains__(self, key):
        return self._method("__contains__", key) if self._has("__contains__") else key in self._modules

    def __getitem__(self, key):
        if self._has("__getitem__"):
            return self._method("__getitem__", key)
        return self._modules[key] if isinstance(key, str) else list(self._modules.values())[key]

    def __bool__(self):
        return True

    def __dir__(self):
        own = [n.removeprefix(self._path) for n in self._functions if n.startswith(self._path)]
        return [*super().__dir__(), *(n for n in own if "." not in n)]

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        import io

        from .._traced import load, save

        file = io.BytesIO()
        save(self, file)
        file.seek(0)
        return load(file)


def frozen(module, kept=()):
    """A copy whose parameters and buffers are constants of its program: it has none but those below the names that are kept."""
    made = copy.deepcopy(module)

    def stays(name):
        return name in kept or name.startswith(tuple(k + "." for k in kept))

    for i, (name, _, _) in enumerate(_C.program_values(made._handle, PARAM)):
        if not stays(name):
            _C.program_set_weight(made._handle, PARAM, i, _C.program_weight(made._handle, PARAM, i).detach())
    for path, part in made.named_modules():
        for space in (part._parameters, part._buffers):
            for name in [n for n in space if not stays(f"{path}.{n}" if path else n)]:
                del space[name]
    return made


def functions_of(handle):
    return {line[: line.index("(")]: line for line in _C.script_functions(handle).splitlines()}


def scripted_module(module):
    unit = Unit("forward")
    unit.used.add("forward")  # the program's name: no function has it, so it is a module
    unit.module(module)
    handle = program_of(unit)
    made = ScriptedModule(handle, "", functions_of(handle), module)
    cls = unit.class_of[id(module)]
    forward = unit.method_of(cls, "forward")
    made.__dict__["_result"] = forward and unit.types_of.said(forward[0], cls)
    made.__dict__.update(
        _written=unit.written, _pythons=unit.pythons
    )  # attributes that code of it sets; what it cannot call
    return made


def _paths(text):
    """The paths of the modules below the first object of a program, each after the one above it."""
    modules = set(re.findall(r"^class (\S+) module\b", text, re.M))
    inside, kind = {}, {}
    for number, name, fields in re.findall(r"^object &(\d+) (\S+) \{\n(.*?)^\}", text, re.M | re.S):
        kind[number], inside[number] = name, re.findall(r'^  "([^"]+)" = &(\d+)$', fields, re.M)

    def below(number, path, above):
        for name, part in inside.get(number, ()):
            if kind.get(part) in modules and part not in above:
                yield f"{path}{name}"
                yield from below(part, f"{path}{name}.", {*above, part})

    return below("0", "", {"0"}) if kind.get("0") in modules else ()


def loaded(handle, plant):
    """A scripted program of a file."""
    functions = functions_of(handle)
    made = ScriptedModule(handle, "", functions, ready=False)
    for path in _paths(_C.program_text(handle)):  # those without code and parameters, too
        at = made
        *above, last = path.split(".")
        for part in above:
            at = at._modules[part]
        at._modules[last] = ScriptedModule(handle, path + ".", functions, ready=False)
    for i, (name, _, _) in enumerate(_C.program_values(handle, PARAM)):
        tensor = plant(
            made,
            name,
            _C.program_weight(handle, PARAM, i),
            lambda path: ScriptedModule(handle, path, functions, ready=False),
        )
        _C.program_set_weight(handle, PARAM, i, tensor)
    for path in sorted({name.rpartition(".")[0] for name in functions} - {""}):
        at = made
        for part in path.split("."):
            if part not in at._modules:
                at._modules[part] = ScriptedModule(handle, f"{at._path}{part}.", functions, ready=False)
            at = at._modules[part]
    made.__dict__["_written"] = set(re.findall(r'\$setattr\([^,]+, "([^"]+)"', _C.program_text(handle)))
    for module in made.modules():
        try:
            module.__dict__["training"] = _C.script_get(handle, module._path + "training")
        except (AttributeError, RuntimeError):  # of functions alone
            module.__dict__["training"] = False
        module.__dict__["_ready"] = True
    return made
