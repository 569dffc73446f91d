"""adjoin.distributed.optim: optimizers whose state lies on several processes."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer  # noqa: F401
