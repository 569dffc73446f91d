"""adjoin.distributed._composable.fsdp: an older path to adjoin.distributed.fsdp."""

from ..fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard  # noqa: F401
