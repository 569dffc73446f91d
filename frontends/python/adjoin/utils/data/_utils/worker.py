"""adjoin.utils.data._utils.worker: what programs ask in a process that loads batches."""

from .._worker import WorkerInfo, get_worker_info  # noqa: F401


def __getattr__(name):
    if name == "_worker_info":
        return get_worker_info()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _generate_state(base_seed, worker_id):
    """Four numbers of 32 bits for a generator of NumPy's, others for each seed and worker."""
    import random

    draws = random.Random(int(base_seed) << 32 | int(worker_id))
    return [draws.getrandbits(32) for _ in range(4)]
