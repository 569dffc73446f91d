"""adjoin.distributed.nn.functional: collectives that give new tensors, and whose backward is the collective the other way round."""

import adjoin

from ... import distributed as dist
from ...autograd import Function


def _sum_of(g, op, group):
    """The gradient of what every process has: summed over them, or its mean."""
    g = g.contiguous().clone()
    dist.all_reduce(g, dist.ReduceOp.AVG if op == dist.ReduceOp.AVG else dist.ReduceOp.SUM, group=group)
    return g


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, tensor, op, group):
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG) and tensor.requires_grad:
            raise NotImplementedError(f"all_reduce: {op} has no derivative; SUM and AVG have one")
        ctx.op, ctx.group = op, group
        made = tensor.clone()
        dist.all_reduce(made, op, group=group)
        return made

    @staticmethod
    def backward(ctx, g):
        return _sum_of(g, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        made = [adjoin.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(made, tensor.contiguous(), group=group)
        return tuple(made)

    @staticmethod
    def backward(ctx, *gs):
        return _sum_of(adjoin.stack(gs), dist.ReduceOp.SUM, ctx.group)[dist.get_rank(ctx.group)], None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, tensor, src, group):
        ctx.src, ctx.group = src, group
        made = tensor.clone()
        dist.broadcast(made, src, group=group)
        return made

    @staticmethod
    def backward(ctx, g):
        g = _sum_of(g, dist.ReduceOp.SUM, ctx.group)
        return g if dist.get_rank() == ctx.src else adjoin.zeros_like(g), None, None


def _world():
    return dist.group.WORLD


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None):
    """The sum, or another reduction, over the processes."""
    return _AllReduce.apply(tensor, op, group or _world())


def all_gather(tensor, group=None):
    """A tuple with the tensor of each process."""
    return _AllGather.apply(tensor, group or _world())


def broadcast(tensor, src, group=None):
    """The tensor of one process."""
    return _Broadcast.apply(tensor, src, group or _world())


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
    return broadcast(adjoin.stack(list(tensors)), src, group)[dist.get_rank(group or _world())]


def reduce_scatter(output, input_list, op=dist.ReduceOp.SUM, group=None):
    """The sum over the processes of what each has for this one; ``output`` says its shape."""
    made = all_reduce(adjoin.stack(list(input_list)), op, group)[dist.get_rank(group or _world())]
    return made.view_as(output)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """A tuple with what each process has for this one; tensors of one shape."""
    place = dist.get_rank(group or _world())
    return tuple(rows[place] for rows in all_gather(adjoin.stack(list(input_tensor_list)), group))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """The same of one tensor that is cut into equal parts."""
    if output_split_sizes is not None or input_split_sizes is not None:
        raise NotImplementedError(
            "all_to_all_single: parts of different sizes are not recorded; cut equal parts, or pad them"
        )
    parts = input.chunk(dist.get_world_size(group or _world()))
    return adjoin.cat(all_to_all(None, parts, group)).view_as(output)
