"""adjoin._higher_order_ops.scan: a carry that passes along a dimension, and what it leaves at each place."""

from ..jit import scan as _scan

__all__ = ["scan"]


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """``carry, y = combine_fn(carry, x)`` for each x along dim, from init on: the last carry, and all y stacked in dimension 0."""
    carry, rows = _scan(combine_fn, init, xs, dim=dim, reverse=reverse)
    return carry, rows
