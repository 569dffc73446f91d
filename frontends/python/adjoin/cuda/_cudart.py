"""adjoin.cuda._cudart: what `cudart()` returns: the few functions of CUDA's runtime that programs call, by its driver.

They return the driver's number, 0 where it has worked, for check_error.
"""

import ctypes
import enum

from .. import _C
from . import _driver


class cudaError(enum.IntEnum):
    """Numbers that calls return."""

    success = 0
    invalidValue = 1
    memoryAllocation = 2
    notReady = 600


def cudaGetErrorString(error):
    """What a number means."""
    return _driver._text("cuGetErrorString", int(error))


def _here(function, *arguments):
    with _driver.current(_driver.device(None)):
        return _driver.ask(function, *arguments)


def cudaProfilerStart():
    """Tools begin to record."""
    return _here("cuProfilerStart")


def cudaProfilerStop():
    """Tools end to record."""
    return _here("cuProfilerStop")


def cudaHostRegister(ptr, size, flags=0):
    """Pins memory of the host that is there already."""
    return _here("cuMemHostRegister_v2", ctypes.c_void_p(ptr), ctypes.c_size_t(size), ctypes.c_uint(flags))


def cudaHostUnregister(ptr):
    """Ends what cudaHostRegister began."""
    return _here("cuMemHostUnregister", ctypes.c_void_p(ptr))


def cudaMemGetInfo(device=None):
    """(free, total) bytes of a device."""
    return _C.memory_info(_driver.device(device))
