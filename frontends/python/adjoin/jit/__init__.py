"""adjoin.jit: traced and scripted functions become programs that are saved and run without Python."""

import builtins
import collections
import io
import sys
import threading
import types
import typing
from typing import Final  # noqa: F401

from ..futures import Future
from ..nn.modules.module import Module

_KEPT = ("_overload", "_overload_method")


class ScriptModule(Module):
    """A module that is a program: traced, loaded from a file, or a class of one's own: methods that script_method marks, and those
    of define(), are compiled when the first of them is called."""

    def define(self, src):
        """Methods of a text of Python: ``def forward(self, x): ...``. They see what the caller's module knows."""
        from ._script.own import define

        frame = sys._getframe(1)
        define(self, src, {**frame.f_globals, **frame.f_locals})

    def __getattr__(self, name):
        if name in ("graph", "code", "inlined_graph", "graph_for") and self.__dict__.keys().isdisjoint(
            ("_functions", "_traced")
        ):
            from ._script.own import program

            return getattr(program(self), name)
        return super().__getattr__(name)

    def save(self, f, _extra_files=None):
        """Writes the program to a file."""
        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files=None):
        """The file as bytes."""
        made = io.BytesIO()
        save(self, made, _extra_files)
        return made.getvalue()


class RecursiveScriptModule(ScriptModule):
    """A module that script() has compiled."""


class TracedModule(ScriptModule):
    """What trace() and load() make of a module: its parameters, and a program in place of its code."""


class ScriptFunction:
    """What trace() and script() make of a function."""


TopLevelTracedModule = TracedModule


class ScriptObject:
    """What an instance of a class in C++ would be, for isinstance(): programs have none, so nothing is one."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("ScriptObject: programs have no classes of C++; use jit.script of a Python class")


class TracingCheckError(Exception):
    """A program gives something else than the function, for inputs that trace() was given to check: it decided by values, or its calls
    are others each time."""


class Error(RuntimeError):
    """What a running scripted program raises. It is of the class that Python would raise, too: ValueError, KeyError, ..."""


class TracerWarning(Warning):
    """Never given: what a trace cannot keep is refused."""

    @staticmethod
    def ignore_lib_warnings():
        """Leaves out those that the package would give about itself."""
        import warnings

        warnings.filterwarnings("ignore", category=TracerWarning, module=r"(torch|adjoin)\.(?!jit)")


def _get_trace_graph(*args, **kwargs):
    """Raises: the graph of a trace is no TorchScript graph here."""
    raise NotImplementedError(
        "jit._get_trace_graph: a trace makes no TorchScript graph here; torch.utils.flop_counter.FlopCounterMode counts "
        "products and convolutions by module, torch.jit.trace and torch.fx.symbolic_trace show the calls"
    )


class Attribute(collections.namedtuple("Attribute", ["value", "type"])):
    """A value with the type that a script should give it."""


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The program that Python's source says: with its ifs, loops, lists, dictionaries and classes.

    The subset of Python: numbers, texts, None, lists, tuples, dictionaries, named tuples and instances of plain classes; if,
    while, for, break, continue, return, assert, raise, with no_grad() and autocast(); comprehensions; calls of ops, of methods of tensors,
    of other functions with source, of modules. A variable may hold any value, as in Python; annotations are checked where a
    function begins and ends. What is not in the subset is refused at its line. Arguments are copied.
    """
    from ._script import script

    return script(obj)


def trace(
    func,
    example_inputs=None,
    *args,
    example_kwarg_inputs=None,
    constants_limit=0,
    dynamic=None,
    check_inputs=None,
    **kwargs,
):
    """The program of the calls that a function or module makes for these inputs.

    It has the bits of eager, is differentiated as its calls are, and is saved by jit.save. A call with other sizes or
    dtypes is traced again, unless dynamic names them: {0: {0: "batch"}} is dimension 0 of input 0. Then the function runs
    2**k + 1 times with k names, and what differs with the sizes is kept as a formula. What asks for values (item, an if) is refused, naming the line. Tensors that are neither
    inputs nor parameters are kept as constants, up to constants_limit bytes each (1 MB). check_inputs are tuples of other inputs:
    the function and the program are called with each, and TracingCheckError says where they differ.
    """
    from ._traced import checked, trace

    made = trace(func, example_inputs, example_kwarg_inputs, constants_limit, dynamic)
    return made if not check_inputs else checked(made, func, check_inputs, kwargs.get("check_tolerance", 1e-5))


def trace_module(mod, inputs, *args, check_inputs=None, **kwargs):
    """trace() of several methods of a module, whose inputs stand in a dictionary by the method's name. The result has all of them, and
    jit.save keeps them."""
    from ._traced import trace_methods

    made = trace_methods(mod, inputs, lambda method, given: trace(method, given, *args, **kwargs))
    for more in check_inputs or ():
        from ._traced import checked

        for name, given in more.items():
            checked(getattr(made, name), getattr(mod, name), [given], kwargs.get("check_tolerance", 1e-5))
    return made


def _as_it_is(name):
    def keep(drop=False, **kwargs):
        return drop if callable(drop) else lambda function: function

    keep.__name__ = keep.__qualname__ = name
    keep.__doc__ = "A decorator that changes nothing."
    return keep


globals().update((name, _as_it_is(name)) for name in _KEPT)


def interface(cls):
    """A decorator of a class that says which methods a part of a module has: ``part: Cls`` in the module's class body. What
    is put in the part's place after script() has to have them, with the same arguments."""
    if not builtins.isinstance(cls, type):
        raise RuntimeError(f"jit.interface: a class is wanted, not {type(cls).__name__}")
    cls.__torch_script_interface__ = True
    return cls


def _marked(function, how):
    held = function.fget if builtins.isinstance(function, property) else function
    held._torchscript_modifier = how
    return function


def export(function):
    """A method that script() compiles though forward does not call it."""
    return _marked(function, "export")


def script_method(function):
    """A method of a ScriptModule of one's own that runs as a program."""
    from ._script.own import method

    return method(function)


def unused(function):
    """A function that script() does not compile; a program that calls it raises."""
    return _marked(function, "unused")


_drop = unused


def ignore(drop=False, **kwargs):
    """As unused: a program runs without Python, so it cannot call the function."""
    return _marked(drop, "ignore") if callable(drop) else lambda function: _marked(function, "ignore")


def script_if_tracing(function):
    """A function that is compiled by script() when a trace first calls it."""
    import functools

    scripted = []

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not is_tracing():
            return function(*args, **kwargs)
        if not scripted:
            scripted.append(script(function))
        return scripted[0](*args, **kwargs)

    call._scripted_from = function
    return call


_script_if_tracing = script_if_tracing


def _unwrap_optional(x):
    """The value, which must not be None."""
    assert x is not None, "a value is wanted, it is None"
    return x


def is_scripting():
    """False: Python is running. In a scripted function it is true."""
    return False


_tracing = threading.local()


def is_tracing():
    """Is this thread inside of trace()?"""
    return getattr(_tracing, "on", False)


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):
    """isinstance(), which scripted functions use to refine a type; of ``List[int]`` and its like the elements are looked at, too."""
    of = builtins.isinstance
    if of(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    target_type = type(None) if target_type is None else target_type
    origin, inside = typing.get_origin(target_type), typing.get_args(target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, t) for t in inside)
    if target_type in (list, tuple, dict, typing.Optional) or (origin in (list, tuple, dict) and not inside):
        name = {list: "List", tuple: "Tuple", dict: "Dict"}.get(origin or target_type, "Optional")
        if obj != () or str(target_type) != "typing.Tuple[()]":
            raise RuntimeError(
                f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[{_EXAMPLES[name]}]"
            )
    if origin is list:
        return of(obj, list) and all(isinstance(x, inside[0]) for x in obj)
    if origin is dict:
        return of(obj, dict) and all(isinstance(k, inside[0]) and isinstance(v, inside[1]) for k, v in obj.items())
    if origin is tuple:
        if not of(obj, tuple):
            return False
        inside = inside[:1] * len(obj) if inside[1:] == (...,) else inside
        return len(obj) == len(inside) and all(map(isinstance, obj, inside))
    return of(obj, origin or target_type)


_EXAMPLES = {"List": "int", "Tuple": "int, int", "Dict": "int, int", "Optional": "int"}


def optimize_for_inference(mod, other_methods=None):
    """freeze(mod): a traced module as fast as it gets. A module that is no program comes back as it is."""
    return freeze(mod)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A module that is a program, with its parameters as constants, copies of today's values. Of a traced one: what is made of them alone
    is computed now, equal calls are made once; with optimize_numerics batch norms go into the layer before them, within rounding. It
    must be in eval mode. preserved_attrs names parameters, buffers and parts of a scripted module that stay, and may change; its
    methods and other attributes stay anyway. A module that is no program comes back as it is."""
    if mod.training:
        raise RuntimeError("freeze: the module is in training mode; call eval() first")
    from ._traced import frozen

    return frozen(mod, optimize_numerics, tuple(preserved_attrs or ()))


class optimized_execution:
    """A with statement that changes nothing."""

    def __init__(self, should_optimize):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


fuser = optimized_execution


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) or false_fn(*operands), as pred, a bool or a tensor of one element, says. Inside of trace() the program keeps both."""
    from ._blocks import cond

    return cond(pred, true_fn, false_fn, operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """body_fn(*carried) again and again, as long as cond_fn(*carried); the last values. Inside of trace() the program keeps the loop."""
    from ._blocks import while_loop

    return while_loop(cond_fn, body_fn, carried_inputs)


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """carry, y = combine_fn(carry, x) for each x along dim, from init on: the last carry, and all y stacked. Inside of trace() the program keeps the loop."""
    from ._blocks import scan

    return scan(combine_fn, init, xs, dim, reverse)


def fork(func, *args, **kwargs):
    """A Future of func(*args, **kwargs), which runs at once, as in PyTorch outside of its own interpreter."""
    made = Future()
    made.set_result(func(*args, **kwargs))
    return made


def wait(future):
    """The value of what fork() gave."""
    if not builtins.isinstance(future, Future):
        raise TypeError(f"jit.wait: what fork() gives is wanted, not {type(future).__name__}")
    return future.wait()


_fork, _wait = fork, wait


class CompilationUnit:
    """The functions of a text of Python, each a program of script(): ``CompilationUnit("def f(x): ...").f``. They may call
    one another, and what the caller's module knows."""

    def __init__(self, lang=None, _frames_up=0):
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang, rcb=None, _frames_up=0):
        """More functions of a text."""
        from ._script import defined

        frame = sys._getframe(_frames_up + 1)
        known = {**frame.f_globals, **frame.f_locals}
        for name, function in defined(lang, known).items():
            setattr(self, name, script(function))


def save(m, f, _extra_files=None):
    """Writes a traced program to a file: text and safetensors, no pickle; C++ and `adjoin run` read it without Python."""
    from ._traced import save

    save(m, f, _extra_files)


def load(f, map_location=None, _extra_files=None):
    """The module or function in a file of jit.save, or of PyTorch's jit.save and export.save. Nothing in it is executed while it is read."""
    from . import _foreign
    from ._traced import load, take_files

    if (made := _foreign.load(f, map_location)) is not None:
        if _extra_files:
            take_files(f, _extra_files)
        return made
    return load(f, map_location, _extra_files)
