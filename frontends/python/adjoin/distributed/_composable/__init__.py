"""adjoin.distributed._composable: an older path to adjoin.distributed.fsdp."""

from ..fsdp import fully_shard  # noqa: F401
