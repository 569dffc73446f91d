"""adjoin.distributed.algorithms.model_averaging.utils: the mean of all processes' parameters."""

import adjoin

from .... import distributed as dist


def get_params_to_average(params):
    """Those that have a gradient, of parameters or of an optimizer's groups."""
    found = []
    for item in params:
        found += [p for p in (item["params"] if isinstance(item, dict) else [item]) if p.grad is not None]
    return found


def average_parameters(params, process_group):
    """Each parameter becomes the mean of the group's; one message for each dtype."""
    if process_group == dist.GroupMember.NON_GROUP_MEMBER:
        return
    by_kind = {}
    for p in params:
        by_kind.setdefault((p.dtype, p.device), []).append(p)
    with adjoin.no_grad():
        for same in by_kind.values():
            flat = adjoin.cat([p.detach().reshape(-1) for p in same])
            flat /= dist.get_world_size(process_group)
            dist.all_reduce(flat, group=process_group)
            begin = 0
            for p in same:
                p.copy_(flat[begin : begin + p.numel()].reshape(p.shape))
                begin += p.numel()


def average_parameters_or_parameter_groups(params, process_group):
    """The same, of those that have a gradient."""
    average_parameters(get_params_to_average(params), process_group)
