"""adjoin.autograd._variable: Variable, from when a tensor that records was a type of its own."""

from .. import _C


class _Tensors(type):
    def __instancecheck__(cls, obj):
        return isinstance(obj, _C.Tensor)


class Variable(metaclass=_Tensors):
    """``Variable(tensor, requires_grad)`` is the tensor's own values; every tensor is an instance."""

    def __new__(cls, data, requires_grad=False, volatile=None):
        return data.detach().requires_grad_(requires_grad)

    class _execution_engine:
        """What programs ask of the engine that runs backward passes."""

        queue_callback = staticmethod(_C.queue_callback)
