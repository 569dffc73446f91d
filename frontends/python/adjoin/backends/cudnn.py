"""adjoin.backends.cudnn: whether cuDNN is there, and the switches programs set.

``benchmark`` lets the fastest algorithm of convolutions and large products be found by measuring; without it, and
with ``deterministic``, it is the library's proposal, which depends on the problem alone. ``allow_tf32`` lets
convolutions read float32 with 10 bits behind the point.
"""

import contextlib
import sys
import types

from ._switches import tell

enabled = True
deterministic = False
benchmark = False
allow_tf32 = False


def is_available():
    """Whether cuDNN is there."""
    return False


def is_built():
    """The same as is_available(): backends are found at run time."""
    return is_available()


def version():
    """cuDNN's version as a number, or None where it is not there."""
    return None


@contextlib.contextmanager
def flags(**switches):
    """Sets the switches inside a with statement."""
    module = sys.modules[__name__]
    before = {name: module.__dict__[name] for name in switches}
    try:
        for name, value in switches.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


_SWITCHES = {"deterministic": "deterministic", "benchmark": "benchmark", "allow_tf32": "tf32_convolutions"}


class _Module(types.ModuleType):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in _SWITCHES:
            tell("cuda", _SWITCHES[name], value)


sys.modules[__name__].__class__ = _Module
