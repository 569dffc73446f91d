"""adjoin.jit._script.special: calls that are decided when a function is compiled: isinstance, super, jit.is_scripting, ..."""

import ast
import typing

import adjoin

from ... import jit
from ..._names import is_ours
from ...nn._functional import op as find_op
from . import names
from .errors import refuse
from .expressions import Pending, Static
from .literals import quoted


def _known(compiler, node):
    """What is called, if it is known."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    at = node
    while isinstance(at, ast.Attribute):
        at = at.value
    if not isinstance(at, ast.Name) or at.id in compiler.locals or at.id in compiler.scopes:
        return None
    made = compiler.visit(node) if at.id in compiler.seen else None
    return made.value if isinstance(made, Static) else None


def special(compiler, node):
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        inner = node.func.value.func
        if isinstance(inner, ast.Name) and inner.id == "super":
            return of_super(compiler, node)
    if isinstance(node.func, ast.Call) and _known(compiler, node.func.func) is getattr:
        return of_space(compiler, node)
    if isinstance(node.func, ast.Call) and _known(compiler, node.func.func) is find_op:
        made = special(compiler, node.func)
        if isinstance(made, Static):
            return compiler.call_known(made.value, node)
    f = _known(compiler, node.func)
    if f is None:
        return of_future(compiler, node)
    if f is jit.fork and node.args:  # a program makes one call after the other
        return compiler.visit(ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node))
    if f is jit.wait:
        return compiler.visit(node.args[0])
    if f is find_op:
        name = compiler.constant_text(node.args[0])
        return Static(f(name)) if name else Pending(f"$find_op({compiler.operand(node.args[0])})")
    if f is jit.is_scripting:
        return "true"
    if getattr(f, "__name__", "") in names.FALSE and is_ours(getattr(f, "__module__", "")):
        return "false"
    if f is jit.annotate or f is typing.cast:
        return compiler.visit(node.args[1])
    if f is isinstance or f is jit.isinstance:
        of = compiler.operand(node.args[0])
        wanted = ", ".join(quoted(t) for t in compiler.types(node.args[1]))
        return Pending(f"$isinstance({of}, tuple({wanted}))")
    if f is type and len(node.args) == 1:
        return Pending(f"$type_name({compiler.operand(node.args[0])})")
    if f is getattr and len(node.args) >= 2:
        return of_getattr(compiler, node)
    if f is setattr and len(node.args) == 3:
        return Pending(f"$setattr({compiler.arguments(node)})")
    if f is super:
        refuse(compiler.place, node, "super() is used for calls of its methods alone")
    return None


def of_future(compiler, node):
    """future.wait(): what fork() gave is there already."""
    waits = isinstance(node.func, ast.Attribute) and node.func.attr == "wait" and not node.args
    return compiler.visit(node.func.value) if waits and compiler.forks() else None


def of_getattr(compiler, node):
    of = compiler.visit(node.args[0])
    name = compiler.constant_text(node.args[1])
    if isinstance(of, Static) and compiler.looks_into(of.value):
        if name is None:
            refuse(compiler.place, node, "getattr() of a module of Python's wants a name that is known")
        return Static(getattr(of.value, name))
    if name is not None:
        compiler.unit.ask(name)
    return Pending(f"$getattr({compiler.settle(of, node)}{''.join(', ' + compiler.operand(a) for a in node.args[1:])})")


def of_space(compiler, node):
    """getattr(F, name)(...): a function whose name is known, or an op that is found when it is called."""
    of, name = compiler.visit(node.func.args[0]), compiler.constant_text(node.func.args[1])
    if not isinstance(of, Static) or not names.is_namespace(of.value):
        return None
    if name is not None:
        return compiler.call_known(getattr(of.value, name), node)
    space = "nn::" if of.value is adjoin.nn.functional else ""
    called = compiler.temp()
    compiler.emit(f"{called} = $add({quoted(space)}, {compiler.operand(node.func.args[1])})", node)
    return Pending(f"$op({compiler.arguments(node, called)})")


def of_super(compiler, node):
    if compiler.owner is None or compiler.self_name is None:
        refuse(compiler.place, node, "super() stands outside of a method")
    function = compiler.unit.method_after(compiler.owner, compiler.defined_in, node.func.attr)
    if function is None:
        if node.func.attr == "__init__":
            return "None"
        refuse(compiler.place, node, f"no class above has '{node.func.attr}' with Python source")
    called = compiler.unit.function(function[0], compiler.owner, compiler.place, node, function[1])
    return Pending(f"fn:{called}({compiler.arguments(node, '%' + compiler.self_name)})")
