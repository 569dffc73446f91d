"""adjoin.autograd._variable: Variable, from when a tensor that records was a type of its own."""

from .. import _C


class _Tensors(type):
    def __instancecheck__(cls, obj):
        return isinstance(obj, _C.Tensor)

    def __eq__(cls, other):  # type(x) == Variable
        return other is cls or other is _C.Tensor

    __hash__ = type.__hash__


class Variable(metaclass=_Tensors):
    """``Variable(tensor, requires_grad)`` is the tensor's own values; every tensor is an instance.

    What is computed from a volatile one is not recorded, whatever else it is computed from, and is volatile itself.
    """

    def __new__(cls, data, requires_grad=False, volatile=False):
        if volatile and requires_grad:
            raise ValueError("Variable: volatile and requires_grad exclude each other: a volatile one is not recorded")
        plain = data.detach()
        plain = plain.as_subclass(_C.Tensor) if isinstance(plain, Volatile) else plain
        return plain.as_subclass(Volatile) if volatile else plain.requires_grad_(requires_grad)

    class _execution_engine:
        """What programs ask of the engine that runs backward passes."""

        queue_callback = staticmethod(_C.queue_callback)
        is_checkpoint_valid = staticmethod(_C.backward_is_whole)


class Volatile(_C.Tensor):
    """A tensor of which nothing that is computed is recorded."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with _C.no_grad():
            return super().__torch_function__(func, types, args, kwargs or {})

    @property
    def data(self):
        """The values, as an ordinary tensor."""
        return self.detach().as_subclass(_C.Tensor)

    @data.setter
    def data(self, value):
        with _C.DisableTorchFunctionSubclass():
            _C.Tensor.data.__set__(self, value)


def is_volatile(tensor):
    """Is nothing recorded that is computed from it?"""
    return isinstance(tensor, Volatile)


def set_volatile(tensor, wanted):
    """Makes it so, or not so."""
    if wanted and tensor.requires_grad:
        raise RuntimeError(
            "volatile: the tensor requires grad; say x.detach() first, or compute under adjoin.no_grad()"
        )
    if not wanted and isinstance(tensor, Volatile):
        tensor.__class__ = _C.Tensor
    elif wanted and type(tensor) is _C.Tensor:
        tensor.__class__ = Volatile
    elif wanted and not isinstance(tensor, Volatile):
        raise TypeError(f"volatile: a {type(tensor).__name__} cannot be volatile; compute under adjoin.no_grad()")
