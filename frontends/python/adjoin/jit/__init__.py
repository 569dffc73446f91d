"""adjoin.jit: traces become programs that are saved and run without Python; scripts come back as they are and run as Python."""

import builtins
import threading
from typing import Final  # noqa: F401

from ..nn.modules.module import Module

_KEPT = (
    "ignore", "unused", "export", "script_method", "script_if_tracing", "interface", "_script_if_tracing", "_overload",
    "_overload_method",
)  # fmt: skip


class ScriptModule(Module):
    """A module that is a program: traced, or loaded from a file."""


class RecursiveScriptModule(ScriptModule):
    """A module that script() has compiled; here none is."""


class TracedModule(ScriptModule):
    """What trace() and load() make of a module: its parameters, and a program in place of its code."""


class ScriptFunction:
    """What trace() makes of a function."""


TopLevelTracedModule = TracedModule


class TracingCheckError(Exception):
    """Never raised: a program makes the calls that were made."""


def script(obj, *args, **kwargs):
    """The function, module or class as it is."""
    return obj


def trace(func, example_inputs=None, *args, example_kwarg_inputs=None, constants_limit=0, dynamic=None, **kwargs):
    """The program of the calls that a function or module makes for these inputs.

    It has the bits of eager, is differentiated as its calls are, and is saved by jit.save. A call with other sizes or
    dtypes is traced again, unless dynamic names them: {0: {0: "batch"}} is dimension 0 of input 0. Then the function runs
    2**k + 1 times with k names, and what differs with the sizes is kept as a formula. What asks for values (item, an if) is refused, naming the line. Tensors that are neither
    inputs nor parameters are kept as constants, up to constants_limit bytes each (1 MB).
    """
    from ._traced import trace

    return trace(func, example_inputs, example_kwarg_inputs, constants_limit, dynamic)


def trace_module(mod, inputs, *args, **kwargs):
    """trace() of a module's forward, whose inputs stand in a dictionary under its name."""
    if list(inputs) != ["forward"]:
        raise NotImplementedError(f"jit.trace_module: methods {list(inputs)} are asked for; only forward is traced yet")
    return trace(mod, inputs["forward"], *args, **kwargs)


def _as_it_is(name):
    def keep(drop=False, **kwargs):
        return drop if callable(drop) else lambda function: function

    keep.__name__ = keep.__qualname__ = name
    keep.__doc__ = "A decorator that changes nothing."
    return keep


globals().update((name, _as_it_is(name)) for name in _KEPT)


def is_scripting():
    """False: programs run as Python."""
    return False


_tracing = threading.local()


def is_tracing():
    """Is this thread inside of trace()?"""
    return getattr(_tracing, "on", False)


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):
    """Whether obj is of a type."""
    return builtins.isinstance(obj, target_type)


def optimize_for_inference(mod, other_methods=None):
    """freeze(mod): a traced module as fast as it gets. A module that is no program comes back as it is."""
    return freeze(mod)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A traced module whose parameters are constants, copies of today's values: what is made of them alone is computed now, equal calls
    are made once; with optimize_numerics batch norms go into the layer before them, within rounding. It must be in eval mode. A module
    that is no program comes back as it is."""
    if mod.training:
        raise RuntimeError("freeze: the module is in training mode; call eval() first")
    if preserved_attrs:
        raise NotImplementedError("freeze: a program has no attributes but its parameters, which become constants")
    from ._traced import frozen

    return frozen(mod, optimize_numerics)


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


def save(m, f, _extra_files=None):
    """Writes a traced program to a file: text and safetensors, no pickle; C++ and `adjoin run` read it without Python."""
    from ._traced import save

    save(m, f, _extra_files)


def load(f, map_location=None, _extra_files=None):
    """The module or function in a file of jit.save, or of PyTorch's jit.save and export.save. Nothing in it is executed while it is read."""
    from . import _foreign
    from ._traced import load

    if not _extra_files and (made := _foreign.load(f, map_location)) is not None:
        return made
    return load(f, map_location, _extra_files)
