"""adjoin.overrides: the protocol by which subclasses, strangers and modes see calls."""

import functools
import inspect
import types

from . import _C
from ._C import (  # noqa: F401
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from ._C import (
    handle_torch_function as _handle,
)


class DisableTorchFunction:
    """``with``: neither classes of tensors nor modes see calls."""

    def __enter__(self):
        self._classes = DisableTorchFunctionSubclass()
        self._classes.__enter__()
        self._modes = [_C.pop_mode() for _ in range(len(_C.modes()))]
        return self

    def __exit__(self, *error):
        for mode in reversed(self._modes):
            _C.push_mode(mode)
        self._classes.__exit__(*error)


def redispatch_function(func, types, args=(), kwargs=None):
    """Calls func past the override that is running, in a ``__torch_function__``: what func calls is seen by overrides again.

    An op is called as it is. A function of Python's asks for overrides once less; what it computes with goes to them.
    """
    kwargs = kwargs or {}
    if hasattr(func, "__code__"):
        before = _C.pass_next_override(True)
        try:
            return func(*args, **kwargs)
        finally:
            _C.pass_next_override(before)
    with DisableTorchFunction():
        return func(*args, **kwargs)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Calls the ``__torch_function__`` of the mode, or of the first of relevant_args that has one."""
    return _handle(public_api, tuple(relevant_args), args, kwargs)


def is_tensor_like(obj):
    """Whether obj is a tensor or behaves like one."""
    return hasattr(type(obj), "__torch_function__")


def wrap_torch_function(dispatcher):
    """A decorator: the function can be overridden by the arguments that ``dispatcher(*args, **kwargs)`` names."""

    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


class TorchFunctionMode:
    """``with mode:`` every call of an op, with whatever arguments, goes to the mode's ``__torch_function__`` first.

    There the mode does not see its own calls; one entered before it does.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C.push_mode(self)
        return self

    def __exit__(self, *exc):
        _C.pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """The older way to write ``with cls(...)``."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


_OP = type(_C.find_op("add"))


def get_default_nowrap_functions():
    """What gives tensors as they are: the default ``__torch_function__`` does not make the subclass of its results."""
    from . import _tensor

    return set(_tensor.UNCONVERTED)


def get_ignored_functions():
    """Functions that cannot be overridden: they make tensors of something else."""
    import adjoin

    return {adjoin.tensor, adjoin.as_tensor, adjoin.from_numpy, adjoin.is_grad_enabled, adjoin.manual_seed,
        adjoin.asarray, adjoin.frombuffer, adjoin.Tensor.as_subclass, adjoin.is_tensor, adjoin.is_storage,
    }  # fmt: skip


def _names():
    """{function: full name} of everything that can be overridden."""
    import adjoin

    found = {}
    homes = (("adjoin", adjoin), ("adjoin.nn.functional", adjoin.nn.functional), ("adjoin.Tensor", adjoin.Tensor))
    for home, owner in homes:
        for name in dir(owner):
            value = inspect.getattr_static(owner, name, None)
            if value is None and not name.startswith("_"):
                value = getattr(owner, name, None)
            if isinstance(value, (staticmethod, classmethod)):  # no tensor to ask
                continue
            if isinstance(value, _OP) or (owner is adjoin.Tensor and callable(value)):
                found.setdefault(value, f"{home}.{name}")
    return found


@functools.cache
def get_overridable_functions():
    """{module or class: the functions there that can be overridden}."""
    import adjoin

    found = {adjoin: [], adjoin.nn.functional: [], adjoin.Tensor: []}
    for function, name in _names().items():
        home = name.rpartition(".")[0]
        owner = {"adjoin": adjoin, "adjoin.nn.functional": adjoin.nn.functional}.get(home, adjoin.Tensor)
        found[owner].append(function)
    return found


@functools.cache
def get_testing_overrides():
    """{function that can be overridden: one with the same signature that gives -1}, to test an override with."""
    return {function: _dummy(function) for functions in get_overridable_functions().values() for function in functions}


def _dummy(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return lambda *args, **kwargs: -1

    def dummy(*args, **kwargs):
        signature.bind(*args, **kwargs)
        return -1

    dummy.__signature__, dummy.__name__ = signature, getattr(function, "__name__", "dummy")
    return dummy


def resolve_name(f):
    """The full name of something that can be overridden, or None."""
    import adjoin

    home = adjoin.__name__  # torch, where that is what programs import
    if isinstance(f, types.MethodWrapperType) and type(f.__self__).__name__ in (
        "getset_descriptor",
        "member_descriptor",
    ):
        return f"{home}.Tensor.{f.__self__.__name__}.{f.__name__}"
    name = _names().get(f)
    return None if name is None else home + name.removeprefix("adjoin")


def is_tensor_method_or_property(func):
    """Whether it is reached through a tensor."""
    import adjoin

    return func in set(_callables(adjoin.Tensor)) or getattr(func, "__name__", "") == "__get__"


def _callables(owner):
    for name in dir(owner):
        value = inspect.getattr_static(owner, name, None)
        if callable(value) and not isinstance(value, (staticmethod, classmethod)):
            yield value
