"""adjoin._c_nn: ``torch._C._nn``: functions of networks, where libraries reach below nn.functional."""

from .nn import functional
from .nn.modules._conversion import _parse_to  # noqa: F401


def __getattr__(name):
    return getattr(functional, name)


def __dir__():
    return sorted({*globals(), *dir(functional)})
