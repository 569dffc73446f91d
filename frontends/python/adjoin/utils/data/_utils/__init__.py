"""adjoin.utils.data._utils: where programs look for collate and its map in PyTorch."""

from . import collate, pin_memory, worker  # noqa: F401
