"""adjoin.distributed.optim: optimizers whose state lies on several processes."""

from .post_localSGD_optimizer import PostLocalSGDOptimizer  # noqa: F401
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer  # noqa: F401
