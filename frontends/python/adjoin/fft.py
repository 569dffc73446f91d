"""adjoin.fft: Fourier transforms: the ops of the registry whose names begin with ``fft::``."""

from ._C import Tensor  # noqa: F401  for annotations
from .ops import _Space

_space = _Space("fft", __name__)


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    globals()[name] = found = getattr(_space, name)  # the next look-up is an ordinary one
    return found


def __dir__():
    return dir(_space)
