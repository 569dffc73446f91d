"""adjoin.fx.operator_schemas: arguments of a call as the signature names them."""

import ast
import inspect
from typing import NamedTuple

import adjoin

from .. import _C
from .._op_overload import OpOverload

__all__ = ["ArgsKwargsPair", "get_signature_for_torch_op", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple
    kwargs: dict


def get_signature_for_torch_op(op, return_schemas=False):
    """The signatures that an op has, one for each row of its name; None of what is no op. ``return_schemas``: (signatures, rows' texts)."""
    from .._aten import _signature

    op = op._op if isinstance(op, OpOverload) else op
    if not isinstance(op, type(adjoin.add)):
        return (None, None) if return_schemas else None
    home = (
        op.__module__.removeprefix("adjoin.ops").removeprefix("adjoin").removeprefix(".").replace("nn.functional", "nn")
    )
    rows = _C.op_info(f"{home}::{op.__name__}" if home else op.__name__)
    found = []
    for row in rows:
        parameters = []
        for name, default, keyword, _, _ in _signature.__wrapped__(row["name"]):
            kind = inspect.Parameter.KEYWORD_ONLY if keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
            value = inspect.Parameter.empty if default is None else _value_of(default)
            parameters.append(inspect.Parameter(name, kind, default=value))
        try:
            found.append(inspect.Signature(parameters))
        except ValueError:  # one without a default behind one that has it
            continue
    return (found, [row["schema"] for row in rows]) if return_schemas else found


def _value_of(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def normalize_function(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """The arguments by their names, with the defaults; None where the function has no signature."""
    try:
        bound = inspect.signature(target).bind(*args, **(kwargs or {}))
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    if not normalize_to_only_use_kwargs:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    kinds = {p.kind for p in bound.signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    return ArgsKwargsPair((), dict(bound.arguments))


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """The same of the forward of the module at a path."""
    forward = root.get_submodule(target).forward
    return normalize_function(forward, args, kwargs, normalize_to_only_use_kwargs=normalize_to_only_use_kwargs)
