"""adjoin.distributed._objects: collectives of Python objects, by pickle: processes of one job trust each other."""

import pickle

import adjoin

from ._collectives import all_gather, all_gather_into_tensor, all_reduce, broadcast, gather, recv, scatter, send
from ._group import of, place_in
from ._names import ReduceOp


def _packed(obj):
    data = bytearray(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL))
    return adjoin.frombuffer(data, dtype=adjoin.uint8)


def _unpacked(t):
    return pickle.loads(memoryview(t.contiguous()))


def numbers(mine, group):
    """Each process's number, in the order of the group; in one message."""
    every = adjoin.empty(group.size(), dtype=adjoin.int64)
    all_gather_into_tensor(every, adjoin.tensor([mine]), group)
    return every.tolist()


def alike(mine, group):
    """Whether all processes have the same number. Nobody holds all of them: there may be thousands."""
    ends = adjoin.tensor([mine, -mine])
    try:
        all_reduce(ends, ReduceOp.MAX, group)
    except NotImplementedError:  # an engine that adds alone
        return len({*numbers(mine, group)}) == 1
    most, least = ends.tolist()
    return most == -least


def all_gather_object(object_list, obj, group=None):
    """object_list[i] gets the object of process i."""
    group = of(group)
    if len(object_list) != group.size():
        count = "one process" if group.size() == 1 else f"{group.size()} processes"
        raise ValueError(f"all_gather_object: {len(object_list)} places in object_list; the group has {count}")
    if group.size() == 1:
        object_list[0] = obj
        return
    packed = _packed(obj)
    parts = [adjoin.empty(size, dtype=adjoin.uint8) for size in numbers(packed.numel(), group)]
    all_gather(parts, packed, group)
    object_list[:] = [_unpacked(part) for part in parts]


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """object_gather_list[i] of ``dst`` gets the object of process i."""
    group = of(group)
    root = place_in(group, 0 if dst is None else dst, group_dst, "dst")
    here = group.rank() == root
    if here and (object_gather_list is None or len(object_gather_list) != group.size()):
        count = "one process" if group.size() == 1 else f"{group.size()} processes"
        raise ValueError(f"gather_object: dst wants a list with a place for each; the group has {count}")
    if group.size() == 1:
        object_gather_list[0] = obj
        return
    packed = _packed(obj)
    sizes = numbers(packed.numel(), group)
    padded = adjoin.zeros(max(sizes), dtype=adjoin.uint8)
    padded[: packed.numel()] = packed
    parts = [adjoin.empty_like(padded) for _ in sizes] if here else None
    gather(padded, parts, group=group, group_dst=root)
    if here:
        object_gather_list[:] = [_unpacked(part[:size]) for part, size in zip(parts, sizes, strict=True)]


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """The objects of ``src`` go into the lists of all."""
    group = of(group)
    root = place_in(group, 0 if src is None else src, group_src, "src")
    if group.size() == 1:
        return
    here = group.rank() == root
    packed = _packed(list(object_list)) if here else None
    size = adjoin.tensor([packed.numel() if here else 0, len(object_list)])
    count = len(object_list)
    broadcast(size, group=group, group_src=root)
    if int(size[1]) != count:
        raise ValueError(f"broadcast_object_list: {count} places in object_list; src has {int(size[1])}")
    packed = packed if here else adjoin.empty(int(size[0]), dtype=adjoin.uint8)
    broadcast(packed, group=group, group_src=root)
    if not here:
        object_list[:] = _unpacked(packed)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """The first place of process i's output list gets the input list's object i of ``src``."""
    group = of(group)
    root = place_in(group, 0 if src is None else src, group_src, "src")
    here = group.rank() == root
    given = list(scatter_object_input_list or [])
    if here and len(given) != group.size():
        count = "one process" if group.size() == 1 else f"{group.size()} processes"
        raise ValueError(f"scatter_object_list: {len(given)} tensors in the input; the group has {count}")
    if group.size() == 1:
        scatter_object_output_list[0] = given[0]
        return
    packed = [_packed(obj) for obj in given] if here else []
    sizes = adjoin.tensor([p.numel() for p in packed]) if here else adjoin.zeros(group.size(), dtype=adjoin.int64)
    broadcast(sizes, group=group, group_src=root)
    room = int(sizes.max())
    parts = []
    for p in packed:
        padded = adjoin.zeros(room, dtype=adjoin.uint8)
        padded[: p.numel()] = p
        parts.append(padded)
    held = adjoin.empty(room, dtype=adjoin.uint8)
    scatter(held, parts or None, group=group, group_src=root)
    scatter_object_output_list[0] = _unpacked(held[: int(sizes[group.rank()])])


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Sends objects to a process."""
    packed = _packed(list(object_list))
    send(adjoin.tensor([packed.numel()]), dst, group, group_dst=group_dst)
    send(packed, dst, group, group_dst=group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receives objects into the list; the rank of who sent them."""
    size = adjoin.zeros(1, dtype=adjoin.int64)
    rank = recv(size, src, group, group_src=group_src)
    packed = adjoin.empty(int(size), dtype=adjoin.uint8)
    recv(packed, src, group, group_src=group_src)
    object_list[:] = _unpacked(packed)
    return rank
