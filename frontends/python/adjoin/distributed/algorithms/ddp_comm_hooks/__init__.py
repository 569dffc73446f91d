"""adjoin.distributed.algorithms.ddp_comm_hooks: what DistributedDataParallel.register_comm_hook takes."""

from . import default_hooks, post_localSGD_hook, powerSGD_hook  # noqa: F401
