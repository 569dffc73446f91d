"""adjoin.jit._script: scripted functions: Python's source becomes a program with decisions, loops, lists and classes."""

import inspect
import types

from ...nn.modules.module import Module
from .. import ScriptFunction, ScriptModule
from .errors import NotSupportedError  # noqa: F401


def script(obj):
    from .face import Function, scripted_module

    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        return scripted_module(obj)
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"jit.script: the class {obj.__name__} is given; make a module of it, and script that: script({obj.__name__}(...))"
            )
        return obj  # it is compiled with whoever uses it
    if isinstance(obj, types.MethodType) and isinstance(obj.__self__, Module):
        return getattr(scripted_module(obj.__self__), obj.__name__)
    if not callable(obj):
        raise RuntimeError(f"jit.script: a function, a module or a class is wanted, not {type(obj).__name__}")
    return Function(obj)
