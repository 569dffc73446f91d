"""adjoin.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: the mean of all processes first, later that of a few."""

from .... import distributed as dist
from ..._work import Work
from .default_hooks import allreduce_hook


class PostLocalSGDState:
    """Of all until ``start_localSGD_iter`` passes have been made, then of ``subgroup``: by default the processes of one machine."""

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter, self.post_local_gradient_allreduce = (
            start_localSGD_iter,
            post_local_gradient_allreduce,
        )
        self.iter = 0

    def maybe_increase_iter(self, bucket):
        """Counts a pass with its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state, bucket):
    """The mean of a bucket's gradients over those who still step together."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return Work(tensors=[bucket.buffer()]).get_future()
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
