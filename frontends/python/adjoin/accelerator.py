"""adjoin.accelerator: the first device that is not the host, whatever it is called.

It is the first by name that a plugin provides and that is there; ADJOIN_ACCELERATOR names another one.
"""

from . import _C, _accelerator, _device_modules

globals().update(_device_modules.make(None))
current_device_index = globals()["current_device"]
set_device_index = globals()["set_device"]
device_index = globals()["device"]
get_memory_info = globals()["mem_get_info"]


def current_device_idx():
    """The older name of current_device_index."""
    return current_device_index()


def set_device_idx(device):
    """The older name of set_device_index."""
    set_device_index(device)


def empty_host_cache():
    """Gives the host's memory that nobody uses back to the system."""
    _C.memory_release("cpu")


def get_device_capability(device=None):
    """{"supported_dtypes": the dtypes of which tensors can be made there}."""
    where = _device_modules._there(None, device)
    found = set()
    for dtype in {value for value in vars(_C).values() if isinstance(value, _C.dtype)}:
        try:
            _C.find_op("empty")((0,), dtype=dtype, device=where)
        except (RuntimeError, NotImplementedError):
            continue
        found.add(dtype)
    return {"supported_dtypes": found}


def current_accelerator(check_available=False):
    """The device without an index, or None if there is none."""
    try:
        return _C.device(_accelerator._accelerator())
    except RuntimeError:
        return None
