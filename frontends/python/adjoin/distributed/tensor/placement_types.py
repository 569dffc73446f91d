"""adjoin.distributed.tensor.placement_types: where a tensor's parts lie."""

from . import Partial, Placement, Replicate, Shard  # noqa: F401


class _StridedShard(Shard):
    """A part of a part; none is made here."""

    def __init__(self, dim, *, split_factor):
        raise NotImplementedError("_StridedShard: tensors are not cut over processes here; Shard is a name alone")
