"""adjoin.fx.passes: programs over graphs that libraries use."""

from . import graph_drawer, operator_support, shape_prop, split_module, split_utils  # noqa: F401
