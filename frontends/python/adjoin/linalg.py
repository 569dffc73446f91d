"""adjoin.linalg: linear algebra: the ops of the registry whose names begin with ``linalg::``."""

from .ops import _Space

_space = _Space("linalg", __name__)


def __getattr__(name):
    return getattr(_space, name)


def __dir__():
    return dir(_space)
