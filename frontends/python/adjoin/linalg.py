"""adjoin.linalg: linear algebra: the ops of the registry whose names begin with ``linalg::``."""

import importlib

from ._C import _LinAlgError as LinAlgError  # noqa: F401
from .ops import _Space

_space = _Space("linalg", __name__)


_ROOTS = ("polar", "matrix_sqrth")  # written in Python


def __getattr__(name):
    home = importlib.import_module("._matrix_roots", __package__) if name in _ROOTS else _space
    globals()[name] = found = getattr(home, name)  # the next look-up is an ordinary one
    return found


def __dir__():
    return sorted({*dir(_space), *_ROOTS, "LinAlgError"})
