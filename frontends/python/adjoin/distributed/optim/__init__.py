"""adjoin.distributed.optim: optimizers whose state lies on several processes."""

from .apply_optimizer_in_backward import _apply_optimizer_in_backward, _get_in_backward_optimizers  # noqa: F401
from .post_localSGD_optimizer import PostLocalSGDOptimizer  # noqa: F401
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer  # noqa: F401
