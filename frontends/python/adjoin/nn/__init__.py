"""adjoin.nn: networks: modules, parameters, functions, initial values and utilities."""

import importlib

from .._hints import getattr_of
from . import functional, init, utils  # noqa: F401
from ._functional.linear_loss import LinearCrossEntropyOptions  # noqa: F401
from .modules import *
from .modules.module import Module  # noqa: F401
from .parallel import DataParallel  # noqa: F401
from .parameter import (  # noqa: F401
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)


def factory_kwargs(kwargs):
    """The device, dtype and memory_format among a layer's keywords, or in its ``factory_kwargs``: what ``empty`` takes."""
    simple = {"device", "dtype", "memory_format"}
    unknown = sorted(set(kwargs or ()) - simple - {"factory_kwargs"})
    if unknown:
        raise TypeError(
            f"factory_kwargs: unexpected {', '.join(unknown)}; known are {', '.join(sorted(simple))}, factory_kwargs"
        )
    found = dict((kwargs or {}).get("factory_kwargs", {}))
    for name in simple & set(kwargs or ()):
        if name in found:
            raise TypeError(f"factory_kwargs: {name} is given twice, by itself and in factory_kwargs")
        found[name] = kwargs[name]
    return found


_absent = getattr_of(__name__)


def __getattr__(name):
    if name in ("grad", "quantized"):
        return importlib.import_module("." + name, __name__)
    return _absent(name)
