"""adjoin.linalg: linear algebra: the ops of the registry whose names begin with ``linalg::``."""

from ._C import _LinAlgError as LinAlgError  # noqa: F401
from .ops import _Space

_space = _Space("linalg", __name__)


def __getattr__(name):
    globals()[name] = found = getattr(_space, name)  # the next look-up is an ordinary one
    return found


def __dir__():
    return sorted({*dir(_space), "LinAlgError"})
