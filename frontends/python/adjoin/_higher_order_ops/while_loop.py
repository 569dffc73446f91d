"""adjoin._higher_order_ops.while_loop: a function again and again, as long as another gives true."""

from .. import while_loop

__all__ = ["while_loop"]
