"""adjoin.nn.parallel._parts: DistributedDataParallel over copies of layers in parts: gradients of DTensors are averaged one by one."""

import sys

from ... import distributed as dist


def in_parts(p):
    """Whether a parameter is a DTensor."""
    tensors = sys.modules.get("adjoin.distributed.tensor")
    return tensors is not None and isinstance(p, tensors.DTensor)


class Parts:
    """Each gradient is reduced over the copies as soon as the tape has it: this process's part with the same part of the others."""

    def __init__(self, named, group):
        self.names, self.group, self.armed, self.works = {id(p): n for n, p in named}, group, False, []
        self.missing = {}
        for _, p in named:
            p.register_post_accumulate_grad_hook(self._came)

    def arm(self):
        """Gradients of the next backward pass are to be reduced."""
        self.armed, self.missing = True, dict(self.names)

    def unfinished(self):
        """The names of parameters without a gradient, where a pass has begun and not ended."""
        return list(self.missing.values()) if self.armed and len(self.missing) < len(self.names) else []

    def _came(self, p):
        if not self.armed:
            return
        self.missing.pop(id(p), None)
        local = p.grad.to_local().detach()
        if not local.is_contiguous():  # an expanded gradient has no memory of its own to reduce into
            local = local.contiguous()
            p.grad = type(p.grad)._made(local, p.grad.device_mesh, p.grad.placements, tuple(p.grad.shape))
        local.div_(self.group.size())
        self.works.append(dist.all_reduce(local, group=self.group, async_op=True))
        if not self.missing:
            self.armed, works, self.works = False, self.works, []
            for work in works:
                work.wait()
