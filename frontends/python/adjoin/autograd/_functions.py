"""adjoin.autograd._functions: functions that libraries have met as classes with `apply`."""

import math

from .function import Function


class Resize(Function):
    """Another shape of as many elements, with a gradient; ``resize_`` has none."""

    @staticmethod
    def forward(ctx, tensor, sizes):
        """The elements in another shape."""
        sizes = tuple(sizes)
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"Resize: {tensor.numel()} elements of shape {tuple(tensor.shape)} do not fill {sizes}; it cannot make more or fewer"
            )
        ctx.shape = tensor.shape
        return tensor.contiguous().clone().reshape(sizes)

    @staticmethod
    def backward(ctx, grad):
        """The gradient in the shape that was."""
        return grad.contiguous().reshape(ctx.shape), None
