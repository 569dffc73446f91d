"""adjoin.signal: what signals are cut out with."""

from . import windows

__all__ = ["windows"]
