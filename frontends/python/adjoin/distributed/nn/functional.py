"""adjoin.distributed.nn.functional: collectives with derivatives: the loss is the sum of all processes' losses."""

import adjoin

from ... import distributed as dist
from .. import _functional_collectives as _by_process
from .. import _group


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None):
    """The sum of all processes' tensors."""
    return _by_process._AllReduce.apply(tensor, op, _group.of(group))


def all_gather(tensor, group=None):
    """A tuple of all processes' tensors."""
    return tuple(_by_process._Gather.apply(tensor.unsqueeze(0), _group.of(group)).unbind(0))


def reduce_scatter(output, input_list, op=dist.ReduceOp.SUM, group=None):
    """The sum of all processes' input_list[i], i being this process's rank; ``output`` gives the shape alone."""
    return _by_process._Scatter.apply(adjoin.stack(list(input_list)), op, _group.of(group)).squeeze(0)


def broadcast(tensor, src, group=None):
    """The tensor of ``src``."""
    group = _group.of(group)
    return _by_process._Broadcast.apply(tensor, dist.get_group_rank(group, src), group)


def reduce(tensor, dst, op=dist.ReduceOp.SUM, group=None):
    """The sum in one process; the others get their own tensor."""
    made = all_reduce(tensor, op, group)
    return made if dist.get_rank() == dst else tensor


def gather(tensor, dst=0, group=None):
    """A tuple with the tensor of each process; zeros in all processes but dst."""
    made = all_gather(tensor, group)
    return made if dist.get_rank() == dst else tuple(t * 0 for t in made)


def scatter(tensors, src=0, group=None):
    """The tensor that one process has for this one."""
    return broadcast(adjoin.stack(list(tensors)), src, group)[dist.get_rank(group)]


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """A tuple with what each process has for this one; tensors of one shape."""
    return tuple(_by_process.all_to_all_single(adjoin.stack(list(input_tensor_list)), None, None, group).unbind(0))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """The same of one tensor, whose rows are cut into equal parts, or parts of the sizes that are said."""
    made = _by_process.all_to_all_single(input, output_split_sizes, input_split_sizes, group)
    return made.view_as(output)
