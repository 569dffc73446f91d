"""adjoin.nn.modules.batchnorm: normalization over the batch (Ioffe and Szegedy, 2015)."""

import adjoin

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._settings import sizes
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """What batch and instance norms share: affine parameters and running statistics per channel."""

    _version = 2  # since 2 with num_batches_tracked

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype,
                 bias):  # fmt: skip
        super().__init__()
        sizes(self, num_features=num_features)
        factory = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            tensor = Parameter(adjoin.empty(num_features, **factory)) if wanted else None
            self.register_parameter(name, tensor)
        if track_running_stats:
            self.register_buffer("running_mean", adjoin.zeros(num_features, **factory))
            self.register_buffer("running_var", adjoin.ones(num_features, **factory))
            count = adjoin.tensor(0, dtype=adjoin.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forgets what was seen: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            count = self.num_batches_tracked
            if count is None or count.is_meta:
                count = adjoin.tensor(0, dtype=adjoin.int64)
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` per channel, dimension 1.

    Training uses the batch's own statistics and keeps running ones, with the unbiased variance;
    evaluation uses the running ones.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
                 device=None, dtype=None, *, bias=True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias)  # fmt: skip

    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain mean over all batches
                factor = 1.0 / float(self.num_batches_tracked)
        own_statistics = self.training or (self.running_mean is None and self.running_var is None)
        if own_statistics and self.eps <= 0:
            raise ValueError(f"{type(self).__name__}: eps must be positive during training, it is {self.eps}")
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            own_statistics,
            factor,
            self.eps,
        )


def _wrong_dims(layer, wanted, input):
    name = type(layer).__name__
    others = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d", 5: "BatchNorm3d"}
    way = f"; use {others[input.dim()]} for such" if others.get(input.dim(), name) != name else ""
    return ValueError(f"{name}: expected {wanted} input (got {input.dim()}D input of shape {list(input.shape)}){way}")


class BatchNorm1d(_BatchNorm):
    """Input (N, C) or (N, C, L)."""

    def _check_input_dim(self, input):
        if input.dim() not in (2, 3):
            raise _wrong_dims(self, "2D or 3D", input)


class BatchNorm2d(_BatchNorm):
    """Input (N, C, H, W)."""

    def _check_input_dim(self, input):
        if input.dim() != 4:
            raise _wrong_dims(self, "4D", input)


class BatchNorm3d(_BatchNorm):
    """Input (N, C, D, H, W)."""

    def _check_input_dim(self, input):
        if input.dim() != 5:
            raise _wrong_dims(self, "5D", input)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm of (N, C, *) over the batches of a group of processes, which all count as one batch.

    Without a group of several processes, and in evaluation, it is BatchNorm.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
                 process_group=None, device=None, dtype=None, *, bias=True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)  # fmt: skip
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise _wrong_dims(self, "at least 2D", input)

    def forward(self, input):
        if not self.training:
            return super().forward(input)
        from ... import distributed

        if not distributed.is_initialized() or distributed.get_world_size(self.process_group) < 2:
            return super().forward(input)
        from ._sync_norm import normalized

        self._check_input_dim(input)
        return normalized(self, input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """``module`` with every BatchNorm in it replaced by a SyncBatchNorm of the same state."""
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine,
                       module.track_running_stats, process_group)  # fmt: skip
            for parts in ("_parameters", "_buffers"):
                getattr(made, parts).update(getattr(module, parts))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
