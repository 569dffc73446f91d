"""adjoin.distributed.algorithms.ddp_comm_hooks: what DistributedDataParallel.register_comm_hook takes."""

from . import default_hooks, powerSGD_hook  # noqa: F401
