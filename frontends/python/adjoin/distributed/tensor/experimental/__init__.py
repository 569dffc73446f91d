"""adjoin.distributed.tensor.experimental: what PyTorch has under this name."""

from .._api import implicit_replication  # noqa: F401
from ._func_map import local_map  # noqa: F401
