"""adjoin.distributed.tensor: tensors in parts on several processes, and where the parts lie."""

from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros  # noqa: F401
from .placement_types import Partial, Placement, Replicate, Shard  # noqa: F401
