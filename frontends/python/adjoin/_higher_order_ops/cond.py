"""adjoin._higher_order_ops.cond: one of two functions, as a tensor says."""

from .. import cond

__all__ = ["cond"]
