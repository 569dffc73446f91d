"""adjoin.distributed.pipelining._stage: one stage: its module, and what it keeps of a part of the batch until its gradients come."""

import contextlib

import adjoin

from ... import distributed as dist
from ...nn.parallel.distributed import DistributedDataParallel
from ..fsdp import FSDPModule


class PipelineStage:
    """The module ``submodule`` as stage ``stage_index`` of ``num_stages``. Stage s lies on process s modulo their number."""

    def __init__(self, submodule, stage_index, num_stages, device=None, input_args=None, output_args=None, group=None,
                 dw_builder=None):  # fmt: skip
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"PipelineStage: stage_index {stage_index} is not among {num_stages} stages")
        if dw_builder is not None:
            raise NotImplementedError("PipelineStage: dw_builder is not served; backward is one pass here")
        self.submod, self.stage_index, self.num_stages, self.device, self.group = (
            submodule,
            stage_index,
            num_stages,
            device,
            group,
        )
        self.group_size, self.group_rank = dist.get_world_size(group), dist.get_rank(group)
        if stage_index % self.group_size != self.group_rank:
            raise ValueError(
                f"PipelineStage: stage {stage_index} belongs on rank {stage_index % self.group_size} of {self.group_size}, this is rank "
                f"{self.group_rank}: stages go round the processes"
            )
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.held = {}  # part of the batch -> (inputs, outputs)

    def forward_part(self, part, inputs, kwargs):
        """The outputs of a part, a tuple."""
        if not self.is_first:
            inputs = tuple(
                t.detach().requires_grad_(t.is_floating_point() and adjoin.is_grad_enabled()) for t in inputs
            )
        with self._alone():
            output = self.submod(*inputs, **kwargs)
        outputs = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        self.held[part] = inputs, outputs
        return output, outputs

    def _alone(self):
        """Gradients of parts add up in this process; those that copy or cut the stage reduce them with the last part's."""
        return self.submod.no_sync() if isinstance(self.submod, DistributedDataParallel) else contextlib.nullcontext()

    def _reduces(self, outputs, last):
        if isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(last)
        elif last and isinstance(self.submod, DistributedDataParallel):
            self.submod._arm(outputs)

    def backward_part(self, part, loss, grads, last):
        """The gradients of a part's inputs, a tuple; None in the first stage. ``last``: of the stage's parts."""
        inputs, outputs = self.held.pop(part)
        self._reduces(outputs, last)
        if loss is not None:
            loss.backward()
        else:
            pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad and g is not None]
            adjoin.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None if self.is_first else tuple(t.grad for t in inputs)

    def scale_grads(self, parts):
        """Gradients of the mean of all parts in place of their sum."""
        for p in self.submod.parameters():
            if p.grad is not None:
                p.grad.div_(parts)
