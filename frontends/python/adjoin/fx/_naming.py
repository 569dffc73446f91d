"""adjoin.fx._naming: names of nodes, and names by which generated code reaches functions."""

import builtins
import functools
import keyword
import re
import sys
import types

import adjoin

from .._aten import OpOverloadPacket
from .._names import is_ours
from .._op_overload import OpOverload

__all__ = []


class Namespace:
    """Names that are given once each: ``relu``, ``relu_1``, ``relu_2``."""

    def __init__(self):
        self._of_object, self._used, self._last = {}, set(), {}

    def create_name(self, candidate, obj=None):
        """A name like ``candidate`` that is free; the same one again for the same object."""
        if obj is not None and id(obj) in self._of_object:
            return self._of_object[id(obj)][0]
        candidate = re.sub(r"\W", "_", candidate, flags=re.ASCII) or "_unnamed"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        split = re.fullmatch(r"(.*)_(\d+)", candidate)
        base = split[1] if split else candidate
        count = int(split[2]) if split else self._last.get(base, 0)
        if not split and (base in self._last or _reserved(candidate, obj)):
            candidate = f"{base}_{count}" if count else candidate
        while candidate in self._used or _reserved(candidate, obj):
            count += 1
            candidate = f"{base}_{count}"
        self.claim(candidate, obj)
        self._last[base] = max(count, self._last.get(base, 0))
        return candidate

    def claim(self, name, obj=None):
        """Marks a name as given; the object is kept, so that its id stays its own."""
        self._used.add(name)
        if obj is not None:
            self._of_object[id(obj)] = (name, obj)

    def owner_of(self, name):
        """Whether a name is given."""
        return name in self._used

    def rename(self, obj, name):
        """Gives an object another name, which must be free."""
        if name in self._used:
            raise AssertionError(f"the name {name!r} is another node's")
        self.claim(name, obj)


_RESERVED = {"torch", "adjoin", "inf", "nan", "NoneType", "device", "fx_pytree", "pytree"}


def _reserved(name, obj):
    if keyword.iskeyword(name):
        return True
    if name in builtins.__dict__:
        return builtins.__dict__[name] is not obj
    return name in _RESERVED and obj is not adjoin


def snake_case(text):
    """CamelCase as camel_case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()


def candidate_for(target):
    """What a node that calls ``target`` is called, before it is made unique."""
    text = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if text.startswith("__") and text.endswith("__"):
        text = text[2:-2]
    return snake_case(text.replace("**", "_").replace(".", "_"))


def root():
    """What the package is called in this process: adjoin, or torch."""
    return adjoin.__name__


def _reached(path):
    """What a dotted path from the package gives, or None."""
    found = adjoin
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def is_own(function):
    """Whether it is a part of Adjoin."""
    return function is adjoin or str(getattr(function, "__module__", "")).partition(".")[0] in ("adjoin", "torch")


@functools.cache
def _public_path(function):
    """adjoin.nn.functional.softmax for a function that is defined in a file below, or None."""
    name = getattr(function, "__name__", None)
    if not name:
        return None
    module = str(getattr(function, "__module__", "") or "adjoin")
    module = "adjoin" + module.removeprefix("torch") if is_ours(module) and module.startswith("torch") else module
    for home in ("adjoin", "adjoin.nn.functional", "adjoin.linalg", "adjoin.special", "adjoin.fft", module):
        if _reached(f"{home}.{name}") is function:
            return f"{home}.{name}"
    there = sys.modules.get(module)
    if there is not None and getattr(there, name, None) is function:
        return f"{module}.{name}"
    if hasattr(adjoin.Tensor, name) and getattr(adjoin.Tensor, name) is function:
        return f"adjoin.Tensor.{name}"
    return None


def qualified_name(function):
    """The path at which a function stands: operator.add, torch.nn.functional.gelu, package.module.function."""
    name = getattr(function, "__name__", None)
    if name and getattr(builtins, name, None) is function:
        return "builtins." + name if name == "getattr" else name
    if is_own(function):
        path = _public_path(function)
        if path is not None:
            return root() + path.removeprefix("adjoin")
    if isinstance(function, types.MethodDescriptorType | types.MethodWrapperType | types.WrapperDescriptorType):
        return f"{root()}.Tensor.{name}"
    module = (getattr(function, "__module__", None) or "").replace("_operator", "operator")
    module = (
        module.replace("torch._ops.", f"{root()}.ops.")
        if isinstance(function, OpOverload | OpOverloadPacket)
        else module
    )
    name = name or type(function).__name__
    return f"{module}.{name}" if module else name
