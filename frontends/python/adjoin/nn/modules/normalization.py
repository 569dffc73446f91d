"""adjoin.nn.modules.normalization: normalization of each example by itself."""

import numbers

import adjoin

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._settings import sizes
from .module import Module

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class _Affine(Module):
    """A factor and a summand for what was normalized, each of them or None."""

    def _start(self, shape, weight, bias, device, dtype):
        for name, wanted in (("weight", weight), ("bias", bias)):
            tensor = Parameter(adjoin.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, tensor)
        self.reset_parameters()

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba et al., 2016).

    Input (*, normalized_shape); mean and biased variance are taken over normalized_shape.
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None,
                 dtype=None):  # fmt: skip
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        elif isinstance(normalized_shape, (float, str)):
            sizes(self, normalized_shape=normalized_shape)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._start(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """Normalizes each of ``num_groups`` groups of channels over itself (Wu and He, 2018): input
    (N, C, *)."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *,
                 bias=True):  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_channels must be divisible by num_groups: {num_channels} is not by {num_groups}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._start(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input):
        if input.numel() == self.num_groups * input.shape[0] == self.num_groups:
            raise ValueError(
                f"GroupNorm: expected more than 1 value per channel when training, got input size {tuple(input.shape)}: a group of one "
                "value is 0 when normalized"
            )
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last dimensions (Zhang and Sennrich, 2019).

    ``eps=None`` is the machine epsilon of the input's dtype.
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(adjoin.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
