"""adjoin.legacy: the packages of 2016 in the style of Lua: nn, whose modules go back by hand, and optim, whose methods are functions."""

from . import nn, optim  # noqa: F401
