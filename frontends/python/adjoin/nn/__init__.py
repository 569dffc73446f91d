"""adjoin.nn: networks: modules, parameters, functions, initial values and utilities."""

from . import functional, init, utils  # noqa: F401
from .modules import *
from .modules.module import Module  # noqa: F401
from .parameter import Buffer, Parameter  # noqa: F401
