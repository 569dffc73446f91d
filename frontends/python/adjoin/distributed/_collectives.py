"""adjoin.distributed._collectives: collectives of tensors, in tensor and list forms.

An engine wants dense memory of its device. A tensor that is none, strided or of a device that no engine of the group serves, is
copied for it, the latter into the processor's memory, and its result is copied back when the work is waited for.
"""

import math

import adjoin

from .. import _C
from ._group import of, place_in
from ._names import DistBackendError, ReduceOp, _Premultiplied, reduction
from ._work import Together, Work

BARRIER, BROADCAST, ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, REDUCE_SCATTER, SCATTER, ALL_TO_ALL = range(9)
SEND, RECV, ALL_GATHER_V, ALL_TO_ALL_V = range(9, 13)


def _check(t, who):
    if not isinstance(t, adjoin.Tensor):
        raise TypeError(f"{who}: wanted a tensor, not {type(t).__name__}")
    return t.detach()


def _given(t, group, who):
    """The elements of t, dense and where an engine takes them."""
    t = _check(t, who)
    if t.device.type != "cpu" and group._on(t.device) is None:
        t = _staged(t).copy_(t)
    return t.contiguous()


def _staged(t):
    """Memory of the processor for the elements of a device's tensor, which the device reaches fast where it can."""
    held = adjoin.empty(t.shape, dtype=t.dtype)
    try:
        return held.pin_memory(t.device.type)
    except (RuntimeError, NotImplementedError):  # such memory is not known there
        return held


def _place(t, group, who):
    """(dense memory for the results, what brings them to t): t's own memory if that will do."""
    t = _check(t, who)
    served = t.device.type == "cpu" or group._on(t.device) is not None
    if served and t.is_contiguous():
        return t, None
    held = adjoin.empty(t.shape, dtype=t.dtype, device=t.device) if served else _staged(t)
    return held, lambda: t.copy_(held)


def _filled(t, group, who):
    """The same, with t's elements in it."""
    held, back = _place(t, group, who)
    if back is not None:
        held.copy_(t.detach())
    return held, back


def start(group, kind, given, held, after=None, *, op=0, factor=1.0, peer=-1, tag=0, count=None, counts=(None, None),
          tensors=()):  # fmt: skip
    """The work of a collective; in a group of one it is a copy."""
    if group._native is None:
        if given is not None and held is not None and held.data_ptr() != given.data_ptr():
            held.reshape(-1)[: given.numel()].copy_(given.reshape(-1))
        if op == ReduceOp.PREMUL_SUM.value and held is not None:
            held.mul_(factor)
        return Work(after=after, tensors=tensors)
    one = given if given is not None else held
    if count is None:
        count = one.numel()
    try:
        native = group._native if one is None else group._on(one.device)
        native = _C.dist_start(native, kind, op, peer, tag, count, given, held, *counts, factor)
    except RuntimeError as error:
        raise (error if isinstance(error, NotImplementedError) else DistBackendError(str(error))) from None
    return Work(native, after, tensors)


def _end(work, async_op):
    if async_op:
        return work
    work.wait()
    return None


def _future(work, async_op):
    """As _end; a future, as PyTorch gives of several collectives at once."""
    return work.get_future() if async_op else _end(work, False)


def _same(items, who):
    """Raises unless the tensors have one dtype."""
    if len({t.dtype for t in items}) > 1:
        raise TypeError(f"{who}: the tensors are of several dtypes: {sorted({str(t.dtype) for t in items})}")


def _parts(items, group, who, what):
    if len(items) != group.size():
        count = "one process" if group.size() == 1 else f"{group.size()} processes"
        raise ValueError(f"{who}: {len(items)} tensors in {what}; the group has {count}")
    return items


def _equal(a, b, who):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(
            f"{who}: the tensor is {a.dtype} of shape {list(a.shape)}, its place is {b.dtype} of {list(b.shape)}"
        )


def barrier(group=None, async_op=False, device_ids=None):
    """Nobody goes on before all have come."""
    return _end(start(of(group), BARRIER, None, None, count=0), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """The same; after the timeout the error names who is missing, and what they do."""
    group = of(group)
    start(group, BARRIER, None, None, count=0).wait(group._timeout if timeout is None else timeout)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor gets the sum (or what ``op`` says) of all processes'."""
    group, (number, factor) = of(group), reduction(op)
    held, back = _filled(tensor, group, "all_reduce")
    work = start(group, ALL_REDUCE, held, held, back, op=number, factor=factor, tensors=[tensor])
    return _end(work, async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of each."""
    tensors = list(tensors)
    once = {id(t): t for t in tensors}.values()  # one that stands twice in the list is reduced once
    return _future(Together([all_reduce(t, op, group, True) for t in once], tensors), async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The tensor of ``dst`` gets the sum of all processes'; those of others are kept."""
    group, (number, factor) = of(group), reduction(op)
    root = place_in(group, 0 if dst is None else dst, group_dst, "dst")
    held, back = _filled(tensor, group, "reduce")
    back = back if group.rank() == root else None
    work = start(group, REDUCE, held, held, back, op=number, factor=factor, peer=root, tensors=[tensor])
    return _end(work, async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """The tensor of ``src`` goes to all."""
    group = of(group)
    root = place_in(group, 0 if src is None else src, group_src, "src")
    held, back = _filled(tensor, group, "broadcast")
    back = None if group.rank() == root else back
    return _end(start(group, BROADCAST, held, held, back, peer=root, tensors=[tensor]), async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """tensor_list[i] gets the tensor of process i; they may differ in size."""
    group = of(group)
    _parts(tensor_list, group, "all_gather", "tensor_list")
    _same([tensor, *tensor_list], "all_gather")
    _equal(tensor, tensor_list[group.rank()], "all_gather")
    counts = [t.numel() for t in tensor_list]
    given = _given(tensor, group, "all_gather")
    held = adjoin.empty(sum(counts), dtype=tensor.dtype, device=given.device)
    kind, sizes = (ALL_GATHER, None) if len(set(counts)) == 1 else (ALL_GATHER_V, tuple(counts))
    work = start(
        group, kind, given, held, lambda: _spread(held, tensor_list), counts=(None, sizes), tensors=tensor_list
    )
    return _end(work, async_op)


def _spread(held, tensors):
    begin = 0
    with adjoin.no_grad():
        for t in tensors:
            t.detach().copy_(held[begin : begin + t.numel()].reshape(t.shape))
            begin += t.numel()


def _joined(tensors, group, who):
    return adjoin.cat([_given(t, group, who).reshape(-1) for t in tensors])


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The output gets the inputs of all processes, one behind the other."""
    group = of(group)
    _same([output_tensor, input_tensor], "all_gather_into_tensor")
    if output_tensor.numel() != input_tensor.numel() * group.size():
        count = "one process" if group.size() == 1 else f"{group.size()} processes"
        raise ValueError(
            f"all_gather_into_tensor: {output_tensor.numel()} elements for {input_tensor.numel()} of {count}"
        )
    held, back = _place(output_tensor, group, "all_gather_into_tensor")
    given = _given(input_tensor, group, "all_gather_into_tensor")
    return _end(start(group, ALL_GATHER, given, held, back, tensors=[output_tensor]), async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """output_tensor_lists[i][j] gets tensor j of process i."""
    group = of(group)
    _parts(output_tensor_lists, group, "all_gather_coalesced", "output_tensor_lists")
    works = [
        all_gather(list(places), t, group, True)
        for t, *places in zip(input_tensor_list, *output_tensor_lists, strict=True)
    ]
    return _future(Together(works, [t for places in output_tensor_lists for t in places]), async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """gather_list[i] of ``dst`` gets the tensor of process i."""
    group = of(group)
    root = place_in(group, 0 if dst is None else dst, group_dst, "dst")
    given, held, after = _given(tensor, group, "gather"), None, None
    if group.rank() == root:
        _parts([] if gather_list is None else gather_list, group, "gather", "gather_list")
        for t in gather_list:
            _equal(tensor, t, "gather")
        held = adjoin.empty(tensor.numel() * group.size(), dtype=tensor.dtype, device=given.device)
        after = lambda: _spread(held, gather_list)  # noqa: E731
    elif gather_list:
        raise ValueError(f"gather: gather_list is for dst alone, which is rank {group._ranks[root]}")
    return _end(start(group, GATHER, given, held, after, peer=root, tensors=gather_list or ()), async_op)


def gather_single(tensor, gather_tensor=None, dst=None, group=None, async_op=False, group_dst=None):
    """The gather_tensor of ``dst`` gets the tensors of all processes, one behind the other along its first dimension."""
    group = of(group)
    root = place_in(group, 0 if dst is None else dst, group_dst, "dst")
    places = None
    if group.rank() == root:
        if gather_tensor is None or gather_tensor.numel() != tensor.numel() * group.size():
            found = "none" if gather_tensor is None else f"one of {gather_tensor.numel()} elements"
            raise ValueError(
                f"gather_single: dst wants a gather_tensor of {tensor.numel() * group.size()} elements; {found} is given"
            )
        places = [t.reshape(tensor.shape) for t in gather_tensor.detach().reshape(group.size(), -1).unbind(0)]
    return gather(tensor, places, group=group, group_dst=root, async_op=async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """The tensor of process i gets scatter_list[i] of ``src``."""
    group = of(group)
    root = place_in(group, 0 if src is None else src, group_src, "src")
    given = None
    if group.rank() == root:
        _parts([] if scatter_list is None else scatter_list, group, "scatter", "scatter_list")
        for t in scatter_list:
            _equal(t, tensor, "scatter")
        given = _joined(scatter_list, group, "scatter")
    elif scatter_list:
        raise ValueError(f"scatter: scatter_list is for src alone, which is rank {group._ranks[root]}")
    held, back = _place(tensor, group, "scatter")
    return _end(start(group, SCATTER, given, held, back, peer=root, count=held.numel(), tensors=[tensor]), async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The output gets this process's part of the sum of all inputs."""
    group, (number, factor) = of(group), reduction(op)
    _same([output, input], "reduce_scatter_tensor")
    if input.numel() != output.numel() * group.size():
        raise ValueError(
            f"reduce_scatter_tensor: {input.numel()} elements make no parts of {output.numel()} for {group.size()} processes"
        )
    held, back = _place(output, group, "reduce_scatter_tensor")
    given = _given(input, group, "reduce_scatter_tensor")
    work = start(
        group, REDUCE_SCATTER, given, held, back, op=number, factor=factor, count=held.numel(), tensors=[output]
    )
    return _end(work, async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The output gets the sum of all processes' input_list[i], i being this process's rank."""
    group = of(group)
    _parts(input_list, group, "reduce_scatter", "input_list")
    for t in input_list:
        _equal(t, output, "reduce_scatter")
    return reduce_scatter_tensor(output, _joined(input_list, group, "reduce_scatter"), op, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """output_tensor_list[i] gets what process i has at this process's place of its list."""
    group = of(group)
    _parts(input_tensor_list, group, "all_to_all", "input_tensor_list")
    _parts(output_tensor_list, group, "all_to_all", "output_tensor_list")
    _same([*input_tensor_list, *output_tensor_list], "all_to_all")
    _equal(input_tensor_list[group.rank()], output_tensor_list[group.rank()], "all_to_all")
    given = _joined(input_tensor_list, group, "all_to_all")
    counts = tuple(t.numel() for t in input_tensor_list), tuple(t.numel() for t in output_tensor_list)
    held = adjoin.empty(sum(counts[1]), dtype=given.dtype, device=given.device)
    after = lambda: _spread(held, output_tensor_list)  # noqa: E731
    return _end(start(group, ALL_TO_ALL_V, given, held, after, counts=counts, tensors=output_tensor_list), async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Each process gives a part of its input to each, and its output is what it gets; parts are of the first dimension."""
    group = of(group)
    _same([output, input], "all_to_all_single")
    given, (held, back) = _given(input, group, "all_to_all_single"), _place(output, group, "all_to_all_single")
    output_split_sizes, input_split_sizes = _numbers(output_split_sizes), _numbers(input_split_sizes)
    if output_split_sizes or input_split_sizes:
        counts = _rows(input, input_split_sizes, group, "input"), _rows(output, output_split_sizes, group, "output")
        work = start(group, ALL_TO_ALL_V, given, held, back, counts=counts, tensors=[output])
        return _end(work, async_op)
    if input.numel() != output.numel() or input.numel() % group.size():
        raise ValueError(
            f"all_to_all_single: input has {input.numel()} elements and output {output.numel()}; both want the same number, "
            f"in {group.size()} equal parts"
        )
    work = start(group, ALL_TO_ALL, given, held, back, count=input.numel() // group.size(), tensors=[output])
    return _end(work, async_op)


def _numbers(sizes):
    """Sizes as numbers; a tensor or an array may have them."""
    return None if sizes is None else [int(size) for size in sizes]


def _rows(t, sizes, group, what):
    rows = t.shape[0]
    sizes = list(sizes) if sizes else [rows // group.size()] * group.size()
    if len(sizes) != group.size() or sum(sizes) != rows:
        raise ValueError(
            f"all_to_all_single: {what}_split_sizes {sizes} do not cut {rows} rows for {group.size()} processes"
        )
    return tuple(size * math.prod(t.shape[1:]) for size in sizes)


def _other(group, rank, group_rank, what, who):
    if group.size() == 1:
        raise ValueError(f"{who}: the group has one process, nobody is there to talk to")
    if rank is None and group_rank is None:
        if what == "src" and group.size() == 2:
            return 1 - group.rank()
        raise NotImplementedError(f"{who}: from any process is not served; name it with {what}=")
    place = place_in(group, rank, group_rank, what)
    if place == group.rank():
        raise ValueError(f"{who}: {what} is this process, rank {group._ranks[place]}")
    return place


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Starts to send a tensor to a process, which receives it."""
    group = of(group)
    peer = _other(group, dst, group_dst, "dst", "isend")
    return start(group, SEND, _given(tensor, group, "isend"), None, peer=peer, tag=tag, tensors=[tensor])


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Starts to receive a tensor that a process sends, of the same dtype and size."""
    group = of(group)
    peer = _other(group, src, group_src, "src", "irecv")
    held, back = _place(tensor, group, "irecv")
    return start(group, RECV, None, held, back, peer=peer, tag=tag, tensors=[tensor])


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends a tensor to a process, and waits until it has it."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receives a tensor; the rank of who sent it."""
    found = of(group)
    peer = _other(found, src, group_src, "src", "recv")
    irecv(tensor, None, group, tag, peer).wait()
    return found._ranks[peer]


class P2POp:
    """A send or a receive for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError("P2POp: op must be isend or irecv")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list):
    """Starts all of them; a list of works."""
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]


def _make_nccl_premul_sum(factor):
    """The sum of what is multiplied by a number first, as an op."""
    return _Premultiplied(factor)


all_gather_single, reduce_scatter_single, gather_into_tensor = (
    all_gather_into_tensor,
    reduce_scatter_tensor,
    gather_single,
)
