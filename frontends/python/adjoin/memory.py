"""adjoin.memory: what tensors take of a device's memory, the host's by default; names as in torch.accelerator."""

from . import _C


def memory_stats(device="cpu"):
    """Bytes in use, their peak, cached, the limit, and how often memory was asked for."""
    return _C.memory_stats(device)


def memory_allocated(device="cpu"):
    """Bytes that tensors take now, packed forms of weights among them."""
    return _C.memory_stats(device)["in_use"]


def max_memory_allocated(device="cpu"):
    """The most that tensors took at once since the start or the last reset."""
    return _C.memory_stats(device)["peak_in_use"]


def reset_peak_memory_stats(device="cpu"):
    """Begins to count the peak anew, before a training step for example."""
    _C.memory_reset_peak(device)


def memory_reserved(device="cpu"):
    """Bytes taken from the system: those in use and those kept for the next tensors."""
    stats = _C.memory_stats(device)
    return stats["in_use"] + stats["cached"]


def empty_cache(device="cpu"):
    """Gives what is kept back to the system: free memory and packed forms of weights."""
    _C.memory_release(device)
