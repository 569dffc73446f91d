"""adjoin.ops: every op of the registry as a function.

``ops.add``, ``ops.acme.squash`` and, where only one plugin has it, ``ops.squash``. No op is known
here by name.
"""

import os
import types

from . import _C
from ._hints import hint


def _unknown(name):
    space, _, last = name.rpartition("::")
    said = [line for line in _C.why_plugin("ops:" + name.partition("::")[0]).splitlines() if line.startswith("plugin ")]
    why = "".join(f"; {line}" for line in said if not line.endswith(": loaded"))
    # What is alike is a name of the same space: "linalg::inv" is like all the others by its space alone.
    beside = [n.rpartition("::")[2] for n in _names() if n.rpartition("::")[0] == space]
    way = hint(last, beside) or (f"; dir(adjoin.ops.{space}) tells what is there" if space and beside else "")
    way = way or "; dir(adjoin.ops) tells what is there"
    return AttributeError(f"no op named {name!r} in libadjoin or a loaded plugin{why or way}")


class _Space(types.ModuleType):
    """The ops whose names begin with ``space::``."""

    def __init__(self, space, module):
        super().__init__(module, f"The ops of the space {space!r}.")
        self._space = space

    def __getattr__(self, name):
        op = None if name.startswith("__") else _C.find_op(f"{self._space}::{name}")
        if op is None:
            raise _unknown(f"{self._space}::{name}")
        setattr(self, name, op)
        return op

    def __dir__(self):
        begin = self._space + "::"
        return sorted({n[len(begin) :] for n in _names() if n.startswith(begin) and "." not in n})


def _names():
    """Of ops that are there, and of those that files of plugins name, which a look-up loads."""
    waiting = (p["ops"] for p in _C.plugin_list() if p["ops"])
    return [*_C.op_names(True), *(line.split("(")[0] for text in waiting for line in text.splitlines())]


def _spaces():
    return {name.split("::")[0] for name in _names() if "::" in name}


def _homes():
    """Names that one space alone has, and which."""
    homes = {}
    for full in _C.op_names(True):
        space, _, name = full.rpartition("::")
        if space not in ("", "_") and "." not in name:  # "_": helpers of formulas
            homes[name] = "" if name in homes else full
    return {name: full for name, full in homes.items() if full}


loaded_libraries = set()


def load_library(path):
    """Loads a plugin's file, whose ops are found here then. OSError: it is none, as a compiled extension of PyTorch's."""
    path = os.path.realpath(os.fspath(path))
    if not os.path.isfile(path):
        raise OSError(f"ops.load_library: there is no file {path!r}")
    try:
        _C.load_plugin(path)
    except RuntimeError as error:
        raise OSError(
            f"ops.load_library: {path!r} is no plugin of Adjoin: {error}; compile it against adjoin/kit, as `adjoin new-op` shows"
        ) from error
    loaded_libraries.add(path)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = _C.find_op(name)
    if found is None and name in _spaces():
        found = _Space(name, f"{__name__}.{name}")
    if found is None:
        home = _homes().get(name)
        if home and (op := _C.find_op(home)):
            return op  # not kept: a plugin may bring a space, or a second op, of that name
    if found is None:
        _C.find_op(f"{name}::_")  # a plugin that provides the space may be waiting to be loaded
        found = _Space(name, f"{__name__}.{name}") if name in _spaces() else None
    if found is None:
        raise _unknown(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*_spaces(), *_homes(), *(n for n in _names() if "::" not in n and "." not in n)})
