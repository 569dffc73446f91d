"""adjoin.autograd: gradients: of recorded programs, of functions, and checks of both."""

import importlib

from .._C import backward_is_whole as _is_checkpoint_valid  # noqa: F401
from .._C import (  # noqa: F401
    backward,
    enable_grad,
    grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from . import graph  # noqa: F401
from .anomaly_mode import detect_anomaly, set_detect_anomaly  # noqa: F401
from .function import Function  # noqa: F401
from .grad_mode import set_multithreading_enabled  # noqa: F401

_ROOMS = ("anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "profiler")
_CHECKS = ("gradcheck", "gradgradcheck")


def __getattr__(name):
    if name in _CHECKS:  # loaded when used: programs that train do not need it
        module = importlib.import_module(".gradcheck", __name__)
        # Importing put the module in the function's place.
        globals().update({check: getattr(module, check) for check in _CHECKS})
        return globals()[name]
    if name in _ROOMS:
        return importlib.import_module("." + name, __name__)
    if name == "NestedIOFunction":
        return importlib.import_module("._nested_io", __name__).NestedIOFunction
    if name in ("Variable", "variable"):
        module = importlib.import_module("._variable", __name__)
        return module if name == "variable" else module.Variable
    from .._hints import absent

    raise absent(__name__, name)


def __dir__():
    return sorted({*globals(), *_ROOMS, *_CHECKS, "NestedIOFunction", "Variable", "variable"})
