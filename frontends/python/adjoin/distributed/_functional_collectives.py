"""adjoin.distributed._functional_collectives: collectives that give their result, as packages over PyTorch call them."""

import adjoin

from . import _collectives
from ._names import ReduceOp


def wait_tensor(tensor):
    """The tensor: results are there when a function gives them."""
    return tensor


def all_reduce(tensor, reduceOp, group, tag=""):
    """The sum (or what ``reduceOp`` names) of all processes' tensors, anew."""
    total = tensor.clone()
    _collectives.all_reduce(total, ReduceOp[reduceOp.upper()], group)
    return total


def all_gather_tensor(tensor, gather_dim, group, tag=""):
    """All processes' tensors, joined along a dimension."""
    from ._group import get_world_size

    parts = [adjoin.empty_like(tensor) for _ in range(get_world_size(group))]
    _collectives.all_gather(parts, tensor.contiguous(), group)
    return adjoin.cat(parts, gather_dim)


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


def all_to_all_single_autograd(tensor, output_split_sizes, input_split_sizes, group, tag=""):
    """Each process gives a part of its rows to each, with a derivative."""
    return _AllToAll.apply(tensor, output_split_sizes, input_split_sizes, group)


all_to_all_single = all_to_all_single_autograd
