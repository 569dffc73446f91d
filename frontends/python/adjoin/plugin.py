"""adjoin.plugin: plugins of the running process: who is there, who serves, lock files, coming and going."""

import atexit
import functools
import os
import shutil
import tempfile

from . import _C

_STATES = ("found", "loaded", "refused", "failed", "shadowed", "disabled")


def available():
    """Name and state of every plugin that was found: found, loaded, refused, failed, shadowed or disabled."""
    found = sorted(reversed(_C.plugin_list()), key=lambda p: _STATES[p["state"]] == "loaded")
    return {p["name"]: _STATES[p["state"]] for p in found}


def why(name):
    """Why a plugin, or what one provides ("device:acme"), serves or does not."""
    return _C.why_plugin(name)


def load(path, reload=False):
    """Loads a plugin from a file; with reload, in the place of the one of its name that is loaded."""
    if not reload:
        return _C.load_plugin(path)
    real = os.path.realpath(path)
    if any(p["path"] == real for p in _C.plugin_list()):  # under that path the linker may give the old file again
        real = shutil.copy(real, tempfile.mkdtemp(dir=_copies()))
    _C.replace_plugin(real)


@functools.cache
def _copies():
    folder = tempfile.mkdtemp(prefix="adjoin-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def disable(name):
    """Chooses its kernels, ops and services no more. Tensors and tapes stay as they are."""
    _C.disable_plugin(name)


def enable(name):
    """Undoes disable() and unload(): reads the file again and runs its init."""
    _C.enable_plugin(name)


def unload(name):
    """Disables a plugin and unmaps it. Returns "", or what keeps it mapped: a tape, a tensor, a thread."""
    return _C.unload_plugin(name)


class key:
    """Inside a with statement this thread's calls pass a dispatch key that a plugin defined: `with key("tally"): ...`."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before = _C.include_key(self.name, True)
        return self

    def __exit__(self, *error):
        _C.include_key(self.name, self.before)


def lock(path=None):
    """What this process is made of: libadjoin, plugins, their libraries, features of the processor."""
    text = _C.lock_text()
    if path is not None:
        with open(path, "w") as file:
            file.write(text)
    return text


def verify(path):
    """What differs here from a lock file: a list of texts, empty if nothing does."""
    return _C.verify_lock(path).splitlines()


def _rows(text):
    names, *lines = (line.split("\t") for line in text.splitlines())
    rows = [dict(zip(names, line, strict=False)) for line in lines]
    return [{k: int(v) if k in ("calls", "ns", "bytes") else v for k, v in row.items()} for row in rows]


class explain:
    """Counts, inside a with statement, who serves which op: `with explain() as served: ...`.

    Afterwards `served.rows` has a dictionary for each op and server: op, key, "served by", calls, ns, bytes, why.
    """

    rows = ()

    def __enter__(self):
        _C.trace(True)
        return self

    def __exit__(self, *error):
        self.rows = sorted(_rows(_C.trace(False)), key=lambda row: -row["ns"])

    def by(self, op):
        """The names of those who served an op."""
        return [row["served by"] for row in self.rows if row["op"] == op]
