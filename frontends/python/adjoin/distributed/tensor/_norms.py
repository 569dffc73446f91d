"""adjoin.distributed.tensor._norms: calls that no letters describe: norms of lists of DTensors, tensors that are made like one."""

import adjoin

from ._cut import row
from ._move import _reduced, moved
from .placement_types import Replicate


def total_norm(kind, name, in_place, args):
    """The norm of all elements: each process sums what it has, of what several have one of them."""
    tensors, order = list(args[0]), float(args[1])
    infinite = order == float("inf")
    sums = {}
    for t in tensors:
        t, mesh, first = _own(t, kind)
        part = t.abs()
        if infinite:
            part = part.amax() if t.numel() else part.sum()
        else:
            part = part.square().sum() if order == 2 else (part**order).sum()
        part = part if first or infinite else adjoin.zeros_like(part)
        key = id(mesh)
        held = sums[key][1] if key in sums else None
        sums[key] = mesh, part if held is None else adjoin.maximum(held, part) if infinite else held + part
    whole = None
    for mesh, part in sums.values():
        for m in range(mesh.ndim) if mesh is not None else ():
            part = _reduced(part, "max" if infinite else "sum", mesh, m)
        whole = part if whole is None else adjoin.maximum(whole, part) if infinite else whole + part
    mesh = next(t.device_mesh for t in tensors if isinstance(t, kind))
    made = whole if infinite else whole.sqrt() if order == 2 else whole ** (1 / order)
    return kind._made(made, mesh, (Replicate(),) * mesh.ndim, ())


def _own(t, kind):
    """(this process's part, the mesh, whether it counts here)"""
    if not isinstance(t, kind):
        return t, None, True
    mesh, placements = t.device_mesh, t.placements
    if any(p.is_partial() for p in placements):
        whole = tuple(Replicate() if p.is_partial() else p for p in placements)
        return moved(t._local_tensor, tuple(t.shape), placements, whole, mesh), mesh, _first(mesh, whole)
    return t._local_tensor, mesh, _first(mesh, placements)


def _first(mesh, placements):
    return all(mesh.get_local_rank(m) == 0 for m, p in enumerate(placements) if p.is_replicate())


def fused_scale(kind, name, in_place, args):
    """Each process scales what it has."""
    local = [t._local_tensor if isinstance(t, kind) else t for t in args[0]]
    scale = args[1]
    if isinstance(scale, kind):
        scale = moved(
            scale._local_tensor, (), scale.placements, (Replicate(),) * scale.device_mesh.ndim, scale.device_mesh
        )
    row(name)([local, scale])
    return ()


def made_new(kind, name, in_place, args):
    """A new tensor of some size, which each process has whole."""
    given = args[0]
    made = row(name)([adjoin.empty(0, dtype=given.dtype), *args[1:]])
    return kind._made(made, given.device_mesh, (Replicate(),) * given.device_mesh.ndim, tuple(made.shape))


def random_like(kind, name, in_place, args):
    """Random numbers as large as a tensor, and in its parts: the place in the whole says the number."""
    given, mesh = args[0], args[0].device_mesh
    made = row(name)([adjoin.empty(tuple(given.shape), dtype=given.dtype), *args[1:]])
    placed = tuple(Replicate() if p.is_partial() else p for p in given.placements)
    own = moved(made, tuple(given.shape), (Replicate(),) * mesh.ndim, placed, mesh)
    return kind._made(own, mesh, placed, tuple(given.shape))


CALLS = {
    "total_norm": total_norm, "fused_scale_": fused_scale,
    **dict.fromkeys(("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"), made_new),
    **dict.fromkeys(("rand_like", "randn_like", "randint_like", "randint_like.low"), random_like),
}  # fmt: skip
