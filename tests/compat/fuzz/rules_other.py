"""rules_other.py: both answer, and the answers differ: in values, dtypes, shapes, memory, gradients."""

import math

import numpy as np
import torch

from .compare import TOLERANCE, dtype, is_tensor, near, numbers
from .meaning import arguments, given, same_numbers
from .rule import Rule, op


def pairs(d):
    """The elements of both that differ; None where the two cannot be laid side by side."""
    if not (is_tensor(d.ours) and is_tensor(d.theirs)) or tuple(d.ours.shape) != tuple(d.theirs.shape):
        return None
    tolerance = TOLERANCE.get(dtype(d.theirs), 0)
    found = zip(numbers(d.ours), numbers(d.theirs), strict=True)
    return [(a, b) for a, b in found if not near(a, b, tolerance, 1.0)]


def each(holds):
    """Takes a difference where holds(a, b) of each pair of elements that differ."""

    def takes(d):
        found = pairs(d)
        return bool(found) and all(holds(a, b) for a, b in found)

    return takes


def finite(v):
    return math.isfinite(v.real) and math.isfinite(v.imag)


def broken(a, b):
    """PyTorch has NaN where Adjoin has it or keeps a part, or both are infinite in different ways."""
    return isinstance(b, complex) and not finite(a) and not finite(b)


def complex_given(d):
    return any(x.is_complex() for x in given(d))


def also(condition, takes):
    return lambda d: condition(d) and takes(d)


def named(names):
    return lambda d: op(d) in names.split()


def element_by_element(d):
    """(ours, theirs, elements of the arguments) for each place that differs; [] where they do not broadcast."""
    try:
        inputs = [numbers(x.broadcast_to(d.theirs.shape)) for x in given(d)]
    except (RuntimeError, AttributeError):
        return []
    tolerance = TOLERANCE.get(dtype(d.theirs), 0)
    rows = zip(numbers(d.ours), numbers(d.theirs), *inputs, strict=True)
    return [r for r in rows if not near(r[0], r[1], tolerance, 1.0)]


def rows(holds):
    """Takes a difference where holds(ours, theirs, *arguments) at each place that differs."""

    def takes(d):
        found = element_by_element(d)
        return bool(found) and all(holds(*r) for r in found)

    return takes


def masks_without_dimensions(d):
    """index_put with such a mask does what NumPy does."""
    args = arguments(d)
    key = tuple((k != 0).numpy() if k.dtype in (torch.uint8, torch.bool) else k.numpy() for k in args[1])
    if not any(k.dtype == bool and k.ndim == 0 for k in key) or args[0].dtype == torch.bfloat16:
        return any(k.dtype == bool and k.ndim == 0 for k in key)
    x = args[0].numpy().copy()
    try:
        np.add.at(x, key, args[2].numpy()) if args.get("accumulate") else x.__setitem__(key, args[2].numpy())
    except (IndexError, ValueError):
        return d.kind == "more" or bool(d.all_ours.error)
    return d.kind == "less" or same_numbers(d.all_ours.names["r"], torch.from_numpy(x))


def sorted_search(d):
    """Among NaN, which sort last, searchsorted says what NumPy says."""
    args, words = arguments(d), d.case.call.words
    edges, sought = (args[0], args[1]) if op(d) == "searchsorted" else (args[1], args[0])
    if edges.dim() != 1 or not edges.is_floating_point() or not edges.isnan().any():
        return False
    side = "right" if words.get("right") == "True" else "left"
    found = np.searchsorted(edges.double().numpy(), sought.double().numpy() if is_tensor(sought) else sought, side)
    return np.array_equal(found, np.array(d.ours.tolist()))


def new_tensor(d):
    """conj() and real() of reals, conj() of complex numbers: the numbers are right, only memory differs."""
    return op(d) in ("conj", "real", "adjoint", "resolve_conj")


NOT_FINITE = also(complex_given, each(broken))
RULES = [
    Rule("other: complex numbers with an infinite part", "of complex numbers with an infinite part", "value", NOT_FINITE),
    Rule("other: a mask without dimensions in index_put", "a mask without dimensions in `index_put`", "value more less", also(named("index_put"), masks_without_dimensions)),
    Rule("other: searchsorted among NaN", "`searchsorted` and `bucketize` among NaN", "value", also(named("searchsorted bucketize"), sorted_search)),
    Rule("other: strides of nonzero", "strides of results are no promise", "strides", named("nonzero")),
    Rule("other: conj and real are new tensors", "`conj()` is a new tensor", "shares", new_tensor),
    Rule("other: polygamma at poles", "`polygamma` of integers at or below 0", "value", also(named("polygamma"), rows(lambda a, b, x: x <= 0 and float(x).is_integer() and not math.isfinite(a)))),
    Rule("other: Bessel functions", "Bessel functions", "value", also(lambda d: op(d).startswith(("bessel", "modified_bessel", "spherical_bessel")), rows(lambda a, b, x: (math.isinf(x) and a == 0 and b != b) or abs(a - b) <= 1e-7 * max(1, abs(b))))),
    Rule("other: activations at -inf", "at minus infinity have their limit", "value", also(named("gelu silu mish"), rows(lambda a, b, x: x == -math.inf and a == 0 and b != b))),
    Rule("other: zeta at NaN", "`zeta` of NaN is NaN", "value", also(named("zeta"), rows(lambda a, b, x, y: (x != x or y != y) and a != a))),
]  # fmt: skip
