"""adjoin.mps: what programs ask of Metal's devices: a plugin that has some offers the device "mps"."""

from . import _device_modules

_made = _device_modules.make("mps")
globals().update(_made)


def _of_memory(name, of):
    def ask():
        if not _made["is_available"]():
            raise RuntimeError(f"mps.{name}: no plugin offers the device 'mps'; ask mps.is_available() first")
        return _made[of]()

    ask.__name__, ask.__doc__ = name, f"{of} of the device; raises where there is none."
    return ask


current_allocated_memory = _of_memory("current_allocated_memory", "memory_allocated")
driver_allocated_memory = _of_memory("driver_allocated_memory", "memory_reserved")
