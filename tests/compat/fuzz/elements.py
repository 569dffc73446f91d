"""elements.py: what rules about values share: the elements of both answers that differ, beside those of the arguments."""

import math

import torch

from .compare import TOLERANCE, dtype, is_tensor, near, numbers
from .meaning import given
from .rule import op

WHOLE = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "int8": 8, "int16": 16, "int32": 32, "int64": 64}


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

    takes.element = lambda d: lambda a, b, *x: holds(a, b)
    return takes


def finite(v):
    return math.isfinite(v.real) and math.isfinite(v.imag)


def broken(a, b):
    """PyTorch has NaN where Adjoin has it or keeps a part, or both are infinite in different ways."""
    return isinstance(b, complex) and not finite(a) and not finite(b)


def complex_given(d):
    return any(x.is_complex() for x in given(d))


def also(condition, takes):
    def both(d):
        return condition(d) and takes(d)

    if hasattr(takes, "element"):
        both.element = lambda d: takes.element(d) if condition(d) else None
    return both


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

    takes.element = lambda d: holds
    return takes


def together(d, rules, rows_of):
    """The first of several rules of which each element that differs has one: a tensor may hold what two lines name."""
    held = [(r, r.takes.element(d)) for r in rules if hasattr(r.takes, "element")]
    held = [(r, holds) for r, holds in held if holds is not None]
    found = rows_of(d) if len(held) > 1 else []
    taken = [next((r for r, holds in held if holds(*row)), None) for row in found]
    return taken[0] if taken and all(taken) else None


def not_finite_in(x):
    return (x.is_floating_point() or x.is_complex()) and not bool(torch.isfinite(x).all())
