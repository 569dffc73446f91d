"""adjoin.distributed.fsdp._params: the parameters that one call of fully_shard has: gathered together, and their gradients scattered."""

import math

import adjoin

from .. import _collectives as collectives
from .._names import ReduceOp
from ..tensor import DTensor, Replicate, Shard
from ..tensor._move import moved
from ..tensor._utils import part


class _Slot:
    """A parameter: the modules that have it, and its part."""

    def __init__(self, holders, p, mesh, placements):
        self.holders, self.within, whole = holders, None, tuple(p.shape)
        if isinstance(p, DTensor):  # a layer in parts: each process cuts its part again
            self.within = p.device_mesh, p.placements, whole
            mesh_of_all, placements = _joined(p, mesh, placements, holders[0][1])
            p = adjoin.nn.Parameter(p._local_tensor, p.requires_grad)
        else:
            mesh_of_all = mesh
        self.shape = tuple(p.shape)
        n, here = mesh.size(mesh.ndim - 1), mesh.get_local_rank(mesh.ndim - 1)
        self.rows = math.ceil(self.shape[0] / n)
        self.count = self.rows * math.prod(self.shape[1:])  # elements of the largest part
        begin, size = part(self.shape[0], n, here)
        local = p.detach().narrow(0, begin, size).clone()
        self.sharded = adjoin.nn.Parameter(DTensor._made(local, mesh_of_all, placements, whole), p.requires_grad)
        self.put(self.sharded)

    def renew(self):
        """The module's own parameter, which to() and to_empty() may have replaced."""
        module, name = self.holders[0]
        now = module._parameters[name]
        if now is not self.sharded and isinstance(now, DTensor) and now.placements == self.sharded.placements:
            now._fully_sharded, self.sharded = True, now

    def put(self, value):
        for module, name in self.holders:
            module._parameters[name] = value

    def wrapped(self, t):
        """A whole parameter as the modules know it."""
        return t if self.within is None else DTensor._made(t, *self.within)

    def plain(self, g):
        """A gradient as this process's part of the layer has it."""
        if g is None or self.within is None:
            return g
        mesh, placements, shape = self.within
        return moved(g._local_tensor, shape, g.placements, placements, mesh)

    def padded(self, t, rows):
        """The tensor's first dimension filled up, as one row of elements."""
        flat = t.reshape(-1)
        wanted = rows * math.prod(self.shape[1:])
        return flat if flat.numel() == wanted else adjoin.cat([flat, flat.new_zeros(wanted - flat.numel())])


class _Gather(adjoin.autograd.Function):
    """The whole parameters of their parts; backward, the parts of the gradients' mean."""

    @staticmethod
    def forward(ctx, group, *parts):
        ctx.group = group
        ctx.set_materialize_grads(False)
        whole = group.gathered([p._local_tensor for p in parts])
        return tuple(s.wrapped(t) for s, t in zip(group.slots, whole, strict=True))

    @staticmethod
    def backward(ctx, *grads):
        return None, *ctx.group.scattered([s.plain(g) for s, g in zip(ctx.group.slots, grads, strict=True)])


class Params:
    """Parameters that are gathered by one collective."""

    def __init__(self, slots, mesh, policy, reshard):
        self.slots, self.mesh, self.policy, self.reshard = slots, mesh, policy, reshard
        self.size = mesh.size(mesh.ndim - 1)
        self.kept = None  # whole parameters that backward has asked for
        self.waiting = [None] * len(slots)  # gradients of passes that were not to be reduced
        self.sync = self.all_reduce = True
        self.factor = None
        self.storages = {}

    def gathered(self, locals_):
        """Whole tensors of all processes' parts."""
        dtype = self.policy.param_dtype
        packed = [s.padded(t if dtype is None or not t.is_floating_point() else t.to(dtype), s.rows) for s, t in zip(self.slots, locals_, strict=True)]  # fmt: skip
        whole = []
        for kind, places in _by_dtype(packed).items():
            mine = adjoin.cat([packed[i] for i in places])
            rows = mine.new_empty((self.size, mine.numel()), dtype=kind)
            if self.size == 1:
                rows[0] = mine
            else:
                collectives.all_gather_into_tensor(rows, mine, self.mesh.get_group(self.mesh.ndim - 1))
            begin = 0
            for i in places:
                s = self.slots[i]
                t = rows[:, begin : begin + s.count].reshape(self.size * s.rows, *s.shape[1:])[: s.shape[0]]
                whole.append((i, t.clone() if self.size == 1 or len(self.slots) > 1 else t))
                begin += s.count
        return [t for _, t in sorted(whole, key=lambda pair: pair[0])]

    def scattered(self, grads):
        """This process's parts of the mean of all processes' gradients; None where there is none."""
        self.kept = None
        grads = list(grads)
        for i, held in enumerate(self.waiting):
            if held is not None:
                grads[i] = held if grads[i] is None else grads[i] + held
        if not self.sync:
            self.waiting = [None if g is None else g.detach() for g in grads]
            return [None] * len(grads)
        self.waiting = [None] * len(grads)
        made = [None] * len(grads)
        dtype = self.policy.reduce_dtype
        cast = [g if g is None or dtype is None else g.to(dtype) for g in grads]
        packed = [None if g is None else s.padded(g.detach(), s.rows * self.size).view(self.size, s.count) for s, g in zip(self.slots, cast, strict=True)]  # fmt: skip
        for places in _by_dtype(packed).values():
            mine = self._reduced(adjoin.cat([packed[i] for i in places], 1))
            begin = 0
            for i in places:
                s = self.slots[i]
                local = s.sharded._local_tensor
                g = mine[begin : begin + local.numel()].view(local.shape).to(local.dtype)
                made[i] = DTensor._made(g, s.sharded.device_mesh, s.sharded.placements, tuple(s.sharded.shape))
                begin += s.count
        return made

    def _reduced(self, rows):
        world = self.mesh.size()
        rows = rows / (self.factor or world)
        mine = rows[0] if self.size == 1 else rows.new_empty(rows.shape[1])
        if self.size > 1:
            collectives.reduce_scatter_tensor(mine, rows, ReduceOp.SUM, self.mesh.get_group(self.mesh.ndim - 1))
        if self.mesh.ndim == 2 and self.all_reduce:
            collectives.all_reduce(mine, group=self.mesh.get_group(0))
        return mine

    # The modules' parameters, whole while forward runs

    def enter(self):
        """The modules have whole parameters, and the tape knows whose they are."""
        for s in self.slots:
            s.renew()
        whole = _Gather.apply(self, *[s.sharded for s in self.slots])
        for s, t in zip(self.slots, whole, strict=True):
            s.put(t)
        keeps = self.reshard and adjoin.is_grad_enabled()
        self.storages = {_local(t).data_ptr(): i for i, t in enumerate(whole)} if keeps else {}

    def leave(self):
        """The modules have parts again."""
        for s in self.slots:
            s.put(s.sharded)
        self.storages = {}

    def pack(self, t):
        """What the tape keeps of a whole parameter: which it is. Its memory is free after forward."""
        local = _local(t)
        i = self.storages.get(local.untyped_storage().data_ptr()) if self.storages else None
        if i is None:
            return t
        within = (t.device_mesh, t.placements, tuple(t.shape)) if isinstance(t, DTensor) else None
        return i, tuple(local.shape), local.stride(), local.storage_offset(), within

    def unpack(self, kept):
        """The whole parameter again, gathered once in a backward pass."""
        if isinstance(kept, adjoin.Tensor):
            return kept
        if self.kept is None:
            with adjoin.no_grad():
                self.kept = self.gathered([s.sharded._local_tensor for s in self.slots])
        i, shape, stride, offset, within = kept
        t = self.kept[i].as_strided(shape, stride, offset)
        return t if within is None else DTensor._made(t, *within)


def _local(t):
    return t._local_tensor if isinstance(t, DTensor) else t


def _joined(p, mesh, placements, name):
    """(mesh, placements) of a parameter that a layer's mesh cuts first, then this one."""
    inner = p.device_mesh
    if inner._whole is None or inner._whole is not mesh._whole or mesh.ndim != 1 or inner.ndim != 1:
        raise NotImplementedError(
            f"fully_shard: the parameter {name!r} lies on {inner} and is to be cut over {mesh}; make one mesh of two dimensions with names, "
            "and pass a line of it to each: mesh['dp'], mesh['tp']"
        )
    return inner._whole[(*inner.mesh_dim_names, *mesh.mesh_dim_names)], (*p.placements, *placements)


def _by_dtype(tensors):
    """{dtype: places}"""
    found = {}
    for i, t in enumerate(tensors):
        if t is not None:
            found.setdefault(t.dtype, []).append(i)
    return found


def managed(module, mesh, ignored, placement_of):
    """Slots of a module's parameters that no other call has; one that several modules share is one."""
    if mesh.ndim > 2:
        raise NotImplementedError(
            f"fully_shard: a mesh of {mesh.ndim} dimensions is not served; one shards, a second one before it copies"
        )
    placements = (Shard(0),) if mesh.ndim == 1 else (Replicate(), Shard(0))
    holders = {}
    for part_of in module.modules():
        for name, p in part_of._parameters.items():
            if p is None or p in ignored:
                continue
            holders.setdefault(id(p), (p, []))[1].append((part_of, name))
    slots = []
    for p, places in holders.values():
        if getattr(p, "_fully_sharded", False):
            continue
        if p.dim() == 0:
            raise ValueError(
                f"fully_shard: the parameter {places[0][1]!r} has no dimension to cut; make it of shape (1,)"
            )
        asked = placement_of(p) if placement_of else None
        if asked is not None and asked != Shard(0):
            raise NotImplementedError(f"fully_shard: shard_placement_fn gave {asked!r}; Shard(0) is served")
        slots.append(_Slot(places, p, mesh, placements))
        slots[-1].sharded._fully_sharded = True
    return slots
