"""adjoin.cuda: what programs ask of the CUDA device; the device itself is a plugin's."""

from . import _C


def device_count():
    """How many CUDA devices there are; 0 without the plugin."""
    try:
        return _C.device_count("cuda")
    except RuntimeError:
        return 0


def is_available():
    """Whether there is a CUDA device."""
    return device_count() > 0


def current_device():
    """The number of the device that "cuda" means."""
    return 0


def set_device(device):
    """Only the first device can be the current one yet."""
    index = device if isinstance(device, int) else _C.device(device).index
    if index:
        raise NotImplementedError("cuda.set_device: name the device instead: device='cuda:1'")


def is_bf16_supported():
    """Whether the device computes in bfloat16."""
    return is_available()


def is_initialized():
    """Whether a CUDA device has been used."""
    return False


def synchronize(device=None):
    """Waits until everything on the device has finished."""
    if is_available():
        _C.synchronize(device or "cuda")


def empty_cache():
    """Gives cached memory back to the system."""
    if is_available():
        _C.memory_release("cuda")


def manual_seed(seed):
    """Seeds every default generator."""
    _C.manual_seed(seed)


manual_seed_all = manual_seed


def memory_allocated(device=None):
    """Bytes in use."""
    return _C.memory_stats(device or "cuda")["in_use"] if is_available() else 0


def max_memory_allocated(device=None):
    """The most bytes that were in use."""
    return _C.memory_stats(device or "cuda")["peak_in_use"] if is_available() else 0


def memory_reserved(device=None):
    """Bytes taken from the system."""
    if not is_available():
        return 0
    stats = _C.memory_stats(device or "cuda")
    return stats["in_use"] + stats["cached"]


def reset_peak_memory_stats(device=None):
    """Begins to count the peak anew."""
    if is_available():
        _C.memory_reset_peak(device or "cuda")
