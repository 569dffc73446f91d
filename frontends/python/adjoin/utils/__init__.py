"""adjoin.utils: what surrounds a model: data, hooks, checkpoints, progress bars and plots."""

import importlib

_ROOMS = ("checkpoint", "data", "hooks", "plots", "progress")


def __getattr__(name):
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_ROOMS])
