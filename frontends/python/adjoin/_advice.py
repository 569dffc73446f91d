"""adjoin._advice: what to do about an error that ended a program, where its message cannot say: a note below it.

Python's own errors of imports know nothing of PyTorch: that a compiled extension was made for its library, or what a module is
called here.
"""

import importlib
import pkgutil
import re
import sys

from ._hints import hint

_LIBRARIES = re.compile(r"\b(lib(?:torch|c10|shm)\w*\.so[.\d]*)")
_SYMBOLS = re.compile(r"undefined symbol: (_ZN?K?\w*?(?:2at|3c10|5torch|8caffe2)\w+|THP\w+)")


def _there(name):
    """The module of a name, if there is one."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _is_ours(name):
    module = sys.modules.get(name.partition(".")[0])
    return module is not None and module is sys.modules.get(__package__)


def _of_a_module(name):
    parent, _, last = name.rpartition(".")
    while parent and (home := _there(parent)) is None:
        parent, _, last = parent.rpartition(".")
    if not parent:
        return None
    names = [m.name for m in pkgutil.iter_modules(getattr(home, "__path__", ()))]
    alike = hint(last, names)
    asked = f"{parent}.{last}"
    what = f"{name.partition('.')[0]!r} is Adjoin here, which has no module {asked!r}"
    return what + (alike or "; `adjoin run --report` lists what a program asks for in vain")


def _of_a_name(module, text):
    asked = re.match(r"cannot import name '(\w+)'", text)
    home = _there(module)
    if asked is None or home is None:
        return None
    names = [*dir(home), *(m.name for m in pkgutil.iter_modules(getattr(home, "__path__", ())))]
    return f"{module!r} is Adjoin here, which has no {asked[1]!r}{hint(asked[1], names)}"


def _of_an_extension(text):
    found = _LIBRARIES.search(text) or _SYMBOLS.search(text)
    return found and (
        f"the file is compiled against PyTorch's library ({found[1]}), which Adjoin does not have: use the package without its compiled "
        "part if it can, or compile its sources against Adjoin (adjoin.utils.cpp_extension, `adjoin new-op`)"
    )


def advice(error):
    """A line for an ImportError or OSError, or None."""
    name = getattr(error, "name", None) or ""
    if isinstance(error, ModuleNotFoundError):
        return _of_a_module(name) if _is_ours(name) else None
    if isinstance(error, ImportError) and name and _is_ours(name):
        return _of_a_name(name, str(error))
    return _of_an_extension(str(error))
