"""adjoin.quantization: an older path to adjoin.ao.quantization."""

from .ao.quantization import *  # noqa: F403
