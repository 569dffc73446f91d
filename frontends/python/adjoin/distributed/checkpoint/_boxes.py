"""adjoin.distributed.checkpoint._boxes: the part of a tensor that a process has, and where parts of two kinds meet."""

import math

import adjoin

_PAIRS = 64  # parts of which each is compared with each; of more, the count of elements tells


def own(value):
    """(sizes of the whole tensor, [(offsets, tensor)] of what this process has of it)."""
    box = getattr(value, "__checkpoint_box__", None)
    if box is None:
        return tuple(value.shape), [((0,) * value.dim(), value.detach())]
    offsets, part = box()
    empty = part.numel() == 0 and math.prod(value.shape) > 0
    return tuple(value.shape), [] if empty else [(tuple(offsets), part)]


def meeting(offsets, sizes, other_offsets, other_sizes):
    """[(begin in the first, begin in the second, size)] of each dimension; None if the boxes do not meet."""
    found = []
    for a, n, b, m in zip(offsets, sizes, other_offsets, other_sizes, strict=True):
        begin, end = max(a, b), min(a + n, b + m)
        if begin >= end:
            return None
        found.append((begin - a, begin - b, end - begin))
    return found


def cut(tensor, ranges):
    """The part of a tensor; ranges: (begin, size) of each dimension."""
    for dim, (begin, size) in enumerate(ranges):
        tensor = tensor.narrow(dim, begin, size)
    return tensor


def tiles(size, boxes):
    """None if the boxes fill the tensor and nothing twice; else what is wrong."""
    if any(o < 0 or o + n > s for offsets, sizes in boxes for o, n, s in zip(offsets, sizes, size, strict=True)):
        return "a part lies outside of it"
    if len({tuple(offsets) for offsets, _ in boxes}) < len(boxes):
        return "two parts begin at one place"
    for i, (offsets, sizes) in enumerate(boxes[:_PAIRS]):
        if any(meeting(offsets, sizes, *other) is not None for other in boxes[:i]):
            return "two parts overlap"
    there, wanted = sum(math.prod(sizes) for _, sizes in boxes), math.prod(size)
    return None if there == wanted else f"its parts have {there} of {wanted} elements"


def copied(target, source):
    """Puts elements into a tensor, whatever records it."""
    with adjoin.no_grad():
        target.detach().copy_(source)
