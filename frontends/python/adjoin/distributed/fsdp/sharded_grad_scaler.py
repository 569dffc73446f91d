"""adjoin.distributed.fsdp.sharded_grad_scaler: a GradScaler for gradients of which each process has a part."""

from ... import distributed as dist
from ...amp import GradScaler


class ShardedGradScaler(GradScaler):
    """Where one process finds an inf or nan in its part, all leave the step out."""

    def __init__(self, device="cuda", init_scale=2.0**16, backoff_factor=0.5, growth_factor=2.0, growth_interval=2000,
                 enabled=True, process_group=None):  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = dist._group.of(process_group) if enabled else process_group

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        if not found:  # nothing here has a gradient; others' may
            found = {found_inf.device: found_inf}
        for flag in found.values():
            dist.all_reduce(flag, dist.ReduceOp.MAX, group=self.process_group)
        return found


__all__ = ["ShardedGradScaler"]
