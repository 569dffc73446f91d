"""adjoin.utils: what surrounds a model: data, hooks, checkpoints, progress bars and plots."""

import importlib

_ROOMS = (
    "_pytree", "benchmark", "checkpoint", "collect_env", "cpp_extension", "data", "dlpack", "ffi", "hooks", "npz", "plots",
    "progress", "tensorboard",
)  # fmt: skip


def __getattr__(name):
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_ROOMS])
