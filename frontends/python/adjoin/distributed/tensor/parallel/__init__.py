"""adjoin.distributed.tensor.parallel: a module's layers in parts on several processes."""

from ._loss import loss_parallel  # noqa: F401
from ._styles import (  # noqa: F401
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
