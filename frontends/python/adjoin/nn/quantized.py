"""adjoin.nn.quantized: an older path to adjoin.ao.nn.quantized."""

from ..ao.nn.quantized import FloatFunctional  # noqa: F401
