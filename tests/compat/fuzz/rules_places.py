"""rules_places.py: both answer, and other elements were picked: places, masks, orders among NaN and among equal elements."""

import numpy as np
import torch

from .case import run
from .compare import differences, is_tensor, numbers
from .elements import also, named
from .meaning import arguments, given, overlaps_itself, same_numbers
from .rule import Rule, op


def masks_without_dimensions(d):
    """index_put with such a mask does what NumPy does."""
    args = arguments(d)
    if args[0].requires_grad:
        return True
    key = tuple((k != 0).numpy() if k.dtype in (torch.uint8, torch.bool) else k.numpy() for k in args[1])
    if not any(k.dtype == bool and k.ndim == 0 for k in key) or args[0].dtype == torch.bfloat16:
        return any(k.dtype == bool and k.ndim == 0 for k in key)
    x, values = args[0].numpy().copy(), args[2].detach().to(args[0].dtype).numpy()
    try:
        np.add.at(x, key, values) if args.get("accumulate") else x.__setitem__(key, values)
    except (IndexError, ValueError):
        return d.kind == "more" or bool(d.all_ours.error)
    return d.kind == "less" or same_numbers(d.all_ours.names["r"], torch.from_numpy(x))


def unsorted(d):
    """In a sequence with NaN PyTorch goes by comparisons that are false."""
    args = arguments(d)
    edges = args[0] if op(d) == "searchsorted" else args[1]
    return edges.is_floating_point() and bool(edges.isnan().any())


def goes_round(d):
    """pad(mode='circular') takes places modulo the size, also after a part was cut away."""
    x, (left, right) = (arguments(d)[k] for k in (0, 1))
    places = torch.arange(-left, x.shape[-1] + right) % x.shape[-1]
    return (
        d.case.call.words.get("mode") == "'circular'" and min(left, right) < 0 and same_numbers(d.ours, x[..., places])
    )


def lies_at(x, values, places, dim, kept):
    """Are the values those of x at these places?"""
    x = torch.tensor(numbers(x), dtype=x.dtype).reshape(x.shape) if x.numel() else x
    at, found = torch.tensor(numbers(places), dtype=torch.int64).reshape(tuple(places.shape)), numbers(values)
    one = len(at.shape) < x.dim() or (kept and x.dim() == 0)
    try:
        taken = torch.gather(x, dim, at.unsqueeze(dim) if one else at)
    except (RuntimeError, IndexError):
        return False
    return all(p == q or (p != p and q != q) for p, q in zip(numbers(taken), found, strict=True))


def another_of_several(d):
    """Other places than PyTorch's, at which the same values lie."""
    if d.name != "r[1]":
        return False
    values, places = d.all_ours.names["r"][:2]
    args = arguments(d)
    x, words = args[0], d.case.call.words
    dim = args.get("dim", args.get({"kthvalue": 2, "topk": 2}.get(op(d), 1), -1))
    return lies_at(x.reshape(1) if x.dim() == 0 else x, values, places, dim, words.get("keepdim") == "True")


def dense_answer(d):
    """PyTorch's own answer for dense copies of its arguments is Adjoin's, where the two differed."""
    from_copies = run(
        torch,
        d.case,
        lambda names: names.update(
            {k: v.clone(memory_format=torch.contiguous_format) for k, v in names.items() if is_tensor(v)}
        ),
    )
    left = differences(d.case, d.all_ours, from_copies)
    return from_copies.error is None and (d.kind, d.name) not in {(k.kind, k.name) for k in left}


def slices(x, dim):
    """What lies at each place of a dimension, each once; -0 is 0, and all NaNs are one."""
    flat = torch.tensor(numbers(x)).reshape(tuple(x.shape))
    rows = flat.reshape(-1, 1) if dim is None or flat.dim() < 2 else flat.movedim(dim, 0).flatten(1)
    return {tuple(repr(v + 0) for v in row) for row in rows.tolist()}


def same_rows(d):
    """unique(dim=) with NaN: the same slices in another order."""
    x = given(d)[0]
    if not (x.is_floating_point() or x.is_complex()) or not x.isnan().any():
        return False
    r = d.all_ours.names["r"]
    values = r[0] if isinstance(r, tuple) else r
    if d.kind == "shape" and op(d) == "unique":
        return slices(values, arguments(d).get("dim")) == slices(x, arguments(d).get("dim"))
    theirs = d.all_theirs.names["r"]
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    return sorted(map(repr, numbers(values))) == sorted(map(repr, numbers(theirs)))


def found_again(d):
    """The places of unique() are where the values are, also those of NaN."""
    values, places = d.all_ours.names["r"][:2]
    x, at = given(d)[0], numbers(values)
    return (
        d.name == "r[1]"
        and x.is_floating_point()
        and bool(x.isnan().any())
        and all(at[p] == v or (at[p] != at[p] and v != v) for p, v in zip(numbers(places), numbers(x), strict=True))
    )


def wraps_like_numpy(d):
    """fill_diagonal_(wrap=True) of a matrix that is not contiguous; elements that share memory are written together."""
    x, value = arguments(d)[0], arguments(d)[1]
    if not arguments(d).get("wrap", False) or x.dim() != 2:
        return False
    places = torch.arange(x.numel())
    places = places.as_strided(x.shape, x.stride()) if overlaps_itself(x) else places.reshape(x.shape)
    memory = torch.zeros(x.numel(), dtype=x.dtype)
    memory[places.reshape(-1)] = torch.tensor(numbers(x), dtype=x.dtype)
    memory[places.reshape(-1)[:: x.shape[1] + 1]] = value
    return numbers(memory[places].reshape(-1)) == numbers(d.all_ours.names["r"])


RULES = [
    Rule("other: a diagonal that wraps", "`fill_diagonal_(wrap=True)` of a matrix", "value", also(named("fill_diagonal"), wraps_like_numpy)),
    Rule("other: several values for one place", "of several values for one place", "value", lambda d: op(d) in ("x[...] =", "index_put") and dense_answer(d)),
    Rule("other: mode beside NaN", "`mode` beside NaN", "value", also(named("mode"), lambda d: any(bool(x.isnan().any()) for x in given(d) if x.is_floating_point()))),
    Rule("other: arguments whose elements share memory", "of an expanded tensor", "value", also(named("median nanmedian kthvalue mode"), dense_answer)),
    Rule("other: another of several equal ones", "give among equal elements", "value", also(named("topk kthvalue mode median nanmedian"), another_of_several)),
    Rule("other: slices with NaN", "slices with NaN", "value shape", also(named("unique unique_consecutive"), same_rows)),
    Rule("other: places of NaN among unique elements", "slices with NaN", "value", also(named("unique unique_consecutive"), found_again)),
    Rule("other: a mask without dimensions in index_put", "a mask without dimensions in `index_put`", "value more less", also(named("index_put"), masks_without_dimensions)),
    Rule("other: searchsorted among NaN", "`searchsorted` and `bucketize` among NaN", "value", also(named("searchsorted bucketize"), unsorted)),
    Rule("other: pad goes round", "`pad(mode='circular')` by a negative number", "value", also(named("pad"), goes_round)),
    Rule("other: a slice with a huge step", "a slice whose step nears 2**63", "shape", lambda d: d.case.name == "key" and min(d.theirs.shape) < 0),
]  # fmt: skip
