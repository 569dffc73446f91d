"""adjoin.cpu: the names that other devices' modules have, for the host."""

from .. import _device_modules
from . import amp  # noqa: F401
from .._capabilities import StreamContext, get_capabilities  # noqa: F401

globals().update(_device_modules.make("cpu"))
