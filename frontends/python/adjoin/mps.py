"""adjoin.mps: what programs ask of Metal's devices: a plugin that has some offers the device "mps"."""

from . import _device_modules

globals().update(_device_modules.make("mps"))
