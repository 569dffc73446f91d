"""adjoin.distributed.tensor._move: a tensor's parts brought from some placements to others, one dimension of the mesh at a time."""

import adjoin

from .. import _collectives as collectives
from .._names import ReduceOp
from ._utils import part
from .placement_types import Partial, Replicate, Shard

_OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "max": ReduceOp.MAX, "min": ReduceOp.MIN}
_NEUTRAL = {"sum": 0, "product": 1}
watchers = []  # CommDebugMode's: each is told the name of a collective


def _told(name):
    for watcher in watchers:
        watcher(name)


def _sizes(size, parts):
    return [part(size, parts, i)[1] for i in range(parts)]


def _with(shape, dim, size):
    return (*shape[:dim], size, *shape[dim + 1 :])


def _gathered(local, dim, size, mesh, m):
    _told("all_gather")
    parts = [local.new_empty(_with(local.shape, dim, n)) for n in _sizes(size, mesh.size(m))]
    collectives.all_gather(parts, local.contiguous(), mesh.get_group(m))
    return adjoin.cat(parts, dim)


def _own(whole, dim, mesh, m):
    begin, size = part(whole.shape[dim], mesh.size(m), mesh.get_local_rank(m))
    return whole.narrow(dim, begin, size)


def _reduced(local, op, mesh, m):
    _told("all_reduce")
    total = local.clone(memory_format=adjoin.contiguous_format)
    collectives.all_reduce(total, _OPS[op], mesh.get_group(m))
    return total


def _scattered(local, op, dim, mesh, m):
    """The own part of the sum."""
    n = mesh.size(m)
    if local.shape[dim] % n:
        return _own(_reduced(local, op, mesh, m), dim, mesh, m).contiguous()
    _told("reduce_scatter")
    parts = adjoin.stack(local.chunk(n, dim))
    made = local.new_empty(parts.shape[1:])
    collectives.reduce_scatter_tensor(made, parts, _OPS[op], mesh.get_group(m))
    return made


def _exchanged(local, given, wanted, size, mesh, m):
    """From parts along ``given``, of which there are ``size`` in all, to parts along ``wanted``."""
    _told("all_to_all")
    n, here = mesh.size(m), mesh.get_local_rank(m)
    mine = part(local.shape[wanted], n, here)[1]
    out = [local.new_empty(_with(_with(local.shape, wanted, mine), given, k)) for k in _sizes(size, n)]
    sent = [local.narrow(wanted, *part(local.shape[wanted], n, i)).contiguous() for i in range(n)]
    collectives.all_to_all(out, sent, mesh.get_group(m))
    return adjoin.cat(out, given)


def _partial(local, op, mesh, m):
    """A tensor that all have as a sum: the first has it, the others nothing."""
    if op in _NEUTRAL and mesh.get_local_rank(m) != 0:
        return adjoin.full_like(local, _NEUTRAL[op])
    return local


def _step(local, size, now, then, mesh, m):
    """``size``: sizes of the tensor before the mesh's dimension m cuts it."""
    if now == then or mesh.size(m) == 1:
        return local
    if isinstance(now, Partial) and isinstance(then, Shard):
        return _scattered(local, now.reduce_op, then.dim, mesh, m)
    if isinstance(now, Shard) and isinstance(then, Shard):
        return _exchanged(local, now.dim, then.dim, size[now.dim], mesh, m)
    if isinstance(now, Partial):
        local = _reduced(local, now.reduce_op, mesh, m)
    elif isinstance(now, Shard):
        local = _gathered(local, now.dim, size[now.dim], mesh, m)
    if isinstance(then, Shard):
        return _own(local, then.dim, mesh, m).contiguous()
    return _partial(local, then.reduce_op, mesh, m) if isinstance(then, Partial) else local


def _before(shape, placements, mesh, m):
    """The sizes that the mesh's dimensions before m leave."""
    sizes, here = list(shape), mesh.get_coordinate()
    for k, p in enumerate(placements[:m]):
        if isinstance(p, Shard):
            sizes[p.dim] = part(sizes[p.dim], mesh.size(k), here[k])[1]
    return sizes


def moved(local, shape, now, then, mesh):
    """The part of a tensor of that shape by the placements ``then``, from that by ``now``."""
    now = list(now)
    if now == list(then) or mesh.get_coordinate() is None:
        return local
    for m in reversed(range(mesh.ndim)):  # a dimension that is cut twice is joined from the inside
        dims = {p.dim for k in range(m) for p in (now[k], then[k]) if isinstance(p, Shard) and now[k] != then[k]}
        if isinstance(now[m], Shard) and now[m].dim in dims:
            local = _step(local, _before(shape, now, mesh, m), now[m], Replicate(), mesh, m)
            now[m] = Replicate()
    for m in range(mesh.ndim):
        local = _step(local, _before(shape, now, mesh, m), now[m], then[m], mesh, m)
        now[m] = then[m]
    return local
