"""adjoin.distributed._tensor.placement_types: an older path."""

from ..tensor.placement_types import Partial, Placement, Replicate, Shard  # noqa: F401
