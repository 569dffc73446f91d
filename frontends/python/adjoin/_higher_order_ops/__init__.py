"""adjoin._higher_order_ops: control flow over tensors, by the names that PyTorch has for it below the package.

Each computes what it says in eager mode, with derivatives; cond, while_loop and scan are kept by a program that is traced.
"""

from .associative_scan import associative_scan
from .cond import cond
from .foreach_map import foreach_map
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]
