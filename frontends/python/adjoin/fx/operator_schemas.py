"""adjoin.fx.operator_schemas: arguments of a call as the signature names them."""

import inspect
from typing import NamedTuple

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple
    kwargs: dict


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
