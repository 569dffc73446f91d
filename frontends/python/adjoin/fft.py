"""adjoin.fft: Fourier transforms: the ops of the registry whose names begin with ``fft::``."""

from .ops import _Space

_space = _Space("fft", __name__)


def __getattr__(name):
    return getattr(_space, name)


def __dir__():
    return dir(_space)
