"""narrow.py: of a case of many steps, the one that a difference begins at, as a case of its own with a call that has a structure."""

import ast

from .case import Call, Case
from .compare import Difference


def narrowed(d):
    """The same difference, seen from its step; d itself where that step has no structure."""
    case = d.case
    if case.call is not None or case.target not in ("views", "programs", "shapes"):
        return d
    steps = [str(s) for s in case.steps]
    number = at_step(d, steps)
    if number is None or number >= len(steps):
        return d
    call = parsed(steps[number])
    rest = Case(
        case.target,
        call.name if call else case.name,
        [*case.setup, *steps[:number]],
        [call or steps[number]],
        call,
        case.values,
    )
    return Difference(rest, d.kind, d.name, d.ours, d.theirs, d.all_ours, d.all_theirs)


def at_step(d, steps):
    if d.ours is d.all_ours.error and d.ours is not None or d.theirs is d.all_theirs.error and d.theirs is not None:
        error = d.all_ours if d.all_ours.error is not None and d.ours is d.all_ours.error else d.all_theirs
        return error.line - len(d.case.setup)
    return None


def parsed(line):
    """A call from its text; None if it is something else."""
    try:
        statement = ast.parse(line).body[0]
    except SyntaxError:
        return None
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    result = "r"
    if isinstance(statement, ast.Assign):
        result = ast.unparse(statement.targets[0])
    args, words = [ast.unparse(a) for a in value.args], {k.arg: ast.unparse(k.value) for k in value.keywords}
    owner = ast.unparse(value.func.value)
    if owner == "t":
        return Call(value.func.attr, args, words, result=result)
    return Call(value.func.attr, [owner, *args], words, "x", result=result) if owner.isidentifier() else None
