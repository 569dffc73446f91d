"""adjoin.distributed.fsdp.fully_sharded_data_parallel: the longer path to the same names."""

from . import FSDPModule, FullyShardedDataParallel  # noqa: F401
