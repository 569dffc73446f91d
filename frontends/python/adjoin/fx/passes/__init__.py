"""adjoin.fx.passes: programs over graphs that libraries use."""

from . import graph_drawer, shape_prop, split_module, split_utils  # noqa: F401
