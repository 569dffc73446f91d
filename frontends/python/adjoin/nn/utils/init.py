"""adjoin.nn.utils.init: modules made without initial values."""

import inspect

import adjoin

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """A module whose parameters and buffers hold whatever their memory holds: made on the device
    ``meta``, then moved to ``device`` (by default the CPU) as it is."""
    if not issubclass(module_cls, adjoin.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)
