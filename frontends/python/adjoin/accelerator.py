"""adjoin.accelerator: the first device that is not the host, whatever it is called.

It is the first by name that a plugin provides and that is there; ADJOIN_ACCELERATOR names another one.
"""

from . import _C, _accelerator, _device_modules

globals().update(_device_modules.make(None))
current_device_index = globals()["current_device"]
set_device_index = globals()["set_device"]
device_index = globals()["device"]


def current_accelerator(check_available=False):
    """The device without an index, or None if there is none."""
    try:
        return _C.device(_accelerator._accelerator())
    except RuntimeError:
        return None
