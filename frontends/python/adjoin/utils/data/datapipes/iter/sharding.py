"""adjoin.utils.data.datapipes.iter.sharding: PyTorch's place of the step that divides data among readers."""

from .._order import SHARDING_PRIORITIES, ShardingFilter

__all__ = ["SHARDING_PRIORITIES", "ShardingFilter"]
