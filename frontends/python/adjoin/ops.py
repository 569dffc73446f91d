"""adjoin.ops: every op of the registry as a function.

``ops.add``, ``ops.acme.squash`` and, where only one plugin has it, ``ops.squash``. No op is known
here by name.
"""

import difflib
import types

from . import _C


def _unknown(name):
    close = difflib.get_close_matches(name, _C.op_names(), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return AttributeError(f"no op named {name!r} in libadjoin or a loaded plugin{hint}")


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
        return sorted(n[len(begin) :] for n in _C.op_names() if n.startswith(begin))


def _spaces():
    return {name.split("::")[0] for name in _C.op_names() if "::" in name}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = _C.find_op(name)
    if found is None and name in _spaces():
        found = _Space(name, f"{__name__}.{name}")
    if found is None:
        homes = [n for n in _C.op_names() if n.endswith("::" + name)]
        found = _C.find_op(homes[0]) if len(homes) == 1 else None
    if found is None:
        _C.find_op(f"{name}::_")  # a plugin that provides the space may be waiting to be loaded
        found = _Space(name, f"{__name__}.{name}") if name in _spaces() else None
    if found is None:
        raise _unknown(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*_spaces(), *(n for n in _C.op_names() if "::" not in n)})
