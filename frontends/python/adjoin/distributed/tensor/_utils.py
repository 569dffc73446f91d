"""adjoin.distributed.tensor._utils: which part of a tensor a process has."""

import math

from .placement_types import Shard


def part(size, parts, place):
    """(begin, size) of a part of a dimension: parts are as large as the first, the last ones smaller or empty."""
    each = math.ceil(size / parts)
    begin = min(size, each * place)
    return begin, min(each, size - begin)


def _check_order(mesh):
    """A group has its processes in the order of their ranks, and parts lie in that order."""
    if getattr(mesh, "_in_order", False):
        return
    for dim in range(mesh.ndim):
        if mesh.size(dim) > 1 and not bool((mesh.mesh.diff(dim=dim) > 0).all()):
            raise NotImplementedError(
                f"{mesh}: along dimension {dim} its ranks are not in rising order; make the mesh of sorted ranks"
            )
    mesh._in_order = True


def normal(placements, ndim, mesh, who):
    """One placement for each dimension of the mesh, dimensions counted from the front."""
    _check_order(mesh)
    placements = tuple(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(f"{who}: {len(placements)} placements for a mesh of {mesh.ndim} dimensions")
    made = []
    for p in placements:
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                raise IndexError(f"{who}: {p!r} of a tensor with {ndim} dimensions")
            p = Shard(p.dim % ndim)
        made.append(p)
    return tuple(made)


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """(sizes, offsets) of this process's part. A dimension that is cut twice is cut by the mesh's first dimension first."""
    sizes, offsets = list(global_shape), [0] * len(global_shape)
    here = mesh.get_coordinate()
    if here is None:
        return (0,) * len(sizes), tuple(offsets)
    for m, p in enumerate(placements):
        if isinstance(p, Shard):
            begin, sizes[p.dim] = part(sizes[p.dim], mesh.size(m), here[m])
            offsets[p.dim] += begin
    return tuple(sizes), tuple(offsets)


def local_shape(global_shape, mesh, placements):
    """The sizes of this process's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]
