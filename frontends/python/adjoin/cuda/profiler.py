"""adjoin.cuda.profiler: where NVIDIA's tools begin and end to record, if they were told to wait for it."""

import contextlib

from . import _driver

__all__ = ["profile", "start", "stop"]


def start():
    """Tools begin to record."""
    with _driver.current(_driver.device(None)):
        _driver.do("cuProfilerStart")


def stop():
    """Tools end to record."""
    with _driver.current(_driver.device(None)):
        _driver.do("cuProfilerStop")


@contextlib.contextmanager
def profile():
    """Tools record what the with statement does."""
    start()
    try:
        yield
    finally:
        stop()
