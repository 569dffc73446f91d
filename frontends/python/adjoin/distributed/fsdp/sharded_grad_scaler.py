"""adjoin.distributed.fsdp.sharded_grad_scaler: a GradScaler for gradients of which each process has a part."""

from ... import distributed as dist
from ...amp import GradScaler


class ShardedGradScaler(GradScaler):
    """Where one process finds an inf or nan in its part, all leave the step out."""

    def __init__(self, device="cuda", init_scale=2.0**16, backoff_factor=0.5, growth_factor=2.0, growth_interval=2000,
                 enabled=True, process_group=None):  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = dist._group.of(process_group) if enabled else process_group

    def _unscale_grads(self, optimizer, inverse, allow_half):
        found = super()._unscale_grads(optimizer, inverse, allow_half)
        if not found:  # nothing here has a gradient; others' may
            found = {self._scale.device: self._scale.new_zeros(())}
        for flag in found.values():
            dist.all_reduce(flag, dist.ReduceOp.MAX, group=self.process_group)
        return found


__all__ = ["ShardedGradScaler"]
