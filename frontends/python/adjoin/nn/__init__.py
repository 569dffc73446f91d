"""adjoin.nn: networks: modules, parameters, functions, initial values and utilities."""

from . import functional, init, utils  # noqa: F401
from .modules import *
from .modules.module import Module  # noqa: F401
from .parallel import DataParallel  # noqa: F401
from .parameter import (  # noqa: F401
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)
