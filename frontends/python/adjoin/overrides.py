"""adjoin.overrides: the protocol by which subclasses and strangers see calls with their objects."""

from ._C import (  # noqa: F401
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    has_torch_function,
)
from ._C import (
    handle_torch_function as _handle,
)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Calls the ``__torch_function__`` of the first of relevant_args that has one."""
    return _handle(public_api, tuple(relevant_args), args, kwargs)


def has_torch_function_unary(obj):
    """Whether obj has a ``__torch_function__`` of its own."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*objs):
    """Whether one of objs has a ``__torch_function__`` of its own."""
    return has_torch_function(objs)


def is_tensor_like(obj):
    """Whether obj is a tensor or behaves like one."""
    return hasattr(type(obj), "__torch_function__")
