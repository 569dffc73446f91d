"""adjoin._subclasses.fake_tensor: tensors that a tracer uses in place of others. There is no tracer: no tensor is one."""

from .. import _C


class FakeTensor(_C.Tensor):
    """A tensor of a tracer; isinstance() says no."""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(
            "FakeTensor: no tracer makes them here; a tensor on device 'meta' has a shape and no values"
        )


class FakeTensorMode:
    """Raises when it is made: there is no tracer."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("FakeTensorMode: shapes without values are had with `with adjoin.device('meta'):`")


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that a tracer cannot follow."""


class DataDependentOutputException(UnsupportedFakeTensorException):
    """A shape that depends on values."""


DynamicOutputShapeException = DataDependentOutputException


def is_fake(x):
    """False."""
    return isinstance(x, FakeTensor)
