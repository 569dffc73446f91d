"""adjoin.distributed._tensor.experimental: an older path to adjoin.distributed.tensor.experimental."""

from ..tensor.experimental import implicit_replication  # noqa: F401
