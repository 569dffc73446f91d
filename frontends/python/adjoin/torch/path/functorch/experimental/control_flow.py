"""functorch.experimental.control_flow: branches and walks that programs keep."""

from adjoin._higher_order_ops import cond, map  # noqa: F401
