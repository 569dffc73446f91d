"""adjoin.nn.modules.instancenorm: normalization of each channel of each example (Ulyanov et al.,
2016)."""

import warnings

from .. import functional as F
from .batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    _dims = 0

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False,
                 track_running_stats=False, device=None, dtype=None, *, bias=True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias)  # fmt: skip

    def _check_input_dim(self, input):
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self._dims + 1}D or {self._dims + 2}D input "
                f"(got {input.dim()}D input of shape {list(input.shape)})"
            )

    def _get_no_batch_dim(self):
        return self._dims + 1

    def _check_channels(self, input):
        dim = input.dim() - self._dims - 1
        if input.shape[dim] == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"{type(self).__name__}: expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                f"{input.shape[dim]}"
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in num_features, "
            "which is not used because affine=False",
            stacklevel=3,
        )

    def forward(self, input):
        self._check_input_dim(input)
        self._check_channels(input)
        single = input.dim() == self._dims + 1
        out = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """Input (N, C, L) or (C, L)."""

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Input (N, C, H, W) or (C, H, W)."""

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Input (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3
