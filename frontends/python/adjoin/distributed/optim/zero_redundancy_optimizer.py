"""adjoin.distributed.optim.zero_redundancy_optimizer: each process has the optimizer's state of a part of the parameters."""

import adjoin

from ... import distributed as dist
from ...optim import Optimizer


class ZeroRedundancyOptimizer(Optimizer):
    """``optimizer_class`` for this process's part of the parameters; after a step the others' come from where they were made.

    The numbers are those of one optimizer for all parameters, if the gradients are equal in all processes, as
    DistributedDataParallel makes them.
    """

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False,
                 **defaults):  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not served; leave it out")
        self.process_group, self._class, self._whole = process_group, optimizer_class, None
        super().__init__(params, defaults)
        self._rank, size = dist.get_rank(process_group), dist.get_world_size(process_group)
        self._owner, load = {}, [0] * size
        self._load = load
        self._share(self.param_groups)
        self.optim = optimizer_class(self._own_groups(), **defaults)

    def _share(self, groups):
        for p in sorted((p for g in groups for p in g["params"]), key=lambda p: -p.numel()):
            self._owner[id(p)] = least = self._load.index(min(self._load))
            self._load[least] += p.numel()

    def _own_groups(self, groups=None):
        return [
            {**g, "params": [p for p in g["params"] if self._owner[id(p)] == self._rank]}
            for g in groups or self.param_groups
        ]  # fmt: skip

    def step(self, closure=None, **kwargs):
        """A step of this process's part, then everybody has all parameters."""
        for mine, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            mine.update((k, v) for k, v in whole.items() if k != "params")  # a schedule may have changed them
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        for mine, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            whole.update((k, v) for k, v in mine.items() if k != "params")  # what the step notes
        works = []
        with adjoin.no_grad():
            for g in self.param_groups:
                for p in g["params"]:
                    works.append(
                        dist.broadcast(p.data, group=self.process_group, group_src=self._owner[id(p)], async_op=True)
                    )
            for work in works:
                work.wait()
        return loss

    def add_param_group(self, param_group):
        """Its parameters go to the processes that have least; every process adds the same."""
        super().add_param_group(param_group)
        if hasattr(self, "optim"):
            added = self.param_groups[-1:]
            self._share(added)
            self.optim.add_param_group(self._own_groups(added)[0])

    def consolidate_state_dict(self, to=0):
        """Brings the parts of the state to process ``to``, whose ``state_dict()`` has them all then."""
        parts = [None] * dist.get_world_size(self.process_group)
        dist.all_gather_object(parts, self.optim.state_dict(), self.process_group)
        self._whole = self._joined(parts) if dist.get_rank(self.process_group) == to else None

    def _joined(self, parts):
        state, groups, number = {}, [], 0
        places = [0] * len(parts)
        for g in self.param_groups:
            numbers = []
            for p in g["params"]:
                owner = self._owner[id(p)]
                held = parts[owner]["state"].get(places[owner])
                if held is not None:
                    state[number] = held
                places[owner] += 1
                numbers.append(number)
                number += 1
            groups.append({**{k: v for k, v in g.items() if k != "params"}, "params": numbers})
        return {"state": state, "param_groups": groups}

    def state_dict(self):
        """That of one optimizer for all parameters, after consolidate_state_dict, which one process does not need."""
        if dist.get_world_size(self.process_group) == 1:
            return self._joined([self.optim.state_dict()])
        if self._whole is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: the state lies on several processes; call consolidate_state_dict(to=RANK) on all "
                "of them, then state_dict() on that one"
            )
        return self._whole

    def load_state_dict(self, state_dict):
        """Takes this process's part of the state of one optimizer for all parameters."""
        number, state, mine = 0, {}, 0
        for g, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            g.update((k, v) for k, v in given.items() if k != "params")
            for p in g["params"]:
                if self._owner[id(p)] == self._rank:
                    if number in state_dict["state"]:
                        state[mine] = state_dict["state"][number]
                    mine += 1
                number += 1
        own = self.optim.state_dict()
        self.optim.load_state_dict({"state": state, "param_groups": own["param_groups"]})
