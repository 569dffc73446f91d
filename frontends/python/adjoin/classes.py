"""adjoin.classes: where PyTorch has the classes of its compiled extensions: ``torch.classes.space.Name``. There are none here."""

import sys
import types

from .ops import load_library, loaded_libraries  # noqa: F401


class _Space:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"Tried to instantiate class '{self._name}.{name}', but it does not exist: no plugin brings classes; "
            "adjoin.plugin.load loads ops and devices"
        )


class _Classes(types.ModuleType):
    """The module: each name is a space."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _Space(name)


sys.modules[__name__].__class__ = _Classes
