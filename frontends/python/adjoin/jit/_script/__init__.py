"""adjoin.jit._script: scripted functions: Python's source becomes a program with decisions, loops, lists and classes."""

import inspect
import types
import weakref

from ...nn.modules.module import Module
from .. import ScriptFunction, ScriptModule
from .errors import NotSupportedError  # noqa: F401

classes = weakref.WeakSet()  # those that script() was given


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
        classes.add(obj)
        checked(obj)
        return obj  # it is compiled again with whoever uses it
    if isinstance(obj, types.MethodType) and isinstance(obj.__self__, Module):
        return getattr(scripted_module(obj.__self__), obj.__name__)
    if not callable(obj):
        raise RuntimeError(f"jit.script: a function, a module or a class is wanted, not {type(obj).__name__}")
    return Function(obj)


def checked(cls):
    """Compiles a class once, for what is wrong in it. What it names and is not there yet is left to whoever uses it."""
    import enum

    from .unit import Unit

    if issubclass(cls, (tuple, enum.Enum, BaseException)) or getattr(cls, "__torch_script_interface__", False):
        return
    unit = Unit("f")
    unit.klass(cls, unit.nowhere, None)
    unit.compile_waiting()


def defined(text, known):
    """{name: function} of a text that defines functions, which see ``known`` and one another."""
    import ast
    import linecache
    import textwrap

    text = textwrap.dedent(text)
    tree = ast.parse(text)
    others = [type(x).__name__ for x in tree.body if not isinstance(x, ast.FunctionDef)]
    if others:
        raise RuntimeError(f"CompilationUnit: a text of functions is wanted, it has {', '.join(others)}")
    file = f"<functions of a text {len(linecache.cache)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # where their source is looked for
    space = {**known}
    exec(compile(tree, file, "exec"), space)  # noqa: S102
    return {x.name: space[x.name] for x in tree.body}
