"""narrow.py: of a case of many steps, the one that a difference begins at, as a case of its own with a call that has a structure."""

import ast
import functools

import adjoin
import torch

from .case import Call, Case, run
from .compare import differences


@functools.lru_cache(64)
def begins(case):
    """What differs at the first step where anything does: differences of a case that ends there. What follows is made of it."""
    steps = [str(s) for s in case.steps]
    for n in range(len(steps)):
        call = parsed(steps[n])
        setup = [*case.setup, *steps[:n]]
        rest = Case(case.target, call.name if call else case.name, setup, [call or steps[n]], call, case.values)
        rest.many = True
        found = differences(rest, run(adjoin, rest), run(torch, rest))
        if found:
            return found
    return []


def narrowed(d):
    """The differences that one of a case of many steps begins with; none where there is one call."""
    if d.case.call is not None or d.case.target not in ("views", "programs", "shapes"):
        return []
    return begins(d.case)


def parsed(line):
    """A call from its text; None if it is something else."""
    try:
        statement = ast.parse(line).body[0]
    except SyntaxError:
        return None
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Name):
        return None
    args, words = [ast.unparse(a) for a in value.args], {k.arg: ast.unparse(k.value) for k in value.keywords}
    owner = ast.unparse(value.func.value)
    if owner == "t":
        return Call(value.func.attr, args, words)
    return Call(value.func.attr, [owner, *args], words, "x") if owner.isidentifier() else None
