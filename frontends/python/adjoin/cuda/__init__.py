"""adjoin.cuda: what programs ask of the CUDA device; the device itself is a plugin's."""

from .. import _device_modules

globals().update(_device_modules.make("cuda"))
CUDAGraph = globals()["Graph"]


def __getattr__(name):
    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    if name.endswith("Tensor"):
        from .._legacy import elsewhere

        found = globals()[name] = elsewhere(name, "cuda")
        if found is not None:
            return found
        del globals()[name]
    from .._hints import absent

    raise absent(__name__, name)


def __dir__():
    from .._tensor import _TYPES

    return sorted({*globals(), "amp", *_TYPES.values()})
