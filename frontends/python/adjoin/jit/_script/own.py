"""adjoin.jit._script.own: modules of a class of one's own over ScriptModule: methods that are marked, or given as text, are a program."""

import functools
import sys

from ... import _C
from .. import ScriptModule

_PLAIN = (bool, int, float, str, list, tuple, dict, type(None))


def method(function):
    """The method that runs as a program once its module is made."""

    @functools.wraps(function)
    def call(self, *args, **kwargs):
        if not isinstance(self, ScriptModule) or "_functions" in self.__dict__:
            return function(self, *args, **kwargs)
        if program(self)._pythons:  # it calls what is marked as Python's, so it stays Python while that is there
            return function(self, *args, **kwargs)
        return run(self, function.__name__, args, kwargs)

    call._torchscript_modifier = "export"
    return call


def define(module, text, known):
    from . import defined

    cls = type(module)
    space = {**vars(sys.modules.get(cls.__module__, sys)), **known}
    made = {name: method(f) for name, f in defined(text, space).items()}
    for f in made.values():
        f.__wrapped__.__qualname__ = f"{cls.__qualname__}.{f.__name__}"
    own = (
        cls if "_defined" in vars(cls) else type(cls.__name__, (cls,), {"_defined": True, "__module__": cls.__module__})
    )
    for name, f in made.items():
        setattr(own, name, f)
    module.__class__ = own
    forget(module)
    program(module)  # what is wrong is told here


def state(module):
    """What a program was made of: plain attributes and the tensors of all parts."""
    found = []
    for m in module.modules():
        found.append(type(m))
        for space in (m._parameters, m._buffers, m._modules):
            found += [(name, id(x)) for name, x in space.items()]
        found += [(name, repr(x)) for name, x in m.__dict__.items() if name[0] != "_" and isinstance(x, _PLAIN)]
    return found


def forget(module):
    module.__dict__["_own"] = None


def program(module):
    """The program of the module as it is now."""
    from .face import scripted_module

    now, kept = state(module), module.__dict__.get("_own")
    if kept is None or kept[0] != now:
        module.__dict__.pop("_own", None)  # it is no attribute of the program
        kept = now, scripted_module(module)
        module.__dict__["_own"] = kept
    return kept[1]


def run(module, name, args, kwargs):
    made = program(module)
    result = made._call_function(name, args, kwargs)
    changed = False
    for path, part in module.named_modules():  # what the program did to plain attributes
        for key in made._written & part.__dict__.keys():
            value = _C.script_get(made._handle, f"{path}.{key}" if path else key)
            if isinstance(value, _PLAIN) and part.__dict__[key] != value:
                part.__dict__[key], changed = value, True
        for space in (part._parameters, part._buffers):
            for key in made._written & space.keys():
                value = _C.script_get(made._handle, f"{path}.{key}" if path else key)
                if space[key] is not value:
                    space[key], changed = value, True
    if changed:
        module.__dict__["_own"] = state(module), made
    return result
