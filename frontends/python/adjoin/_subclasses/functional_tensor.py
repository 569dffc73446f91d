"""adjoin._subclasses.functional_tensor: tensors by which a tracer turns writes into new values. There is no tracer: no tensor is one."""

from .. import _C


class FunctionalTensor(_C.Tensor):
    """A tensor of a tracer; isinstance() says no."""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(
            "FunctionalTensor: no tracer makes them here; adjoin.func.functionalize turns writes into values"
        )


def mb_unwrap_functional_tensor(tensor):
    """The tensor."""
    return tensor
