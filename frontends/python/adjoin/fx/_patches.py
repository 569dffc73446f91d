"""adjoin.fx._patches: what is another function while a program is traced, and put back after."""

import functools
import types

import adjoin

from .._names import is_ours
from .node import map_aggregate
from .proxy import Proxy

__all__ = ["Patcher", "Patches", "autowrap_check", "patch_wrapped_functions", "recording", "wrap"]

_wrapped_fns_to_patch = {}  # (id of a namespace, name) -> the namespace
_wrapped_methods_to_patch = []
# Of the package: what a program asks of a value that is no tensor yet.
_ASK = {"is_tensor", "is_storage", "typename", "vmap", "compile"}


class Patches:
    """Sets entries of namespaces; ``undo`` puts back what was there, last first."""

    def __init__(self):
        self._done, self._seen = [], set()

    def set(self, namespace, name, value):
        """``namespace[name] = value`` until ``undo``."""
        self._done.append((namespace, name, name in namespace, namespace.get(name)))
        namespace[name] = value

    def undo(self):
        """Puts everything back."""
        while self._done:
            namespace, name, was_there, before = self._done.pop()
            if was_there:
                namespace[name] = before
            else:
                namespace.pop(name, None)

    def record_in(self, namespace, functions):
        """In a module's namespace the functions of that set become steps; a namespace is looked through once."""
        if id(namespace) in self._seen:
            return
        self._seen.add(id(namespace))
        for name, value in list(namespace.items()):
            if not name.startswith("_") and callable(value) and id(value) in functions:
                self.set(namespace, name, recording(value))


def first_proxy(args, kwargs):
    """A proxy among the arguments, or None."""
    found = []
    map_aggregate((args, kwargs), lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[0] if found else None


def recording(function, by_name=False):
    """A function that is a step of the graph if one of its arguments is a proxy, else itself."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        proxy = first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        if by_name:
            made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def recording_method(owner, name):
    """The same of a class's method: a call of it by its name."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def wrapped(*args, **kwargs):
        proxy = first_proxy(args, kwargs)
        return (
            method(*args, **kwargs) if proxy is None else proxy.tracer.create_proxy("call_method", name, args, kwargs)
        )

    return wrapped


@functools.cache
def own_functions():
    """{id: function} of the package's functions that are written in Python: ops see proxies by themselves."""
    found = {}
    for home in (adjoin.nn.functional, adjoin, adjoin.linalg, adjoin.nn.init):
        for name in dir(home):
            value = getattr(home, name, None) if name not in _ASK and not name.startswith("_") else None
            if isinstance(value, types.FunctionType) and is_ours(value.__module__):
                found[id(value)] = value
    return found


def wrap(fn_or_name):
    """Makes a function one step of every graph: ``wrap("name")`` or ``@wrap`` at the top level of its module.

    A trace does not look into it. It must be called under the name that it has there.
    """
    import inspect

    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            f"wrap must be called at the top level of a module, not in {frame.f_code.co_name}(): it wraps the names that stand there"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def patch_wrapped(patches):
    """Sets what ``wrap`` was told of."""
    import builtins

    for (_, name), namespace in list(_wrapped_fns_to_patch.items()):
        function = namespace.get(name, getattr(builtins, name, None))
        if function is not None:
            patches.set(namespace, name, recording(function, by_name=True))


class Patcher(Patches):
    """Patches for tracers that are written elsewhere, as a context: of entries of namespaces and of methods."""

    def __init__(self):
        super().__init__()
        self._methods = []

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """``frame_dict[name]`` is another function; ``deduplicate``: not where it is a patch already."""
        self._mark(new_fn, frame_dict.get(name), deduplicate)
        if not (deduplicate and hasattr(frame_dict.get(name), "__fx_already_patched")):
            self.set(frame_dict, name, new_fn)

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """The same of a class's method."""
        before = getattr(cls, name)
        if deduplicate and hasattr(before, "__fx_already_patched"):
            return
        self._mark(new_fn, before, deduplicate)
        self._methods.append((cls, name, vars(cls).get(name)))
        setattr(cls, name, new_fn)

    @staticmethod
    def _mark(new, before, deduplicate):
        setattr(new, "__fx_already_patched", deduplicate)
        if not hasattr(new, "__wrapped__"):
            new.__wrapped__ = before

    def visit_once(self, thing):
        """True the first time."""
        if id(thing) in self._seen:
            return False
        self._seen.add(id(thing))
        return True

    def undo(self):
        """Puts everything back."""
        super().undo()
        while self._methods:
            cls, name, before = self._methods.pop()
            if before is None:
                delattr(cls, name)
            else:
                setattr(cls, name, before)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.undo()


def autowrap_check(patcher, frame_dict, function_ids):
    """In a namespace those functions become steps, and the package's that are written in Python."""
    patcher.record_in(frame_dict, {*own_functions(), *function_ids})


def patch_wrapped_functions(patcher):
    """Sets what ``wrap`` was told of, and what the package's own modules hold."""
    patch_wrapped(patcher)
    for namespace in (adjoin.nn.functional.__dict__, adjoin.__dict__):
        patcher.record_in(namespace, own_functions())
