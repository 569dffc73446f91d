"""rules_gradients.py: both have gradients, and they differ: at NaN, at equal elements, at the ends of what a function takes."""

import math

import torch

from .case import run
from .compare import TOLERANCE, dtype, is_tensor, near, numbers, same_gradient
from .meaning import arguments, before
from .rule import Rule, op, said


def leaf(d):
    """The tensor whose gradient differs."""
    names = [k for k, v in before(d.case).items() if is_tensor(v) and v.is_leaf and v.requires_grad]
    place = d.name[d.name.find("[") + 1 : -1]
    return before(d.case)[names[int(place)]] if place.isdigit() and int(place) < len(names) else None


def zeros_for(a, like):
    return a if is_tensor(a) else torch.zeros(tuple(like.shape), dtype=torch.float64)


def rows(d):
    """(ours, theirs, the leaf's element) at each place where the gradients differ."""
    x = leaf(d)
    if x is None:
        return []
    a, b = zeros_for(d.ours, x), zeros_for(d.theirs, x)
    if tuple(a.shape) != tuple(b.shape):
        return []
    tolerance = max(TOLERANCE.get(dtype(t), 0) for t in (a, b)) * 10
    return [r for r in zip(numbers(a), numbers(b), numbers(x), strict=True) if not near(r[0], r[1], tolerance, 1.0)]


def each(holds):
    def takes(d):
        found = rows(d)
        return bool(found) and all(holds(*r) for r in found)

    return takes


def named(names, takes):
    return lambda d: op(d) in names.split() and takes(d)


def finite(v):
    return math.isfinite(v.real) and math.isfinite(v.imag)


def not_finite_given(d):
    tensors = [v for v in before(d.case).values() if is_tensor(v) and (v.is_floating_point() or v.is_complex())]
    return any(not bool(torch.isfinite(v).all()) for v in tensors)


def same_sums(d):
    """Among equal elements of the leaf the gradients add up to the same."""
    x = leaf(d)
    if x is None or not (is_tensor(d.ours) and is_tensor(d.theirs)):
        return False
    sums = {}
    for a, b, v in zip(numbers(d.ours), numbers(d.theirs), numbers(x), strict=True):
        one, two = sums.get(v, (0, 0))
        sums[v] = (one + a, two + b)
    return all(near(a, b, 1e-4, 1.0) for a, b in sums.values())


def of_all(d):
    """With no dimension named PyTorch says the same of dim=None."""
    call = d.case.call
    dims = arguments(d).get("dim", arguments(d).get(1))
    if dims is None or isinstance(dims, int) or len(dims):
        return False
    plain = call.but(
        [call.args[0]] + (["None"] if len(call.args) > 1 else []), **({"dim": "None"} if "dim" in call.words else {})
    )
    other = run(torch, d.case, steps=[plain, *d.case.steps[1:]])
    if other.error:
        return False
    k = int(d.name[2:-1])
    found = other.names.get(d.name[0], ())
    return k < len(found) and same_gradient(d.ours, found[k], 1e-4)


def too_few(d):
    """A variance that divides by nothing has no finite gradient."""
    return is_tensor(d.ours) and all(not finite(v) for v in numbers(d.ours))


RULES = [
    Rule("gradient: one of several equal elements", "goes to one of several equal elements", "gradient", named("kthvalue median nanmedian mode quantile nanquantile topk sort max min cummax cummin amax amin", same_sums)),
    Rule("gradient: a comparison with NaN is false", "derivatives of `relu`, `maximum`", "gradient", named("relu relu6 maximum minimum fmax fmin amax amin aminmax clamp clamp_min clamp_max clip hardtanh threshold max min copysign hardsigmoid", lambda d: not_finite_given(d) and each(lambda a, b, x: a == 0 or (a != a) != (b != b))(d))),
    Rule("gradient: at numbers that are not finite", "derivatives at NaN are NaN", "gradient", each(lambda a, b, x: not finite(x))),
    Rule("gradient: beside numbers that are not finite", "behind a place that no gradient reaches", "gradient", lambda d: not_finite_given(d) and each(lambda a, b, x: not (finite(a) and finite(b)))(d)),
    Rule("gradient: copysign", "derivatives of `relu`, `maximum`", "gradient", named("copysign", each(lambda a, b, x: a == 0))),
    Rule("gradient: atan2 and xlogy at the origin", "those of `atan2` at the origin", "gradient", named("atan2 xlogy xlog1py", each(lambda a, b, x: (a != a or a == 0) and (b != b or b == 0)))),
    Rule("gradient: nextafter", "and of `nextafter`", "gradient grad less", lambda d: op(d) == "nextafter" and (d.kind != "gradient" or d.ours is None)),
    Rule("gradient: variances over no named dimension", "`var(x, ())`", "gradient", named("var std var_mean std_mean", of_all)),
    Rule("gradient: variances of too few numbers", "`var(x, ())`", "gradient", named("var std var_mean std_mean", too_few)),
    Rule("gradient: of nothing", "is looked at even if nothing is there to compute", "grad", lambda d: any(x.requires_grad and x.numel() == 0 for x in before(d.case).values() if is_tensor(x))),
    Rule("gradient: comparisons in place", "comparisons in place", "less", lambda d: said(d.ours, "has no gradient; register a vjp") and op(d) in ("eq", "ne", "lt", "le", "gt", "ge", "isclose", "floor_divide", "logical_and", "logical_or", "logical_xor", "logical_not", "heaviside", "bitwise_not", "signbit")),
]  # fmt: skip
