"""adjoin.cpu: the names that other devices' modules have, for the host."""

from . import _device_modules

globals().update(_device_modules.make("cpu"))
