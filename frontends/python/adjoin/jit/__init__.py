"""adjoin.jit: scripts and traces for programs written for PyTorch: what is given comes back and runs as Python."""

import builtins
from typing import Final  # noqa: F401

from ..nn.modules.module import Module

_KEPT = (
    "ignore", "unused", "export", "script_method", "script_if_tracing", "interface", "_script_if_tracing", "_overload",
    "_overload_method",
)  # fmt: skip


class ScriptModule(Module):
    """A module that is a compiled program; here none is, so isinstance() says no."""


class RecursiveScriptModule(ScriptModule):
    """A module that script() has compiled; here none is."""


def script(obj, *args, **kwargs):
    """The function, module or class as it is."""
    return obj


def trace(func, example_inputs=None, *args, **kwargs):
    """The function or module as it is, after one call with the example."""
    if example_inputs is not None:
        func(*(example_inputs if builtins.isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
    return func


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


def is_tracing():
    """False: programs run as Python."""
    return False


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):
    """Whether obj is of a type."""
    return builtins.isinstance(obj, target_type)


def optimize_for_inference(mod, other_methods=None):
    """The module as it is."""
    return mod


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module as it is; it must be in eval mode."""
    if mod.training:
        raise RuntimeError("freeze: the module is in training mode; call eval() first")
    return mod


class optimized_execution:
    """A with statement that changes nothing."""

    def __init__(self, should_optimize):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


fuser = optimized_execution


def save(m, f, _extra_files=None):
    """Raises: a program cannot be saved, its parameters can."""
    raise RuntimeError("jit.save: programs cannot be saved; save module.state_dict() with adjoin.save")


def load(f, map_location=None, _extra_files=None):
    """Raises: files of TorchScript hold programs."""
    raise RuntimeError("jit.load: TorchScript cannot be run; save state_dict() from PyTorch and load that")
