"""adjoin.nn._functional.chances: softmax and its kin, whose dimension old programs leave out."""

import warnings

from ..._overridden import handed_over, overridden
from . import op

__all__ = ["log_softmax", "softmax", "softmin"]


def _customary(name, input, level):
    """The dimension where none was said: the one that once was the rule."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=level,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) over its sum along ``dim``."""
    if overridden(input):
        return handed_over(softmax, (input,), locals())
    dim = _customary("softmax", input, _stacklevel) if dim is None else dim
    return op("softmax")(input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, without underflow."""
    if overridden(input):
        return handed_over(log_softmax, (input,), locals())
    dim = _customary("log_softmax", input, _stacklevel) if dim is None else dim
    return op("log_softmax")(input, dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input)."""
    if overridden(input):
        return handed_over(softmin, (input,), locals())
    dim = _customary("softmin", input, _stacklevel) if dim is None else dim
    return op("softmin")(input, dim, dtype=dtype)
