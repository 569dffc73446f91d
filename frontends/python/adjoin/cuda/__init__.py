"""adjoin.cuda: what programs ask of the CUDA device; the device itself is a plugin's."""

from .. import _device_modules

globals().update(_device_modules.make("cuda"))
CUDAGraph = globals()["Graph"]


def __getattr__(name):
    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
