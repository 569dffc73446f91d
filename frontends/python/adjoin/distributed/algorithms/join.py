"""adjoin.distributed.algorithms.join: processes with fewer batches take part in the others' collectives until all have ended."""

import adjoin

from ... import distributed as dist


class JoinHook:
    """What a process that has ended does for the others."""

    def main_hook(self):
        """Takes part in the collectives of one step of the others'."""

    def post_hook(self, is_last_joiner):
        """After the last one has ended; ``is_last_joiner``: this process was among the last."""


class Joinable:
    """What has collectives in each step: its ``join_hook`` takes part in them, and each step begins with
    ``Join.notify_join_context(self)``."""

    _join_context = None

    def join_hook(self, **kwargs):
        """A JoinHook."""
        raise NotImplementedError

    @property
    def join_device(self):
        """Where the count of processes lies."""
        return adjoin.device("cpu")

    @property
    def join_process_group(self):
        """The processes that may end at different times."""
        raise NotImplementedError


class Join:
    """``with Join([net]):`` around a loop over batches, of which processes may have different numbers."""

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(dist._group.of(j.join_process_group)) for j in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throw = list(joinables), enable, throw_on_early_termination
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        self._group = joinables[0].join_process_group

    def __enter__(self):
        if self._enable:
            for joinable in self._joinables:
                joinable._join_context = self
        return self

    def __exit__(self, kind, error, trace):
        if not self._enable:
            return
        for joinable in self._joinables:
            joinable._join_context = None
        if kind is not None:
            return
        last = True
        while self._count(0):
            if self._throw:
                self._tell_end(1)
                raise RuntimeError(f"Rank {dist.get_rank(self._group)} exhausted all inputs.")
            last = False
            for hook in self._hooks:
                hook.main_hook()
        if self._throw and not last:
            return
        for hook in self._hooks:
            hook.post_hook(last)

    def _count(self, mine):
        total = adjoin.tensor([float(mine)])
        dist.all_reduce(total, group=self._group)
        return int(total.item())

    def _tell_end(self, mine):
        total = adjoin.tensor([float(mine)])
        dist.all_reduce(total, group=self._group)
        return total.item() > 0

    @staticmethod
    def notify_join_context(joinable):
        """Tells those that have ended that this process makes a step; None, for its collectives follow."""
        context = joinable._join_context
        if context is None or context._joinables[0] is not joinable:
            return None
        everybody = context._count(1) == dist.get_world_size(context._group)
        if context._throw and not everybody:
            context._tell_end(0)
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return None
