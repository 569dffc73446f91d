"""rules_memory.py: both answer, and the answers lie otherwise in memory: views, copies, strides, what out= wrote over."""

import re

import adjoin
import torch

from .case import run
from .compare import address, differences, dtype, is_tensor, numbers, strides
from .elements import also, broken, each, named
from .meaning import same_numbers
from .rule import Rule


def conj_is_new(d):
    """Where PyTorch's conj() gives a copy, too, nothing differs."""

    def copied(line):
        line = re.sub(
            r"(\w+)\.conj\(\)",
            r"\1.conj().resolve_conj().clone()",
            str(line) if not hasattr(line, "text") else line.text(),
        )
        line = re.sub(r"(\w+)\.(H|mH|adjoint\(\)|resolve_conj\(\))(?!\.clone)", r"\1.\2.resolve_conj()", line)
        return re.sub(r"t\.(conj|resolve_conj)\((\w+)\)", r"t.\1(\2).resolve_conj().clone()", line)

    lines = [copied(s) for s in d.case.steps]
    if lines == [s if isinstance(s, str) else s.text() for s in d.case.steps]:
        return False
    other = run(torch, d.case, steps=lines)
    return other.error is None and not differences(d.case, d.all_ours, other)


def alias_of_itself(d):
    """Another tensor over the same memory, in PyTorch the same one."""
    r = d.all_ours.names["r"]
    return (
        " is " in d.name
        and d.theirs is True
        and address(r[0] if isinstance(r, (tuple, list)) else r) == address(d.all_ours.names["x"])
    )


def itself_or_copy(d):
    """The numbers are x's; whether they lie where x does is the difference."""
    r, x = d.all_ours.names["r"], d.all_ours.names["x"]
    return same_numbers(r, torch.tensor(numbers(x), dtype=getattr(torch, dtype(x))).reshape(tuple(r.shape)))


def rewritten(d):
    """The steps with out= told otherwise: with copies of what is read, and as an assignment of what the call gives."""
    copies, fresh = [], []
    for step in d.case.steps:
        line = step if isinstance(step, str) else step.text()
        found = re.match(r"(?:\w+ = )?t\.(\w+)\((.*), out=(\w+)\)$", line)
        assigned = re.match(r"(\w+(?:\[.*\])? \S*= )([a-z]\w*)$", line) or re.match(r"(\w+\.copy_\()(\w+)\)$", line)
        if assigned:
            line = f"{assigned[1]}{assigned[2]}.clone(){')' if 'copy_(' in line else ''}"
        if not found:
            copies.append(line)
            fresh.append(line)
            continue
        name, args, out = found.groups()
        cloned = re.sub(
            r"\b([a-z]\d*)\b(?![\w.(='])",
            lambda m: m[1] if m[1] == "t" else f"({m[1]}.clone() if t.is_tensor({m[1]}) else {m[1]})",
            args,
        )
        copies.append(f"t.{name}({cloned}, out={out})")
        fresh.append(f"{out} = t.{name}({args}).to({out}.dtype)")
    return copies, fresh


def out_is_part(d):
    """A write over memory that it reads: the answer is that of copies, or out has memory of its own."""
    for lines in rewritten(d):
        other = run(torch, d.case, steps=lines)
        if other.error is None and all(map(by_elements, differences(d.case, d.all_ours, other))):
            return True
    return False


def by_elements(d):
    """What is left differs in elements that have names of their own."""
    return truths_of_bytes(d) or bytes_of_broken(d) or (d.kind == "value" and each(broken)(d))


def bytes_of_broken(d):
    """Another view has the bytes of complex numbers, which are NaN in other parts."""
    if d.kind != "value" or not (is_tensor(d.ours) and is_tensor(d.theirs)) or dtype(d.ours) != "uint8":
        return False
    whole = [
        numbers(lib.tensor(v.untyped_storage().tolist(), dtype=lib.uint8).view(getattr(lib, kind)))
        for kind in {dtype(z) for z in d.all_ours.names.values() if is_tensor(z) and z.is_complex()}
        for v, lib in ((d.ours, adjoin), (d.theirs, torch))
    ]
    return len(whole) == 2 and all(a == b or broken(a, b) for a, b in zip(*whole, strict=True))


def truths_of_bytes(d):
    """Bytes were read as bools and written back: those that are not 0 are another number that is not 0."""
    a, b = d.ours, d.theirs
    if "view(t.bool)" not in "".join(d.case.lines()) or d.kind != "value" or not (is_tensor(a) and is_tensor(b)):
        return False
    mine, other = (v.detach().resolve_conj().contiguous().reshape(-1) for v in (a, b))
    if dtype(a) != dtype(b) or tuple(mine.shape) != tuple(other.shape):
        return False
    mine, other = (numbers(v.view(lib.uint8)) for v, lib in ((mine, adjoin), (other, torch)))
    return all((p != 0) == (q != 0) for p, q in zip(mine, other, strict=True))


def order_of_the_base(d):
    """The base is a result, whose order of memory differs already."""
    base = d.name.rpartition(" in ")[2]
    a, b = d.all_ours.names.get(base), d.all_theirs.names.get(base)
    return is_tensor(a) and is_tensor(b) and strides(a) != strides(b)


def lies_in_another_order(d):
    """Two results share memory or do not, for one of them lies in another order, of which another view can be made."""
    names = re.split(" with | is ", d.name)
    kept = [(d.all_ours.names.get(k), d.all_theirs.names.get(k)) for k in names]
    pairs = [(a, b) for a, b in kept if is_tensor(a) and is_tensor(b)]
    if any(strides(a) != strides(b) for a, b in pairs):
        return True
    bases = [k for k, a in d.all_ours.names.items() if is_tensor(a) and is_tensor(d.all_theirs.names.get(k))]
    moved = [k for k in bases if strides(d.all_ours.names[k]) != strides(d.all_theirs.names[k])]
    return any(address(d.all_ours.names[k]) == address(a) for k in moved for a, _ in pairs)


RULES = [
    Rule("other: bytes read as bools", "bytes read as bools", "value", truths_of_bytes),
    Rule("other: order of a result's memory", "strides of results are no promise", "strides", order_of_the_base),
    Rule("other: strides of nonzero", "strides of results are no promise", "strides", named("nonzero where argwhere")),
    Rule("other: conj and real are new tensors", "`conj()` is a new tensor", "shares value shape strides", conj_is_new),
    Rule("other: a view of a result in another order", "strides of results are no promise", "shares", lies_in_another_order),
    Rule("other: an alias of the argument", "another tensor over the same memory", "shares", also(named("real broadcast_tensors"), alias_of_itself)),
    Rule("other: the argument or a copy", "is the tensor itself or a copy", "shares dtype", also(named("pixel_shuffle sum_to_size"), itself_or_copy)),
    Rule("other: out= over memory that is read", "an `out=` that shares memory with an input", "value shape shares strides dtype", out_is_part),
]  # fmt: skip
