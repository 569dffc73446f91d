"""adjoin.distributed.optim: an optimizer whose state is divided among the processes."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer  # noqa: F401
