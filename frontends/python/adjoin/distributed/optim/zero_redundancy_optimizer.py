"""adjoin.distributed.optim.zero_redundancy_optimizer: each process steps a part of the parameters, and keeps the state of that part alone."""

import adjoin

from ... import distributed as dist
from ...optim.optimizer import Optimizer


class ZeroRedundancyOptimizer(Optimizer):
    """``ZeroRedundancyOptimizer(parameters, SGD, lr=0.1)``: the parameters are dealt out by size; after a step each process sends its own.

    Groups and hooks are this object's; the optimizer that steps is ``optim``.
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view=False,
        overlap_with_ddp=False,
        **defaults,
    ):
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not there; leave it out, steps are the same"
            )
        super().__init__(params, defaults)
        self.process_group = process_group if process_group is not None else dist.group.WORLD
        self.rank, self.world_size = dist.get_rank(self.process_group), dist.get_world_size(self.process_group)
        held, self._owner = [0] * self.world_size, {}
        for p in sorted((p for g in self.param_groups for p in g["params"]), key=lambda p: -p.numel()):
            owner = min(range(self.world_size), key=held.__getitem__)
            held[owner] += p.numel()
            self._owner[p] = owner
        mine = [{**g, "params": [p for p in g["params"] if self._owner[p] == self.rank]} for g in self.param_groups]
        self.optim = optimizer_class([g for g in mine if g["params"]] or mine, **defaults)
        self._pairs = [g for g, own in zip(self.param_groups, mine, strict=True) if own["params"]] or self.param_groups
        for group, own in zip(self._pairs, self.optim.param_groups, strict=True):
            group.update({k: v for k, v in own.items() if k != "params"})

    @adjoin.no_grad()
    def step(self, closure=None, **kwargs):
        """A step of this process's part; then everybody has the new values of all."""
        for group, own in zip(self._pairs, self.optim.param_groups, strict=True):  # a scheduler has changed ours
            own.update({k: v for k, v in group.items() if k != "params"})
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        if self.world_size > 1:
            for p, owner in self._owner.items():
                dist.broadcast(p.data, owner, group=self.process_group)
        return loss

    def consolidate_state_dict(self, to=0):
        """Collects the parts of the state in one process, for state_dict there."""
        parts = [None] * self.world_size
        dist.all_gather_object(parts, self.optim.state_dict(), group=self.process_group)
        self._all = parts if self.rank == to else None

    def state_dict(self):
        """The whole state after consolidate_state_dict; of one process, its own."""
        if self.world_size == 1:
            return self.optim.state_dict()
        if getattr(self, "_all", None) is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: the state is divided; call consolidate_state_dict(to) on all processes first"
            )
        return {"parts": self._all}

    def load_state_dict(self, state_dict):
        """Takes what state_dict gave."""
        self.optim.load_state_dict(state_dict if self.world_size == 1 else state_dict["parts"][self.rank])
        for group, own in zip(self._pairs, self.optim.param_groups, strict=True):
            group.update({k: v for k, v in own.items() if k != "params"})
