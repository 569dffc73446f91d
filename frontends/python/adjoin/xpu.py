"""adjoin.xpu: what programs ask of Intel's devices: a plugin that has some offers the device "xpu"."""

from . import _device_modules

globals().update(_device_modules.make("xpu"))
