"""adjoin.distributed.nn.functional: collectives with derivatives: the loss is the sum of all processes' losses."""

import adjoin

from ... import distributed as dist


def _wants_linear(who, op):
    if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        raise NotImplementedError(f"{who}: {op} has no derivative here; SUM and AVG have")


class _AllReduce(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, t, op, group):
        ctx.op, ctx.group = op, group
        total = t.clone()
        dist.all_reduce(total, op, group)
        return total

    @staticmethod
    def backward(ctx, g):
        _wants_linear("all_reduce", ctx.op)
        return _AllReduce.apply(g, ctx.op, ctx.group), None, None


class _AllGather(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, t, group):
        ctx.group = group
        whole = t.new_empty((dist.get_world_size(group), *t.shape))
        dist.all_gather_into_tensor(whole, t, group)
        return whole

    @staticmethod
    def backward(ctx, g):
        return _ReduceScatter.apply(g, dist.ReduceOp.SUM, ctx.group), None


class _ReduceScatter(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, whole, op, group):
        ctx.op, ctx.group = op, group
        part = whole.new_empty(whole.shape[1:])
        dist.reduce_scatter_tensor(part, whole, op, group)
        return part

    @staticmethod
    def backward(ctx, g):
        _wants_linear("reduce_scatter", ctx.op)
        whole = _AllGather.apply(g, ctx.group)
        return whole / whole.shape[0] if ctx.op is dist.ReduceOp.AVG else whole, None, None


class _Broadcast(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, t, src, group):
        ctx.src, ctx.group = src, group
        given = t.clone()
        dist.broadcast(given, src, group)
        return given

    @staticmethod
    def backward(ctx, g):
        total = g.clone()
        dist.all_reduce(total, group=ctx.group)
        return (total if dist.get_rank() == ctx.src else adjoin.zeros_like(total)), None, None


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None):
    """The sum of all processes' tensors."""
    return _AllReduce.apply(tensor, op, group)


def all_gather(tensor, group=None):
    """A tuple of all processes' tensors."""
    return tuple(_AllGather.apply(tensor, group).unbind(0))


def reduce_scatter(output, input_list, op=dist.ReduceOp.SUM, group=None):
    """The sum of all processes' input_list[i], i being this process's rank; ``output`` gives the shape alone."""
    return _ReduceScatter.apply(adjoin.stack(list(input_list)), op, group)


def broadcast(tensor, src, group=None):
    """The tensor of ``src``."""
    return _Broadcast.apply(tensor, src, group)


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
    place = dist.get_rank(group)
    return tuple(rows[place] for rows in all_gather(adjoin.stack(list(input_tensor_list)), group))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """The same of one tensor that is cut into equal parts."""
    if output_split_sizes is not None or input_split_sizes is not None:
        raise NotImplementedError(
            "all_to_all_single: parts of different sizes are not recorded; cut equal parts, or pad them"
        )
    parts = input.chunk(dist.get_world_size(group))
    return adjoin.cat(all_to_all(None, parts, group)).view_as(output)
