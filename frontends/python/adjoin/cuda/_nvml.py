"""adjoin.cuda._nvml: what NVIDIA's management library measures of a device; the driver brings it, and it is opened when asked."""

import ctypes
import functools
import os

from .. import _C
from ._driver import device

_PROCESSES = 1024


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint),
    )  # fmt: skip


@functools.cache
def _library():
    path = os.environ.get("ADJOIN_NVML") or "libnvidia-ml.so.1"
    try:
        found = ctypes.CDLL(path)
    except OSError as wrong:
        raise RuntimeError(
            f"cuda: NVIDIA's management library is not here ({wrong}); NVIDIA's driver for Linux brings libnvidia-ml.so.1"
        ) from None
    found.nvmlErrorString.restype = ctypes.c_char_p
    _check(found, found.nvmlInit_v2())
    return found


def _check(library, code):
    if code:
        raise RuntimeError(f"cuda: NVML says {library.nvmlErrorString(code).decode()} ({code})")


def _ask(which, function, *arguments):
    """Calls a function about a device, which NVML knows by its place on the bus: it counts devices otherwise than a program."""
    which = device(which)
    library, handle = _library(), ctypes.c_void_p()
    bus = _C.device_props(which)["bus_id"].encode()
    _check(library, library.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)))
    if not hasattr(library, function):
        raise NotImplementedError(f"cuda: this driver's NVML has no {function}; a newer driver brings it")
    _check(library, getattr(library, function)(handle, *arguments))
    return which


def _number(which, function, *before):
    found = ctypes.c_uint()
    _ask(which, function, *before, ctypes.byref(found))
    return found.value


def utilization(device=None):
    """In how many of 100 parts of the last second a kernel ran."""
    rates = _Rates()
    _ask(device, "nvmlDeviceGetUtilizationRates", ctypes.byref(rates))
    return rates.gpu


def memory_usage(device=None):
    """In how many of 100 parts of the last second memory was read or written."""
    rates = _Rates()
    _ask(device, "nvmlDeviceGetUtilizationRates", ctypes.byref(rates))
    return rates.memory


def temperature(device=None):
    """Degrees Celsius of the device."""
    return _number(device, "nvmlDeviceGetTemperature", ctypes.c_uint(0))


def power_draw(device=None):
    """Milliwatts that the device takes."""
    return _number(device, "nvmlDeviceGetPowerUsage")


def clock_rate(device=None):
    """MHz of the multiprocessors' clock."""
    return _number(device, "nvmlDeviceGetClockInfo", ctypes.c_uint(1))


def device_memory_used(device=None):
    """Bytes of the device's memory that somebody uses, other processes too."""
    found = _Memory()
    _ask(device, "nvmlDeviceGetMemoryInfo", ctypes.byref(found))
    return found.used


def list_gpu_processes(device=None):
    """The processes that compute on the device and their memory, as text."""
    count, found = ctypes.c_uint(_PROCESSES), (_Process * _PROCESSES)()
    which = _ask(device, "nvmlDeviceGetComputeRunningProcesses_v3", ctypes.byref(count), found)
    lines = [f"process {p.pid:>10d} uses {p.used / (1 << 20):>12.3f} MB GPU memory" for p in found[: count.value]]
    return "\n".join([f"GPU:{which.index}", *(lines or ["no processes are running"])])
