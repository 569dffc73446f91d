"""adjoin.hip: what programs ask of the HIP device; the device itself is a plugin's."""

from . import _device_modules

globals().update(_device_modules.make("hip"))
