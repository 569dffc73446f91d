"""adjoin.torch._watch: writes down what a program asks of ``torch``, for ``adjoin run --report``.

The package's modules become modules of a class that notes who reads which name: whoever is no file of the package, and not
Python's import. Reading a name of such a module costs more; nothing else does. A process writes its file when it ends.
"""

import atexit
import importlib.abc
import json
import os
import pathlib
import sys
import types

import adjoin

PACKAGE = os.path.dirname(os.path.abspath(adjoin.__file__)) + os.sep
IMPORTLIB = os.path.dirname(importlib.__file__) + os.sep
VARIABLE = "ADJOIN_REPORT"

# What asks a tracer, a quantizer or an exporter for something: none is there. Their docstrings say what they do instead.
DO_LESS = ("torch.jit.", "torch._dynamo.", "torch.ao.", "torch.onnx.")

_used, _missing, _kept = {}, {}, {}  # name of torch's -> [times, first place]; in _kept with what it does instead
_real = types.ModuleType.__getattribute__


def _asker():
    """file:line of the frame that reads a name, or None if it is the package's own or Python's import."""
    frame = sys._getframe(2)
    file = frame.f_code.co_filename
    if file.startswith((PACKAGE, "<frozen ")):
        return None
    return f"{file}:{frame.f_lineno}"


def _note(where, name, asker, *more):
    line = where.setdefault(name, [0, asker, *more])
    line[0] += 1


def _said(module, name):
    """The name as programs write it."""
    _, _, rest = _real(module, "__name__").partition(".")
    return f"torch.{rest}.{name}" if rest else f"torch.{name}"


def _instead(name, value):
    """What a name does instead of PyTorch's work, or None. Questions (is_compiling) have true answers."""
    if not name.startswith(DO_LESS) or not callable(value) or name.rpartition(".")[2].startswith("is_"):
        return None
    return (value.__doc__ or "").partition("\n")[0]


class Watched(types.ModuleType):
    """A module that notes who reads its names."""

    def __getattribute__(self, name):
        if name.startswith("__"):
            return _real(self, name)
        asker = _asker()
        try:
            value = super().__getattribute__(name)
        except AttributeError:
            if asker:
                _note(_missing, _said(self, name), asker)
            raise
        if asker and not isinstance(value, types.ModuleType):
            _note(_used, _said(self, name), asker)
            if instead := _instead(_said(self, name), value):
                _note(_kept, _said(self, name), asker, instead)
        return value


class _Last(importlib.abc.MetaPathFinder):
    """Stands behind all finders: what reaches it is nowhere."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("torch."):
            frame = sys._getframe(1)
            while frame and frame.f_code.co_filename.startswith(("<frozen ", PACKAGE, IMPORTLIB)):
                frame = frame.f_back
            if frame:
                _note(_missing, name, f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return None


def _look_at_new_modules():
    for name, module in list(sys.modules.items()):
        if type(module) is types.ModuleType and name.partition(".")[0] == "adjoin" and name != "adjoin._C":
            module.__class__ = Watched


class _First(importlib.abc.MetaPathFinder):
    """Stands before all finders: modules that were loaded since the last import are watched from now on."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        _look_at_new_modules()
        return None


def _write(folder, owner):
    if os.getpid() != owner:
        return
    told = {
        "program": sys.argv[:1],
        "used": _used,
        "missing": _missing,
        "kept": _kept,
        "loops": [list(line[:4]) for line in adjoin.func.loops()] if "adjoin._vmap" in sys.modules else [],
    }
    pathlib.Path(folder, f"names-{owner}.json").write_text(json.dumps(told))


def start():
    """Watches from now on, if the environment asks for it."""
    folder = os.environ.get(VARIABLE)
    if not folder or not os.path.isdir(folder):
        return
    sys.meta_path.insert(0, _First)
    sys.meta_path.append(_Last)
    _look_at_new_modules()
    atexit.register(_write, folder, os.getpid())
