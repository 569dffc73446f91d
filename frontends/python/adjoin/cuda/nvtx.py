"""adjoin.cuda.nvtx: named ranges in the pictures of NVIDIA's tools, through its library, which is opened when first used."""

import contextlib
import ctypes
import functools
import glob
import os
import sys

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_NAMES = ("libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so")


@functools.cache
def _library():
    named = os.environ.get("ADJOIN_NVTX")
    packages = [
        found for folder in sys.path for name in _NAMES for found in sorted(glob.glob(f"{folder}/nvidia/*/lib/{name}"))
    ]
    for path in [named] if named else [*_NAMES, *packages]:
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(path)
            library.nvtxRangeStartA.restype = ctypes.c_uint64
            return library
    raise RuntimeError(
        f"nvtx: none of {', '.join([named] if named else _NAMES)} was found, so no tool would see the range; "
        "pip install nvidia-nvtx-cu12 brings it, ADJOIN_NVTX names it; adjoin.profiler.record_function needs none"
    )


def mark(msg):
    """A moment with a name."""
    _library().nvtxMarkA(str(msg).encode())


def range_push(msg):
    """A range begins on this thread; how many were open."""
    return _library().nvtxRangePushA(str(msg).encode())


def range_pop():
    """The last range that was begun on this thread ends; how many are open, or a negative number if none was."""
    return _library().nvtxRangePop()


def range_start(msg):
    """A range begins that any thread may end; its number."""
    return _library().nvtxRangeStartA(str(msg).encode())


def range_end(range_id):
    """The range of that number ends."""
    _library().nvtxRangeEnd(ctypes.c_uint64(range_id))


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    """A range for a with statement or a function; msg is formatted with the arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
