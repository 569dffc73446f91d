"""adjoin.ao.nn.quantized: sums and products as modules, which PyTorch's observers could be hung on; they compute in floats."""

import adjoin

from ...nn.modules.linear import Identity
from ...nn.modules.module import Module

__all__ = ["FloatFunctional"]


class FloatFunctional(Module):
    """``self.skip.add(x, y)`` in place of ``x + y``: each result passes through ``activation_post_process``."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        """Raises: its functions are called by name."""
        raise RuntimeError("FloatFunctional is not intended to use the forward; use one of add, mul, cat, matmul ...")

    def add(self, x, y):
        """``x + y``."""
        return self.activation_post_process(adjoin.add(x, y))

    add_scalar = add

    def mul(self, x, y):
        """``x * y``."""
        return self.activation_post_process(adjoin.mul(x, y))

    mul_scalar = mul

    def cat(self, x, dim=0):
        """Tensors behind each other."""
        return self.activation_post_process(adjoin.cat(x, dim=dim))

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return self.activation_post_process(adjoin.add(x, y).relu())

    def matmul(self, x, y):
        """``x @ y``."""
        return self.activation_post_process(adjoin.matmul(x, y))
