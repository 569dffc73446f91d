"""adjoin.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: names that packages import; they raise when they are used."""

_INSTEAD = "PowerSGD is not served; default_hooks.fp16_compress_hook and bf16_compress_hook halve what is moved"


class PowerSGDState:
    """Raises, and says what to use."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(_INSTEAD)


def powerSGD_hook(state, bucket):
    """Raises, and says what to use."""
    raise NotImplementedError(_INSTEAD)


batched_powerSGD_hook = powerSGD_hook
