"""adjoin.cuda._driver: what CUDA's driver says of a device and does for a program, through the library that the plugin opens."""

import contextlib
import ctypes
import functools
import os
import uuid

from .. import _C
from .._accelerator import _device

_ATTRIBUTES = {  # CUdevice_attribute of NVIDIA's driver
    "max_threads_per_block": 1, "shared_memory_per_block": 8, "warp_size": 10, "clock_rate": 13, "is_integrated": 18,
    "pci_bus_id": 33, "pci_device_id": 34, "memory_clock_rate": 36, "memory_bus_width": 37, "L2_cache_size": 38,
    "max_threads_per_multi_processor": 39, "pci_domain_id": 50, "major": 75, "minor": 76,
    "shared_memory_per_multiprocessor": 81, "regs_per_multiprocessor": 82, "is_multi_gpu_board": 84,
    "shared_memory_per_block_optin": 97,
}  # fmt: skip
_FLAGS = ("is_integrated", "is_multi_gpu_board")


class CudaError(RuntimeError):
    """What CUDA's driver has answered, with its number as `code`."""

    def __init__(self, code):
        self.code = int(code)
        super().__init__(f"{_text('cuGetErrorString', self.code)} ({_text('cuGetErrorName', self.code)}, {self.code})")


def device(which):
    """A CUDA device that is there, with its index; the error of the plugin says why there is none."""
    found = _device("cuda", which)
    _C.device_props(found)
    return found


@functools.cache
def library():
    """The driver's library."""
    path = os.environ.get("ADJOIN_CUDA_DRIVER") or "libcuda.so.1"
    try:
        return ctypes.CDLL(path)
    except OSError as wrong:
        raise RuntimeError(
            f"cuda: CUDA's driver is not here ({wrong}); NVIDIA's driver for Linux brings libcuda.so.1"
        ) from None


def _text(function, code):
    said = ctypes.c_char_p()
    with contextlib.suppress(RuntimeError):
        getattr(library(), function)(code, ctypes.byref(said))
    return (said.value or b"unknown").decode()


def ask(function, *arguments):
    """The driver's number for a call; 0 is success."""
    if not hasattr(library(), function):
        raise NotImplementedError(f"cuda: this driver has no {function}; a newer one brings it")
    return getattr(library(), function)(*arguments)


def do(function, *arguments):
    """A call of the driver's; raises what it answers."""
    if code := ask(function, *arguments):
        raise CudaError(code)


@contextlib.contextmanager
def current(which):
    """The device is where the thread's calls of the driver go."""
    before, there = ctypes.c_void_p(), ctypes.c_void_p()
    do("cuCtxGetCurrent", ctypes.byref(before))
    do("cuDevicePrimaryCtxRetain", ctypes.byref(there), ctypes.c_int(which.index))
    try:
        do("cuCtxSetCurrent", there)
        yield
    finally:
        do("cuCtxSetCurrent", before)
        ask("cuDevicePrimaryCtxRelease_v2", ctypes.c_int(which.index))


def attribute(which, name):
    """A number of a device, by its name here."""
    found = ctypes.c_int()
    do("cuDeviceGetAttribute", ctypes.byref(found), _ATTRIBUTES[name], ctypes.c_int(which.index))
    return bool(found.value) if name in _FLAGS else found.value


def attributes(which):
    """All numbers of a device."""
    found = {name: attribute(which, name) for name in _ATTRIBUTES}
    number = (ctypes.c_ubyte * 16)()
    if hasattr(library(), "cuDeviceGetUuid_v2"):
        do("cuDeviceGetUuid_v2", number, ctypes.c_int(which.index))
        found["uuid"] = uuid.UUID(bytes=bytes(number))
    return found


def reaches(which, peer):
    """Whether a device reads and writes the memory of another one by itself."""
    can = ctypes.c_int()
    do("cuDeviceCanAccessPeer", ctypes.byref(can), ctypes.c_int(which.index), ctypes.c_int(peer.index))
    return bool(can.value)


def captures(stream):
    """Whether what is queued on a stream is kept for a graph, its own or one that it has joined."""
    status = ctypes.c_int()
    if not stream._handle:
        return False  # the device's own stream is never captured
    with current(stream.device):
        do("cuStreamIsCapturing", ctypes.c_void_p(stream._handle), ctypes.byref(status))
    return status.value != 0
