"""rules_less.py: only Adjoin refuses. Each rule sees in the arguments that the reason which Adjoin gives is there."""

import re

import torch

from .compare import parts
from .case import Call
from .meaning import arguments, before, given, overlaps_itself, redo, share, tensors
from .rule import Rule, failed_step, op, said
from .rules_dtypes import one_element_in_list


def ours(pattern, holds, ops=None):
    def takes(d):
        return (ops is None or op(d) in ops.split("|")) and said(d.ours, pattern) and holds(d)

    return takes


def all_tensors(d):
    """Every tensor of the case, before and after it ran, and what out= names."""
    found = list(tensors(before(d.case)).values()) + list(tensors(d.all_theirs.names).values())
    out = arguments(d).get("out")
    return found + [x for x in (out if isinstance(out, tuple) else [out]) if isinstance(x, torch.Tensor)]


def shares_elements(d):
    return any(overlaps_itself(x) or may_overlap(x) for x in all_tensors(d))


def may_overlap(x):
    """Strides that interleave, as (3, 2) of sizes (2, 3): only counting all places shows that none is shared."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def written(d):
    """The tensors that the failing step writes, by its text."""
    call = d.case.call
    names = d.all_theirs.names if call is None else before(d.case)
    text = failed_step(d)
    if call is not None and "out" in call.words:
        return [x for x in tuple_of(arguments(d).get("out")) if isinstance(x, torch.Tensor)]
    found = re.search(r"out=(\w+)", text) or re.match(r"(\w+)", text.split(" = ")[-1] if "_(" in text else text)
    name = found.group(1) if found else None
    return [names[name]] if isinstance(names.get(name), torch.Tensor) else []


def read(d):
    """The tensors that it reads."""
    if d.case.call is not None:
        return given(d)
    names = d.all_theirs.names
    text = failed_step(d)
    counted = re.findall(r"[a-z]\d*", text)
    return [names[n] for n in counted if isinstance(names.get(n), torch.Tensor)]


def tuple_of(x):
    return x if isinstance(x, tuple) else (x,)


def shares_with_argument(d):
    into, from_ = written(d), read(d)
    return any(a is b or share(a, b) for a in into for b in from_)


def lower_kind(d):
    found = re.search(
        r"result type (?:adjoin\.)?(\w+) can't be cast to the desired output type (?:adjoin\.)?(\w+)", str(d.ours)
    )
    return found is not None and not torch.can_cast(*(getattr(torch, name) for name in found.groups()))


RANGE = {"bool": (0, 1), "uint8": (0, 255), "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1), "int8": (-128, 127),
         "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}  # fmt: skip


def number_out_of_range(d):
    found = re.search(r"(-?\d+) does not fit into (\w+)", str(d.ours))
    if not found or found.group(2) not in RANGE:
        return False
    low, high = RANGE[found.group(2)]
    return not low <= int(found.group(1)) <= high


def complex_into_real(d):
    """A complex number or tensor stands in the call, and something real takes it."""
    text = failed_step(d) if d.case.call is None else d.case.call.text()
    return (
        "complex" in text
        or any(x.is_complex() for x in given(d))
        or any(isinstance(v, complex) for v in arguments(d).values())
    )


def of_nothing(d):
    """Something that the call reads, writes or gives has no elements."""
    results = [x for x in parts(d.all_theirs).values() if isinstance(x, torch.Tensor)]
    return any(x.numel() == 0 for x in [*given(d), *results, *read(d)])


def too_large(d):
    found = re.search(r"shape \[([-\d, ]*)\] has more bytes", str(d.ours))
    if not found:
        return False
    total = 1
    for n in found.group(1).split(","):
        total *= max(int(n), 1) if n.strip() else 1
    return total * 16 >= 2**63


def beyond_limit(d):
    """More memory than the limit of the run allows; PyTorch's pages are not written."""
    found = re.search(r"asked for ([\d.]+) GB", str(d.ours))
    return found is not None and float(found.group(1)) > 1


def false_key(d):
    return re.search(r"\bFalse\b", d.case.call.args[1] if d.case.call else "") is not None


def complex_given(d):
    return any(x.is_complex() for x in given(d) + read(d)) or complex_into_real(d)


def one_number(d):
    return all(x.numel() <= 1 for x in given(d))


def end_out_of_range(d):
    """An end of linspace is beyond the dtype's numbers."""
    low, high = RANGE[re.search(r"into (\w+)", str(d.ours)).group(1)]
    return any(isinstance(v, (int, float)) and not low <= v <= high for v in arguments(d).values())


def flat_dimensions_backwards(d):
    """A negative stride of a dimension that has one place or none."""
    args = arguments(d)
    sizes, steps = (args.get(k, args.get(w)) for k, w in ((0, "size"), (1, "stride")))
    return all(n <= 1 for n, s in zip(sizes, steps, strict=True) if s < 0)


def without_common_dtype(d):
    """Two of the operands have no common dtype: PyTorch says so of those two alone."""
    names = [a for k, a in enumerate(d.case.call.args) if isinstance(arguments(d).get(k), torch.Tensor)]
    pairs = [(a, b) for k, a in enumerate(names) for b in names[:k]]
    return any(redo(torch, d, Call("maximum", p)).error for p in pairs)


def refused_without_out(d):
    """PyTorch resizes an argument before it reads it; of a result of its own it refuses the same."""
    call = d.case.call
    return call is not None and call.words.get("out") in call.args and redo(torch, d, call.but(out=None)).error


def one_of_several(d):
    """Sizes that differ are summed, and one of both is 1."""
    args = arguments(d)
    a, b, dims = args[0], args[1], args.get("dims", args.get(2))
    if isinstance(dims, int):
        dims = [list(range(a.dim() - dims, a.dim())), list(range(dims))]
    pairs = [(a.shape[i], b.shape[j]) for i, j in zip(*dims, strict=True)]
    return any(m != n for m, n in pairs) and all(m == n or 1 in (m, n) for m, n in pairs)


FULL = r"(share memory \(an expanded tensor\?\))"
SHAPED = r"does not fit|no whole number of 64 bits|repeats is negative|value per channel|stride|index|dim|dtype|it must be|out of range|broadcast|no order|kernel|wanted|shape|size|differ|common"
RULES = [
    Rule("less: a write into elements that share memory", "a write into a tensor whose elements share memory", "less", ours(FULL, shares_elements)),
    Rule("less: an argument is another part of the same memory", "a pointwise write where an argument is another part of the same memory", "less", ours("shares part of its memory with the tensor to write", shares_with_argument)),
    Rule("less: a result in place of an argument", "a result of another shape in place of an argument", "less", ours("has no in-place form whose result has another shape", shares_with_argument)),
    Rule("less: an out= of a lower kind", "an `out=` of a lower kind", "less", ours("can't be cast to the desired output type", lower_kind)),
    Rule("less: an argument that out= resizes", "a result of another shape in place of an argument", "less", ours("do not broadcast|shape", refused_without_out)),
    Rule("less: no common dtype of three", "`clamp` of two dtypes without a common one", "less", ours("dtypes have no common one", without_common_dtype, "clamp|clip")),
    Rule("less: a whole number that does not fit", "numbers that do not fit", "less", ours("does not fit into", number_out_of_range)),
    Rule("less: an end that does not fit", "numbers that do not fit", "less", ours("(start|end) does not fit into", end_out_of_range, "linspace|logspace")),
    Rule("less: complex numbers of halves", "`complex`, `polar` and `view_as_complex` of halves", "less", ours("both must be float32, or both float64|float32 or float64 is wanted", lambda d: all(x.dtype == torch.float16 for x in given(d)), "complex|polar|view_as_complex")),
    Rule("less: a negative stride", "a negative stride of a dimension of size 1", "less", ours("negative stride in", flat_dimensions_backwards, "empty_strided")),
    Rule("less: random complex numbers, complex windows", "`rand` and windows of complex numbers", "less", ours("the (numbers|values) are not whole|a window is strided and of a floating dtype", lambda d: "complex" in d.case.call.text() or any(x.is_complex() for x in given(d)), "rand|randn|rand_like|randn_like|hann_window|hamming_window|blackman_window|bartlett_window|kaiser_window")),
    Rule("less: a tensor of one element beside numbers", "has shape `(2, 1)`", "less", ours("expected a sequence of length", one_element_in_list, "tensor|as_tensor")),
    Rule("less: a complex number into reals", "complex numbers into reals and bools", "less", ours(r"does(n't| not) fit into|give their real part|must be real number", complex_into_real)),
    Rule("less: more than 2**63 bytes", "a shape whose elements would be 2^63 bytes or more", "less", ours("has more bytes than 2", too_large)),
    Rule("less: more memory than there is", "A device without so much memory", "less", ours("out of memory: asked for", beyond_limit)),
    Rule("less: no tensor at all", "`broadcast_tensors()` and `block_diag()` without a tensor", "less", ours("missing 1 required argument: 'tensors'", lambda d: not d.case.call.args, "broadcast_tensors|block_diag")),
    Rule("less: take_along_dim beyond the end", "`take_along_dim` beyond the end of a dimension", "less", ours("out of range", lambda d: True, "take_along_dim")),
    Rule("less: complex numbers in ldexp and logaddexp", "`ldexp` and `logaddexp` of complex numbers", "less", ours("no cpu kernel for complex|other must be real", lambda d: complex_given(d) and re.search("ldexp|logaddexp", failed_step(d)))),
    Rule("less: a dtype for one number", "is looked at even if nothing is there to compute", "less", ours("complex numbers have no order", one_number)),
    Rule("less: diff of order 0", "is looked at even if nothing is there to compute", "less", ours("out of range", lambda d: arguments(d).get(1) == 0, "diff")),
    Rule("less: tensordot of a size 1", "`tensordot` of a size 1 with another size", "less", ours("the .* sizes? to sum over differ", one_of_several, "tensordot")),
    Rule("less: detach_ of views", "`detach_` of a view", "less", ours("a view shares its history with its base", lambda d: True, "detach")),
    Rule("less: powers of bools", "`pow` of bools", "less", ours("pow: .*no cpu kernel for bool", lambda d: all(x.dtype == torch.bool for x in given(d)), "pow|float_power|**|**=")),
    Rule("less: a number beyond 64 bits", "A number beyond 64 bits is an", "less", ours("is too large for 64 bits", lambda d: any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in arguments(d).values()))),
    Rule("less: clamp of complex numbers", "complex numbers into reals and bools", "less", ours("clamp: .*no cpu kernel for complex|clamp: argument", complex_given, "clamp|clip|clamp_min|clamp_max")),
    Rule("less: a sought number that does not fit", "numbers that do not fit", "less", ours("value cannot be converted to type", lambda d: any(isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) > 127 for v in arguments(d).values()), "searchsorted|bucketize")),
    Rule("less: a fault where a key selects nothing", "is looked at even if nothing is there to compute", "less", ours("don't broadcast to|value cannot be converted to type", lambda d: of_nothing(d) or false_key(d), "x[...] =")),
    Rule("less: a fault where nothing is there", "is looked at even if nothing is there to compute", "less", ours(SHAPED, of_nothing)),
]  # fmt: skip
