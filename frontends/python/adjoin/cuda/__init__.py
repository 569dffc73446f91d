"""adjoin.cuda: what programs ask of the CUDA device; the device itself is a plugin's."""

import importlib
import warnings

from .. import _C, _device_modules

_made = _device_modules.make("cuda")
globals().update(_made)
CUDAGraph, device_count, current_stream = _made["Graph"], _made["device_count"], _made["current_stream"]
has_half, has_magma = True, False

_MODULES = ("amp", "comm", "graphs", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "streams", "tunable")
_HOMES = {  # names that are looked up when they are first asked for
    "_nvml": "clock_rate device_memory_used list_gpu_processes memory_usage power_draw temperature utilization",
    "_driver": "CudaError",
}
_LATE = {name: home for home, names in _HOMES.items() for name in names.split()}


class DeferredCudaCallError(Exception):
    """Of PyTorch, which puts calls off until the device starts; here nothing is put off, so nothing raises it."""


class cudaStatus:
    """Numbers that calls of cudart() return."""

    SUCCESS, ERROR_NOT_READY = 0, 600


def get_device_capability(device=None):
    """(major, minor) of the device's architecture."""
    from ._driver import device as there

    number = int(_C.device_props(there(device))["arch"].removeprefix("sm_"))
    return divmod(number, 10)


def get_device_properties(device=None):
    """Name, architecture and sizes."""
    from . import _driver

    device = _driver.device(device)
    found = _made["get_device_properties"](device)
    vars(found).update(_driver.attributes(device), gcnArchName=found.arch)
    return found


def get_arch_list():
    """The architectures that the plugin has kernels for: machine code, then what newer devices compile."""
    from ._images import architectures

    return architectures()


def _lazy_call(callable, **kwargs):
    """Calls what is to be done once the device is there: now, or never where there is none."""
    if _made["is_available"]():
        callable()


def get_gencode_flags():
    """get_arch_list as options of nvcc's."""
    numbers = [(name, name.split("_")[1]) for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{number},code={name}" for name, number in numbers)


def can_device_access_peer(device, peer_device):
    """Whether a device reads and writes the memory of another one by itself."""
    from . import _driver

    device, peer_device = _driver.device(device), _driver.device(peer_device)
    return device != peer_device and _driver.reaches(device, peer_device)


def is_current_stream_capturing():
    """Whether what is queued on the current stream is kept for a graph; False where there is no device."""
    from . import _driver

    return bool(device_count()) and _driver.captures(current_stream())


def is_bf16_supported(including_emulation=True):
    """Whether kernels take bfloat16; without emulation: whether the device has instructions for it."""
    return bool(device_count()) and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported():
    """Whether the device multiplies float32 with 10 bits behind the point."""
    return bool(device_count()) and get_device_capability()[0] >= 8


def cudart():
    """The functions of CUDA's runtime that programs call."""
    from . import _cudart

    _C.device_props("cuda")
    return _cudart


def check_error(res):
    """Raises CudaError for what a function of cudart() has returned, unless it is 0."""
    if res != cudaStatus.SUCCESS:
        from ._driver import CudaError

        raise CudaError(res)


def get_allocator_backend():
    """Whose cache serves: "native", Adjoin's own."""
    return "native"


def get_sync_debug_mode():
    """0: calls that wait for the device do so without a word."""
    return 0


def set_sync_debug_mode(debug_mode):
    """0 and "default" are how it is; others are an error that says what to use."""
    if debug_mode not in (0, "default"):
        raise NotImplementedError(
            f"set_sync_debug_mode: {debug_mode!r} is not offered: waits are not reported one by one; adjoin.profiler shows "
            "which calls take their time"
        )


def _renamed(old, new):
    def call(*args, **kwargs):
        warnings.warn(f"cuda.{old} is called {new} now", FutureWarning, stacklevel=2)
        return globals()[new](*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"The older name of {new}."
    return call


memory_cached = _renamed("memory_cached", "memory_reserved")
max_memory_cached = _renamed("max_memory_cached", "max_memory_reserved")


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _LATE:
        found = globals()[name] = getattr(importlib.import_module(f".{_LATE[name]}", __name__), name)
        return found
    if name == "default_generators":
        return tuple(_C.default_generator(_C.device("cuda", index)) for index in range(device_count()))
    if name == "OutOfMemoryError":
        return importlib.import_module("..", __name__).OutOfMemoryError
    if name.endswith("Tensor"):
        from .._legacy import elsewhere

        found = globals()[name] = elsewhere(name, "cuda")
        if found is not None:
            return found
        del globals()[name]
    from ._absent import find

    if found := find(name):
        globals()[name] = found
        return found
    from .._hints import absent

    raise absent(__name__, name)


def __dir__():
    from .._tensor import _TYPES
    from ._absent import WHY

    late = ("default_generators", "OutOfMemoryError")
    return sorted({*globals(), *_MODULES, *_LATE, *_TYPES.values(), *WHY, *late})
