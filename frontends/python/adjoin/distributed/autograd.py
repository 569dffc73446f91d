"""adjoin.distributed.autograd: backward passes across calls of torch.distributed.rpc: there are none here, and is_available() says so."""


def is_available():
    """False, as of torch.distributed.rpc."""
    return False


class context:
    """The context of such a pass; it refuses to be entered."""

    def __enter__(self):
        raise RuntimeError(
            "distributed.autograd.context: backward passes across processes by rpc are not served; use "
            "DistributedDataParallel, or the differentiable collectives of torch.distributed.nn"
        )

    def __exit__(self, *error):
        pass
