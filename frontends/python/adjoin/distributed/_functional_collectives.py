"""adjoin.distributed._functional_collectives: collectives that give their result as a new tensor, each with its derivative.

A group is given as a ProcessGroup, its name, a DeviceMesh of one dimension, (mesh, dimension), or a list of ranks. Results are
there when a function gives them: ``wait_tensor`` has nothing left to do.
"""

import adjoin

from . import _collectives, _group
from ._names import ReduceOp


class AsyncCollectiveTensor(adjoin.Tensor):
    """A result that is still on its way; none is here, so ``isinstance`` says no."""


def wait_tensor(tensor):
    """The tensor: results are there when a function gives them."""
    return tensor


def wait_tensors(tensors):
    """The tensors."""
    return list(tensors)


def _resolve(group):
    """The ProcessGroup that is meant."""
    from .device_mesh import DeviceMesh

    if group is None or isinstance(group, _group.ProcessGroup):
        return _group.of(group)
    if isinstance(group, str):
        return _group._resolve_process_group(group)
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError(f"group: {group} has {group.ndim} dimensions; say which: (mesh, dimension)")
        return _group.of(group.get_group())
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return _group.of(group[0].get_group(group[1]))
    if isinstance(group, (list, tuple)):
        return _of_ranks(group)
    raise ValueError(
        f"group: {group!r}; wanted is a ProcessGroup, its name, a DeviceMesh, (mesh, dimension), or a list of ranks"
    )


def _of_ranks(ranks):
    lines = [list(line) for line in ranks] if ranks and isinstance(ranks[0], (list, tuple)) else [list(ranks)]
    world = _group.here().world
    if world is None:
        return _group.of(None)
    if len({len(line) for line in lines}) > 1:
        raise ValueError(f"group: the lists of ranks have different lengths: {lines}")
    for line in lines:
        if _group.get_rank() in line:
            if line == list(world.default._ranks):
                return world.default
            kept = world.made.setdefault("of_ranks", {})
            if tuple(line) not in kept:
                kept[tuple(line)] = _group.new_group(line)
            return kept[tuple(line)]
    raise ValueError(f"group: this process, rank {_group.get_rank()}, is in none of {lines}")


def _op(name):
    try:
        return ReduceOp[name.upper()] if isinstance(name, str) else name
    except KeyError:
        raise ValueError(f"reduceOp: {name!r}; there are {', '.join(o.name.lower() for o in ReduceOp)}") from None


def _linear(who, op):
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"{who}: {op} has no derivative; SUM and AVG have")


class _AllReduce(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, t, op, group):
        ctx.op, ctx.group = op, group
        total = t.clone(memory_format=adjoin.contiguous_format)
        _collectives.all_reduce(total, op, group)
        return total

    @staticmethod
    def backward(ctx, g):
        _linear("all_reduce", ctx.op)
        return _AllReduce.apply(g, ctx.op, ctx.group), None, None


class _Broadcast(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, t, src, group):
        ctx.src, ctx.group = src, group
        given = t.clone(memory_format=adjoin.contiguous_format)
        _collectives.broadcast(given, group=group, group_src=src)
        return given

    @staticmethod
    def backward(ctx, g):
        total = _AllReduce.apply(g, ReduceOp.SUM, ctx.group)
        return (total if ctx.group.rank() == ctx.src else adjoin.zeros_like(total)), None, None


class _Gather(adjoin.autograd.Function):
    """All processes' tensors, one behind the other along the first dimension."""

    @staticmethod
    def forward(ctx, t, group):
        ctx.group = group
        whole = t.new_empty((t.shape[0] * group.size(), *t.shape[1:]))
        _collectives.all_gather_into_tensor(whole, t.contiguous(), group)
        return whole

    @staticmethod
    def backward(ctx, g):
        return _Scatter.apply(g, ReduceOp.SUM, ctx.group), None


class _Scatter(adjoin.autograd.Function):
    """This process's part, along the first dimension, of the reduced tensors."""

    @staticmethod
    def forward(ctx, whole, op, group):
        ctx.op, ctx.group = op, group
        part = whole.new_empty((whole.shape[0] // group.size(), *whole.shape[1:]))
        _collectives.reduce_scatter_tensor(part, whole.contiguous(), op, group)
        return part

    @staticmethod
    def backward(ctx, g):
        _linear("reduce_scatter", ctx.op)
        whole = _Gather.apply(g, ctx.group)
        return whole / ctx.group.size() if ctx.op is ReduceOp.AVG else whole, None, None


class _AllToAll(adjoin.autograd.Function):
    @staticmethod
    def forward(ctx, t, out_sizes, in_sizes, group):
        ctx.sizes, ctx.group = (out_sizes, in_sizes), group
        out = t.new_empty((sum(out_sizes) if out_sizes else t.shape[0], *t.shape[1:]))
        _collectives.all_to_all_single(out, t.contiguous(), out_sizes, in_sizes, group)
        return out

    @staticmethod
    def backward(ctx, g):
        out_sizes, in_sizes = ctx.sizes
        return _AllToAll.apply(g, in_sizes, out_sizes, ctx.group), None, None, None


def broadcast(tensor, src, group, tag=""):
    """The tensor of the group's process ``src``."""
    return _Broadcast.apply(tensor, src, _resolve(group))


def all_reduce(tensor, reduceOp, group, tag=""):
    """The sum (or what ``reduceOp`` names) of all processes' tensors."""
    return _AllReduce.apply(tensor, _op(reduceOp), _resolve(group))


def all_reduce_coalesced(tensors, reduceOp, group, tag=""):
    """The same, for each tensor of a list."""
    return [all_reduce(t, reduceOp, group, tag) for t in tensors]


def all_gather_tensor(tensor, gather_dim, group, tag=""):
    """All processes' tensors, joined along a dimension."""
    group = _resolve(group)
    whole = _Gather.apply(tensor, group)
    return adjoin.cat(whole.chunk(group.size()), gather_dim) if gather_dim % tensor.ndim else whole


def all_gather_into_tensor_coalesced(tensors, group, tag=""):
    """The same for each tensor of a list, along the first dimension."""
    return [all_gather_tensor(t, 0, group, tag) for t in tensors]


def reduce_scatter_tensor(tensor, reduceOp, scatter_dim, group, tag=""):
    """This process's part, along a dimension, of the reduced tensors."""
    group = _resolve(group)
    rows = tensor.shape[scatter_dim]
    if rows % group.size():
        raise ValueError(
            f"reduce_scatter_tensor: {rows} rows of dimension {scatter_dim} make no {group.size()} equal parts"
        )
    whole = adjoin.cat(tensor.chunk(group.size(), scatter_dim)) if scatter_dim % tensor.ndim else tensor
    return _Scatter.apply(whole, _op(reduceOp), group)


def reduce_scatter_tensor_coalesced(inputs, reduceOp, scatter_dim, group, tag=""):
    """The same for each tensor of a list, each along its dimension."""
    return [reduce_scatter_tensor(t, reduceOp, dim, group, tag) for t, dim in zip(inputs, scatter_dim, strict=True)]


def all_to_all_single(tensor, output_split_sizes, input_split_sizes, group, tag=""):
    """Each process gives a part of its rows to each."""
    sizes = _collectives._numbers(output_split_sizes), _collectives._numbers(input_split_sizes)
    return _AllToAll.apply(tensor, *sizes, _resolve(group))


def permute_tensor(tensor, src_dst, group, tag=""):
    """The tensor of the process whose place in ``src_dst`` names this one: process i gives to process src_dst[i]."""
    group = _resolve(group)
    if sorted(src_dst) != list(range(group.size())):
        raise ValueError(f"permute_tensor: {list(src_dst)} is no order of the group's {group.size()} processes")
    mine, rows = group.rank(), tensor.shape[0]
    gives, takes = [0] * group.size(), [0] * group.size()
    gives[src_dst[mine]], takes[list(src_dst).index(mine)] = rows, rows
    return all_to_all_single(tensor, takes, gives, group)


all_gather_tensor_autograd = all_gather_single = all_gather_single_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
all_gather_single_coalesced, reduce_scatter_single_coalesced = (
    all_gather_into_tensor_coalesced,
    reduce_scatter_tensor_coalesced,
)
