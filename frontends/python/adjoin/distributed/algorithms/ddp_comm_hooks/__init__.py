"""adjoin.distributed.algorithms.ddp_comm_hooks: what DistributedDataParallel.register_comm_hook takes."""

import enum
import functools

from . import debugging_hooks, default_hooks, post_localSGD_hook, powerSGD_hook  # noqa: F401


def _state(rank):
    return functools.partial(powerSGD_hook.PowerSGDState, matrix_approximation_rank=rank)


class DDPCommHookType(enum.Enum):
    """Hooks by name: (the hook, what makes its state of the group that was given)."""

    ALLREDUCE = (default_hooks.allreduce_hook, None)
    FP16_COMPRESS = (default_hooks.fp16_compress_hook, None)
    BF16_COMPRESS = (default_hooks.bf16_compress_hook, None)
    POWER_SGD = (powerSGD_hook.powerSGD_hook, _state(1))
    POWER_SGD_RANK2 = (powerSGD_hook.powerSGD_hook, _state(2))
    BATCHED_POWER_SGD = (powerSGD_hook.batched_powerSGD_hook, _state(1))
    BATCHED_POWER_SGD_RANK2 = (powerSGD_hook.batched_powerSGD_hook, _state(2))
    NOOP = (debugging_hooks.noop_hook, None)


def register_ddp_comm_hook(comm_hook_type, model, state=None):
    """Registers a hook by its name; ``state`` is the group, of which the default one is None."""
    hook, make = comm_hook_type.value
    model.register_comm_hook(state if make is None else make(state), hook)
