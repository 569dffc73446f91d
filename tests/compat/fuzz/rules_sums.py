"""rules_sums.py: both answer, and what was summed, multiplied or averaged over many elements differs."""

import cmath
import math

import torch

from .case import run
from .compare import TOLERANCE, dtype, is_tensor, near, numbers
from .elements import also, complex_given, each, finite, named, not_finite_in, pairs
from .meaning import arguments, given, same_numbers, verified
from .rule import Rule, op


def of_not_finite(d):
    return any(not bool(torch.isfinite(x).all()) for x in given(d)) and all(
        not (finite(a) and finite(b)) for a, b in pairs(d)
    )


def right_shape_of_nothing(d):
    call = d.case.call
    return (
        call is not None
        and call.form == "F"
        and d.theirs.numel() == 0
        and any(x.numel() == 0 for x in given(d))
        and not any(numbers(d.ours))
    )


def product_of_nothing(d):
    """beta * x in the shape of a product that sums nothing, in the common dtype."""
    args, r = arguments(d), d.all_ours.names["r"]
    x, y, z = (args[k] for k in range(3))
    shape = {
        "addmm": lambda: (y.shape[0], z.shape[1]),
        "addmv": lambda: (y.shape[0],),
        "addbmm": lambda: (y.shape[1], z.shape[2]),
        "baddbmm": lambda: (y.shape[0], y.shape[1], z.shape[2]),
    }[op(d)]()
    beta = args.get("beta", 1)
    if not (x.is_floating_point() or x.is_complex() or y.is_floating_point() or y.is_complex()):
        beta = bool(beta) if x.dtype == torch.bool else int(beta)
    if y.numel() and z.numel() and 0 not in shape:
        return False
    joined = torch.promote_types(x.dtype, torch.promote_types(y.dtype, z.dtype))
    try:
        said = (x.to(joined) * beta).expand(shape) if beta else torch.zeros(shape)
    except RuntimeError:
        return False
    if any(isinstance(args.get(k), complex) for k in ("alpha", "beta")):
        lost = isinstance(args.get("alpha"), complex) and not cmath.isfinite(args["alpha"])  # by 0 it is NaN
        if dtype(r).startswith("complex"):
            return same_numbers(r, said) or (lost and all(v != v for v in numbers(r)))
    return dtype(r) == str(joined).rpartition(".")[2] and same_numbers(r, said)


def means_of_infinities(d):
    """The mean beside a variance is that of mean()."""
    call, x = d.case.call, given(d)[0]
    if d.name != "r[1]" or not x.isinf().any():
        return False
    dim = arguments(d).get("dim", arguments(d).get(1))
    dim = dim if isinstance(dim, (int, tuple, list)) and dim != () and dim != [] else None
    wide = x if x.is_complex() else x.double()
    mean = wide.mean() if dim is None else wide.mean(dim, keepdim=call.words.get("keepdim") == "True")
    return same_numbers(d.ours, mean.reshape(tuple(d.ours.shape)))


def areas_in_digits(d):
    """The areas of whole numbers, but for the digits that float32 loses of the largest one."""
    args = arguments(d)
    if not of_fractions(d) or dtype(d.ours) != "float32" or tuple(d.ours.shape) != tuple(d.theirs.shape):
        return False
    y, x, dim = args[0].double(), args.get(1, args.get("x")), args.get("dim", -1)
    if not is_tensor(x) or y.dim() == 0 or x.dim() == 0:
        return False
    steps = x.double().diff(dim=-1 if x.dim() == 1 else dim)
    if x.dim() == 1 and y.dim() > 1:
        steps = steps.reshape([-1 if k == dim % y.dim() else 1 for k in range(y.dim())])
    n = y.shape[dim]
    pairs_of = (y.narrow(dim, 0, n - 1), y.narrow(dim, 1, n - 1))
    wanted, size = (steps * sum(pairs_of) / 2).sum(dim), (steps.abs() * sum(v.abs() for v in pairs_of)).sum(dim)
    rows = zip(numbers(d.ours), numbers(wanted), numbers(size), strict=True)
    return all(abs(a - b) <= 4e-7 * most for a, b, most in rows)


def one_sample(d):
    """No interval, no area."""
    x = given(d)[-1]
    dim = arguments(d).get("dim", -1)
    return all(a == 0 for a, b in pairs(d)) and (x.dim() == 0 or x.shape[dim] <= 1)


def divides_by_nothing(d):
    return all(not finite(a) for a, b in pairs(d)) and any(
        "correction" in w or "unbiased" in w for w in d.case.call.words
    )


def digits_of_large(d):
    """What is lost when numbers beyond 2**24 are added in float32."""
    top = max((float(x.double().abs().max()) for x in given(d) if x.numel() and not x.is_complex()), default=0)
    lost = 1e-15 if dtype(d.theirs) in ("float64", "complex128") else 2e-7
    return top > 2**24 and all(abs(a - b) <= lost * top for a, b in pairs(d) or [(0, math.inf)])


def large_whole_numbers(d):
    """PyTorch says the same of float64, of whole numbers that are no float32."""
    return any(
        not x.is_floating_point() and x.numel() and x.double().abs().max() > 2**24
        for x in given(d)
        if not x.is_complex()
    ) and verified(d)


def correlations_in_float64(d):
    """Squares of whole numbers go beyond float32: where Adjoin has a number and PyTorch NaN, it is the one that float64 gives."""
    truth = torch.corrcoef(given(d)[0].double()).reshape(-1).tolist()
    found = zip(numbers(d.ours), numbers(d.theirs), truth, strict=True)
    return all(math.isnan(b) and near(a, c, 1e-5, 1.0) for a, b, c in found if not near(a, b, 1e-5, 1.0))


def beyond_the_range(d):
    """Squares of numbers near the end of the dtype's range are infinite, and differences of infinite ones NaN: by the order of the sums."""
    x = given(d)[0]
    top = torch.finfo(x.dtype).max if x.is_floating_point() or x.is_complex() else 0
    return bool(top) and bool((torch.view_as_real(x) if x.is_complex() else x).abs().double().max() > math.sqrt(top))


def of_whole_numbers(d):
    return all(not (x.is_floating_point() or x.is_complex()) for x in given(d))


def of_fractions(d):
    return all(not (x.is_floating_point() or x.is_complex()) for x in given(d)) and dtype(d.ours) == "float32"


def exact_trapezoid(d):
    return of_fractions(d) and verified(d)


def infinite_with_nan(a, b):
    return a != a and not isinstance(b, complex) and math.isinf(b)


def beyond_on_the_way(d):
    """A product with a 0 whose other factors go beyond the dtype's range: NaN or 0 by the order of the multiplications."""
    x, dim = given(d)[0], arguments(d).get("dim", arguments(d).get(1))
    kind = torch.finfo(getattr(torch, dtype(d.ours)))
    sizes = x.to(torch.complex128).abs()
    grown, zero = sizes.clamp(min=1).log(), sizes == 0
    if isinstance(dim, int) and x.dim():
        grown, zero = grown.sum(dim, keepdim=True), zero.any(dim, keepdim=True)
    else:
        grown, zero = grown.sum(), zero.any()
    lost = numbers((zero & (grown > math.log(kind.max))).reshape(-1))
    rows = zip(numbers(d.ours), numbers(d.theirs), lost, strict=True)
    return all((a == b) or (w and {a == 0, b == 0} == {True, False} and (a != a or b != b)) for a, b, w in rows)


def alpha_is_zero(d):
    words = arguments(d)
    alpha = words.get("alpha", 1)
    nothing = alpha in (0, False) or (not finite(alpha) and any(x.numel() == 0 for x in given(d)))
    return nothing and all(a != a for a, b in pairs(d))


def same_angle(a, b):
    """Two logarithms of one complex number."""
    if not (finite(a) and finite(b)):
        return not finite(a) and not finite(b)
    turns = (a.imag - b.imag) / (2 * math.pi)
    return abs(a.real - b.real) < 1e-4 * max(1, abs(b)) and abs(turns - round(turns)) < 1e-4


def weightless(d):
    """Where a real part is minus infinity the term is 0, whatever the imaginary part: PyTorch says so of one that is 0."""
    zero = complex(-math.inf, 0)

    def turn(names):
        for k, v in names.items():
            if is_tensor(v) and v.is_complex():
                names[k] = torch.where(v.real == -math.inf, torch.full_like(v, zero), v)

    other = run(torch, d.case, turn)
    b = other.names.get(d.name)
    if other.error or not is_tensor(b):
        return False
    rows = zip(numbers(d.ours), numbers(b), strict=True)
    tolerance = TOLERANCE[dtype(d.ours)]
    return all(near(p, q, tolerance, 1.0) or same_angle(p, q) for p, q in rows)


def part_without_number(d):
    """Complex numbers of which one part is infinite and the other NaN."""
    return any(
        bool(((v.real.isinf() & v.imag.isnan()) | (v.real.isnan() & v.imag.isinf())).any())
        for v in given(d)
        if v.is_complex()
    )


def padding_is_nothing(d):
    """A window beside the border does not multiply infinity by padding: what is finite is what PyTorch says with 0 for infinity."""
    if not any(map(not_finite_in, given(d))):
        return False

    def turn(names):
        for k, v in names.items():
            if is_tensor(v) and not_finite_in(v):
                names[k] = torch.where(torch.isfinite(v), v, torch.zeros_like(v))

    other = run(torch, d.case, turn).names.get(d.name)
    rows = zip(numbers(d.ours), numbers(d.theirs), numbers(other) if is_tensor(other) else [], strict=True)
    tolerance = TOLERANCE[dtype(d.ours)]
    return all(
        near(a, b, tolerance, 1.0) or (b != b and (not finite(a) or near(a, c, tolerance, 1.0))) for a, b, c in rows
    )


def at_the_most(d):
    """renorm where a norm is maxnorm but for its last digit: it is scaled by maxnorm / (maxnorm + 1e-7), or is not."""
    most = arguments(d)[3]
    return all(abs(a - b) * most <= abs(b) * 1.01e-7 for a, b in pairs(d))


def distance_by_parts(d):
    """dist of complex numbers: the norm of the differences of their parts."""
    x, y = arguments(d)[0], arguments(d)[1]
    if not (x.is_complex() and y.is_complex()):
        return False
    apart = torch.view_as_complex((torch.view_as_real(x) - torch.view_as_real(y)).contiguous())
    return same_numbers(d.ours, torch.linalg.vector_norm(apart, arguments(d).get(2, arguments(d).get("p", 2))))


def product_is_scaled(d):
    """An infinite alpha multiplies the sums of products, not the terms."""
    args = arguments(d)
    x, y, z = (args[k].double() for k in range(3))
    alpha, beta = args.get("alpha", 1), args.get("beta", 1)
    if isinstance(beta, complex):
        beta = beta.real if beta.imag == 0 else math.nan  # a real result has no other
    if not isinstance(alpha, float) or not math.isinf(alpha):
        return False
    made = torch.outer(y, z) if op(d) == "addr" else y @ z
    made = made.sum(0) if op(d) == "addbmm" else made
    return same_numbers(d.ours, made * alpha + (x * beta if beta else 0))


RULES = [
    Rule("other: products beyond the range beside 0", "a product with a 0", "value", also(named("prod"), beyond_on_the_way)),
    Rule("other: trapezoid beside infinity", "`trapezoid` over one sample", "value", also(named("trapezoid"), each(lambda a, b: math.isinf(abs(a)) and b != b))),
    Rule("other: norms of complex numbers with NaN", "the norm of an infinite complex number with a NaN part", "value", also(named("norm vector_norm dist abs"), also(complex_given, each(lambda a, b: infinite_with_nan(a, b) or not (math.isfinite(a) or math.isfinite(b)))))),
    Rule("other: products times infinity", "an infinite `alpha` multiplies", "value", also(named("addmm addmv addbmm baddbmm addr"), product_is_scaled)),
    Rule("other: products times 0", "with `alpha=0`", "value", also(named("addmm addmv addbmm baddbmm addr"), alpha_is_zero)),
    Rule("other: digits of large whole numbers", "`cov` of whole numbers", "value", also(named("trapezoid cumulative_trapezoid mean nanmean diff cov corrcoef var std sum nansum"), digits_of_large)),
    Rule("other: digits of large areas", "`trapezoid` of whole numbers", "value", also(named("trapezoid"), areas_in_digits)),
    Rule("other: trapezoid of one sample", "`trapezoid` over one sample", "value", also(named("trapezoid"), one_sample)),
    Rule("other: variances of too few numbers", "`var` of two numbers with `correction=2`", "value", also(named("var std var_mean std_mean"), divides_by_nothing)),
    Rule("other: correlations of large whole numbers", "`cov` of whole numbers", "value", also(named("corrcoef"), also(of_fractions, correlations_in_float64))),
    Rule("other: covariances of large whole numbers", "`cov` of whole numbers", "value", also(named("cov corrcoef"), large_whole_numbers)),
    Rule("other: trapezoid of whole numbers", "`trapezoid` of whole numbers", "value dtype", also(named("trapezoid cumulative_trapezoid"), lambda d: exact_trapezoid(d) or (d.kind == "dtype" and of_fractions(d)))),
    Rule("other: variances beyond the range", "whose squares are beyond", "value", also(named("var std var_mean std_mean"), also(beyond_the_range, each(lambda a, b: not finite(a) and not finite(b))))),
    Rule("other: places of quantiles", "the place of a quantile", "value", also(named("quantile nanquantile"), verified)),
    Rule("other: sums of nothing in einsum", "where a size of 1 meets one of 0", "dtype", also(named("einsum"), lambda d: of_whole_numbers(d) and any(x.numel() == 0 for x in given(d)))),
    Rule("other: infinities beside nothing in einsum", "where a size of 1 meets one of 0", "value", also(named("einsum"), also(lambda d: any(x.numel() == 0 for x in given(d)), also(of_not_finite, each(lambda a, b: a == 0))))),
    Rule("other: means beside deviations", "means beside `std_mean` and `var_mean`", "value", also(named("std_mean var_mean"), means_of_infinities)),
    Rule("other: logarithms of complex numbers", "`logcumsumexp` of complex numbers", "value", also(named("logcumsumexp"), lambda d: each(same_angle)(d) or weightless(d))),
    Rule("other: batch_norm of a constant", "`batch_norm` subtracts the mean", "value", also(named("batch_norm instance_norm group_norm layer_norm"), verified)),
    Rule("other: distances of complex numbers with an infinite part", "differences of complex numbers with an infinite part", "value", also(named("dist"), distance_by_parts)),
    Rule("other: norms at their bound", "digits that were lost", "value", also(named("renorm"), at_the_most)),
    Rule("other: norms beside an infinite number with a NaN part", "the norm of an infinite complex number with a NaN part", "value", also(named("renorm"), also(part_without_number, each(lambda a, b: b == 0 or not finite(b))))),
    Rule("other: convolutions beside infinities", "convolutions and", "value", also(named("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"), padding_is_nothing)),
    Rule("other: interpolation beside infinities", "`interpolate` beside", "value", also(named("interpolate"), of_not_finite)),
    Rule("other: products of nothing", "pools, convolutions and products of nothing", "shape dtype value", also(named("addmm addmv addbmm baddbmm"), product_of_nothing)),
    Rule("other: shapes of nothing", "pools, convolutions and products of nothing", "shape", right_shape_of_nothing),
]  # fmt: skip
