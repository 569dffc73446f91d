"""adjoin.nn.parameter: tensors that a Module recognises: Parameter and Buffer."""

from types import MethodWrapperType

import adjoin
from adjoin import _C
from adjoin._tensor import _has_memory, sees_calls


class _ParameterMeta(type(adjoin.Tensor)):
    """Makes ``isinstance(x, Parameter)`` true for a tensor of a class without memory that Parameter() has marked."""

    def __instancecheck__(cls, instance):
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, adjoin.Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(adjoin.Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes one of a Module's parameters when it is set as an attribute.

    Shares the memory of ``data``; requires grad unless told otherwise.
    """

    # Operations treat a parameter as the tensor that it is, and give plain tensors.
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = adjoin.empty(0)
        if not isinstance(data, adjoin.Tensor):
            raise TypeError(
                f"Parameter: data is a {type(data).__name__}, a tensor is wanted; make one with adjoin.tensor(data)"
            )
        if type(data) is not adjoin.Tensor and sees_calls(type(data)):
            if _has_memory(data):
                made = adjoin.Tensor._make_subclass(type(data), data, requires_grad)
            else:
                made = _C.another_wrapper(data, requires_grad)
            made._is_param = True
            return made
        if type(data) is not adjoin.Tensor and not issubclass(type(data), Parameter):
            made = data.detach().requires_grad_(requires_grad)
            if type(made) is not type(data):
                raise RuntimeError(
                    f"Parameter: detach() of a {type(data).__name__} gives a {type(made).__name__}; a class of tensors that can be "
                    "parameters keeps itself there"
                )
            made._is_param = True
            return made
        return adjoin.Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copy = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copy
        if self.__dict__:
            copy.__dict__.update(self.__dict__)
        return copy

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (type(self), self.data, self.requires_grad, dict(self.__dict__))


def _rebuild_parameter(cls, data, requires_grad, attributes):
    parameter = cls(data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


class _BufferMeta(type):
    """Makes ``isinstance(x, Buffer)`` true for a tensor that Buffer() has marked."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, adjoin.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=_BufferMeta):
    """``Buffer(data, persistent=True)``: a tensor that becomes a buffer when set as a Module's
    attribute.

    What comes back is a tensor of its own over the same memory; ``persistent=False`` keeps it out
    of ``state_dict``.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = adjoin.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


# What works on a tensor without a shape: where it is, what it holds, its history, to become another one; casts besides.
_WITHOUT_SHAPE = {
    "__get__",
    "__set__",
    "__hash__",
    "size",
    "get_device",
    "copy_",
    "to",
    "type",
    "cuda",
    "cpu",
    "detach",
    "requires_grad_",
    "__deepcopy__",
    "__reduce_ex__",
    "__repr__",
}


class UninitializedTensorMixin:
    """A tensor of dtype and device that has no shape until ``materialize``."""

    _fixed_class = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        told = name.startswith("is_") or name in _WITHOUT_SHAPE or isinstance(func, MethodWrapperType)
        if told or isinstance(getattr(adjoin, name, None), adjoin.dtype):
            return _C._disabled_torch_function_impl(func, types, args, kwargs)
        raise ValueError(
            f"{name}: attempted to use an uninitialized parameter or buffer ({cls.__name__}); it has no shape yet. Call the lazy "
            "module with one input first"
        )

    def materialize(self, shape, device=None, dtype=None):
        """Gives it memory of that shape, uninitialised; it becomes an ordinary one."""
        device = self.device if device is None else device
        dtype = self.dtype if dtype is None else dtype
        self.data = adjoin.empty(shape, device=device, dtype=dtype)
        self.__class__ = self._fixed_class

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self):
        """Refuses: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,) if isinstance(self, Parameter) else ()


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape is not known yet."""

    _fixed_class = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = adjoin.empty(0, device=device, dtype=dtype)
        return adjoin.Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, adjoin.Tensor):
    """A buffer whose shape is not known yet."""

    _fixed_class = adjoin.Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data = adjoin.empty(0, device=device, dtype=dtype)
        buffer = adjoin.Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def is_lazy(param):
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
