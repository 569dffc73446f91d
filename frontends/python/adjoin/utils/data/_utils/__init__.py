"""adjoin.utils.data._utils: where programs look for collate and its map in PyTorch."""

from . import collate, worker  # noqa: F401
