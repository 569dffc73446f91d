"""rules_written.py: differences after a write: what another view shows of it, and what was read from the memory that it wrote."""

import ctypes
import re

import adjoin
import torch

from .case import run
from .compare import Difference, address, differences, differs, dtype, is_tensor, parts
from .meaning import arguments, overlaps_itself, redo, share
from .rule import Rule, op, said


def written_name(d):
    """The name of the tensor that the last step writes."""
    line = d.case.lines()[-1]
    found = (
        re.search(r"out=(\w+)\)$", line)
        or re.match(r"(?:\w+ = )?t\.\w+_\((\w+)", line)
        or re.match(r"(?:\w+ = )?(\w+)(?:\.\w+_\(| \S+= |\[)", line)
    )
    return found and found[1]


def bits_as(tensor, like):
    """The bytes of an Adjoin tensor as a PyTorch tensor."""
    dense = tensor.detach().clone().contiguous()
    held = bytearray(ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size()))
    return torch.frombuffer(held, dtype=like.dtype).reshape(like.shape)


def seen_through(d):
    """Another view of what was written: PyTorch shows the same of Adjoin's bytes. What was written is compared by itself."""
    name = written_name(d)
    if name is None or name == d.name or " " in d.name:
        return False
    other = run(torch, d.case)
    ours, theirs = d.all_ours.names.get(name), other.names.get(name)
    view, seen = parts(d.all_ours).get(d.name), parts(other).get(d.name)
    if other.error or not all(map(is_tensor, (ours, theirs, view, seen))) or not ours.numel():
        return False
    alike = dtype(ours) == dtype(theirs) and tuple(ours.shape) == tuple(theirs.shape)
    if not alike or not share(theirs, seen) or address(ours) != address(view):
        return False
    if overlaps_itself(theirs):
        return False
    theirs.detach().copy_(bits_as(ours, theirs))
    return not differs(d.case, view, seen, True)


def of_our_digits(d):
    """PyTorch's outcome of the last of several steps when it is given what Adjoin's had; None where that cannot be asked."""
    if not d.case.many or len(d.case.steps) > 1 or " " in d.name:
        return None
    ours = run(adjoin, d.case, steps=[]).names

    def turn(names):
        for k, v in names.items():
            mine = ours.get(k)
            if is_tensor(v) and is_tensor(mine) and v.is_floating_point() | v.is_complex() and not overlaps_itself(v):
                if dtype(v) == dtype(mine) and tuple(v.shape) == tuple(mine.shape) and v.numel():
                    v.detach().copy_(bits_as(mine, v))

    other = run(torch, d.case, turn)
    return other if other.error is None and is_tensor(parts(other).get(d.name)) else None


def of_the_same_digits(d):
    """The last of several steps says the same in PyTorch when it is given what Adjoin's had, which differs in lost digits alone."""
    other = of_our_digits(d)
    return other is not None and not differs(d.case, d.ours, parts(other)[d.name], True)


def with_our_digits(d):
    """What still differs when the last of several steps is given the digits that Adjoin's had; None where there is nothing."""
    other = of_our_digits(d) if d.kind == "value" else None
    return other and Difference(d.case, d.kind, d.name, d.ours, parts(other)[d.name], d.all_ours, other)


def as_of_copies(d):
    """A write of a part of itself is that of a copy, in PyTorch too."""
    call, args = d.case.call, arguments(d)
    into = args.get(0)
    own = [k for k in range(1, len(call.args)) if is_tensor(args.get(k)) and share(into, args[k])]
    if not is_tensor(into) or not own:
        return False
    other = redo(torch, d, call.but([f"{a}.clone()" if k in own else a for k, a in enumerate(call.args)]))
    return other.error is None and not differences(d.case, d.all_ours, other)


def alone(d):
    """No other tensor lies in the memory of the one that forgets its history."""
    name = written_name(d)
    one = d.all_ours.names.get(name)
    others = [v for v in d.all_ours.names.values() if isinstance(v, adjoin.Tensor) and v is not one]
    return is_tensor(one) and not any(address(one) == address(v) for v in others)


PARTS = "index_add put index_copy scatter scatter_add masked_scatter index_put"
RULES = [
    Rule("other: another view of what was written", "seen through another view", "value", seen_through),
    Rule("other: digits that were lost before", "digits that were lost", "value shape", of_the_same_digits),
    Rule("other: a part of itself", "with a part of themselves", "value", lambda d: op(d) in PARTS.split() and d.case.call is not None and as_of_copies(d)),
    Rule("more: detach_ of a copy", "`detach_` of what `ravel` copied", "more", lambda d: op(d) == "detach" and said(d.theirs, "Can't detach views") and alone(d)),
]  # fmt: skip
