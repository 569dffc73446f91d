"""adjoin.ops: every op of the registry as a function.

``ops.add``, ``ops.acme.squash`` and, where only one plugin has it and libadjoin not, ``ops.squash``. No op is known
here by name.
"""

import importlib
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
        if not hasattr(op, "default"):
            from ._op_overload import OpOverload

            op.default = OpOverload(op, f"{self._space}::{name}")
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
    """Names that one space alone has, and which; libadjoin's own op comes before those of plugins."""
    homes = {}
    for full in _C.op_names(True):
        space, _, name = full.rpartition("::")
        if space not in ("", "_") and "." not in name:  # "_": helpers of formulas
            homes.setdefault(name, []).append(full)
    for name, there in homes.items():
        if len(there) > 1:
            homes[name] = [full for full in there if not _C.op_info(full)[0]["provider"]]
    return {name: there[0] for name, there in homes.items() if len(there) == 1}


loaded_libraries = set()
# Compiled extensions of PyTorch's that a space of ours stands in for: by package, by file; a file's ending _stable is none of it.
_STAND_INS = {
    "torchvision": {"_C": "torchvision", "image": "image"},
    "torchaudio": {"_torchaudio": "torchaudio", "libtorchaudio": "torchaudio"},
}
stood_in = set()  # their spaces: what packages register for these ops is brought by our own
_DEFINED_LATE = {
    "image": "_image_files",
    "torchaudio": "_audio_filters",
}  # spaces that Python defines when they are asked for


# Spaces that PyTorch always has: packages name them before they ask whether an op is there.
_OF_PYTORCH = frozenset(
    "c10d c10d_functional _c10d_functional inductor mkldnn onednn prims quantized quantized_decomposed".split()
)


def _stands_in(path):
    folder, file = os.path.split(path)
    folder = os.path.dirname(folder) if os.path.basename(folder) == "lib" else folder
    stem = file.split(".")[0].removesuffix("_stable")
    space = _STAND_INS.get(os.path.basename(folder), {}).get(stem)
    if space is None or not _space_is_there(space):
        return False
    stood_in.add(space)
    return True


def _space_is_there(space):
    if space in _DEFINED_LATE:
        importlib.import_module(f"{__package__}.{_DEFINED_LATE[space]}")
    return space in _spaces()


def load_library(path):
    """Loads a plugin's file, whose ops are found here then. OSError: it is none, as a compiled extension of PyTorch's."""
    path = os.path.realpath(os.fspath(path))
    if not os.path.isfile(path):
        raise OSError(f"ops.load_library: there is no file {path!r}")
    try:
        _C.load_plugin(path)
    except RuntimeError as error:
        if _stands_in(path):
            loaded_libraries.add(path)
            return
        raise OSError(
            f"ops.load_library: {path!r} is no plugin of Adjoin: {error}; compile it against adjoin/kit, as `adjoin new-op` shows"
        ) from error
    loaded_libraries.add(path)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "aten":
        from ._aten import Aten

        found = globals()[name] = Aten(f"{__name__}.aten", "The ops under the names of PyTorch's dispatcher.")
        return found
    if name == "prim":
        from ._aten import prim

        return prim
    if name == "_torchaudio":
        return importlib.import_module(f"{__package__}._audio_filters").Facts
    found = _C.find_op(name)
    if found is None and (name in _DEFINED_LATE or name in _spaces()) and _space_is_there(name):
        found = _Space(name, f"{__name__}.{name}")
    if found is None:
        home = _homes().get(name)
        if home and (op := _C.find_op(home)):
            return op  # not kept: a plugin may bring a space, or a second op, of that name
    if found is None:
        _C.find_op(f"{name}::_")  # a plugin that provides the space may be waiting to be loaded
        found = _Space(name, f"{__name__}.{name}") if name in _spaces() else None
    if found is None and name in _OF_PYTORCH:
        return _Space(name, f"{__name__}.{name}")  # not kept: a plugin may bring it
    if found is None:
        raise _unknown(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*_spaces(), *_homes(), *(n for n in _names() if "::" not in n and "." not in n)})
