"""rules_gradients.py: both have gradients, and they differ: at NaN, at equal elements, at the ends of what a function takes."""

import math

import adjoin
import torch

from .case import run
from .compare import TOLERANCE, dtype, is_tensor, near, numbers, same_gradient
from .elements import also
from .meaning import arguments, before, given
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
    found = zip(numbers(a), numbers(b), numbers(x), strict=True)
    return [r for r in found if not near(r[0], r[1], tolerance, size(r[1]))]


def size(v):
    """What the digits of a number's parts are counted from: the small one has those of the large one."""
    return max(1.0, abs(v)) if isinstance(v, complex) and finite(v) else 1.0


def by(holds_of):
    """Takes a difference where holds_of(d) gives a function, which holds at each place that differs."""

    def takes(d):
        holds, found = holds_of(d), rows(d)
        return holds is not None and bool(found) and all(holds(*r) for r in found)

    takes.element = holds_of
    return takes


def each(holds):
    return by(lambda d: holds)


def named(names, takes):
    return also(lambda d: op(d) in names.split(), takes)


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
    sums = {}  # all NaNs are one
    for a, b, v in zip(numbers(d.ours), numbers(d.theirs), numbers(x), strict=True):
        key = v if v == v else "nan"
        one, two = sums.get(key, (0, 0))
        sums[key] = (one + a, two + b)
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


ELEMENTWISE = "relu relu6 maximum minimum fmax fmin clamp clamp_min clamp_max clip hardtanh threshold hardsigmoid"


def without_nan(d):
    """Where the result is NaN it weighs nothing: then PyTorch's gradients are the same."""
    turned = [
        f"{s}; w = t.where(t.isnan(q), t.zeros_like(w), w)" if str(s).startswith("w = ") else s for s in d.case.steps
    ]
    return agrees(d, run(torch, d.case, steps=turned))


def agrees(d, other, tolerance=1e-4):
    """Is Adjoin's gradient the one of this outcome?"""
    found, k = other.names.get(d.name[0], ()), int(d.name[2:-1])
    return other.error is None and k < len(found) and same_gradient(d.ours, found[k], tolerance)


def of_the_cast_tensor(d):
    """With dtype= PyTorch says the same of the tensor in that dtype."""
    call = d.case.call
    if "dtype" not in call.words:
        return False
    cast = call.but([f"{call.args[0]}.to({call.words['dtype']})", *call.args[1:]], dtype=None)
    other = run(torch, d.case, steps=[cast, *d.case.steps[1:]])
    return agrees(d, other) or (not_finite_given(d) and other.error is None and but_for_not_finite(d, other))


def but_for_not_finite(d, other):
    """The same where both are finite; the rest is what lies beside numbers that are not."""
    theirs = other.names[d.name[0]][int(d.name[2:-1])]
    if not is_tensor(theirs) or not is_tensor(d.ours):
        return False
    pairs = zip(numbers(d.ours), numbers(theirs), strict=True)
    return all(near(a, b, 1e-4, 1.0) for a, b in pairs if finite(a) and finite(b))


def start_is_left_out(d):
    """With include_self=False PyTorch still counts the start among what is the smallest; with another start it does not."""
    call = d.case.call
    if call.words.get("include_self") != "False":
        return False
    far = call.but([f"({call.args[0]} * 0 + 12345.0)", *call.args[1:]])
    other = run(torch, d.case, steps=[far, *d.case.steps[1:]])
    return agrees(d, other) or (other.error is None and but_for_nan(d.ours, other.names[d.name[0]][int(d.name[2:-1])]))


def but_for_nan(ours, theirs):
    """The same but where PyTorch shares a gradient out to no element, for none is equal to NaN: 0."""
    if not is_tensor(ours) or not is_tensor(theirs) or tuple(ours.shape) != tuple(theirs.shape):
        return False
    pairs = list(zip(numbers(ours), numbers(theirs), strict=True))
    return all((a == 0 and b != b) or near(a, b, 1e-4, 1.0) for a, b in pairs)


def beyond_the_index(d):
    """What the index does not reach has no gradient; PyTorch says so of a source of the index's shape, and of a start that is left out."""
    call, args = d.case.call, arguments(d)
    index, source = args[2], args[3]
    if not is_tensor(source) or source.dim() != index.dim() or tuple(source.shape) == tuple(index.shape):
        return False
    inside = ", ".join(f":{n}" for n in index.shape)
    x, *between = call.args[:3]
    starts = [x] + [FAR_START.format(x=x)] * (call.words.get("include_self") == "False")
    cut = [call.but([start, *between, f"{call.args[3]}[{inside}]", *call.args[4:]]) for start in starts]
    return any(agrees(d, run(torch, d.case, steps=[c, *d.case.steps[1:]])) for c in cut)


# The same gradient, and a value that no source has.
FAR_START = "(t.where(t.isfinite({x}), {x}, 0) + t.where(t.isfinite({x}), 12345.0 - {x}, 12345.0).detach())"


def goes_beyond(d):
    """The source is larger than the index."""
    args = arguments(d)
    return tuple(args[2].shape) != tuple(args[3].shape)


def false_is_zero(d):
    """The exponent False is 0."""
    call = d.case.call
    if call.args[1:] != ["False"]:
        return False
    return agrees(d, run(torch, d.case, steps=[call.but([call.args[0], "0"]), *d.case.steps[1:]]))


def of_rounded_exponent(d):
    """A whole exponent that float32 rounds is even then: the sign of a negative base's power."""
    e = arguments(d).get(1)
    wide = isinstance(e, (int, float)) and 2**24 < abs(e) < math.inf
    return wide and dtype(given(d)[0]) != "float64" and each(lambda a, b, x: abs(a) == abs(b))(d)


def conjugated(d):
    """A complex factor is conjugated in a gradient."""
    factor = arguments(d).get("alpha")
    return isinstance(factor, complex) and each(lambda a, b, x: near(a, b.conjugate(), 1e-4, 1.0))(d)


def conjugated_where_finite(a, b, x):
    return near(a, b.conjugate(), 1e-4, 1.0) or not (finite(a) or finite(b))


def in_few_digits(d):
    """A power whose base has fewer digits than its exponent: PyTorch takes the logarithm in those."""
    kinds = {dtype(v) for v in given(d) if v.is_floating_point()}
    mixed = len(kinds) == 2 and "float64" in kinds
    return (lambda a, b, x: finite(a) and finite(b) and abs(a - b) <= 2e-6 * max(1, abs(b))) if mixed else None


def infinitely_far(d):
    """The slope is infinite, half of infinity too. One sample has no interval, however far."""
    far, x = arguments(d).get("dx", 1.0), leaf(d)
    if not isinstance(far, float) or math.isfinite(far) or x is None:
        return False
    one = x.dim() == 0 or x.shape[arguments(d).get("dim", -1)] <= 1  # no interval, no slope
    return each(lambda a, b, x: b != b and (a == 0 if one else math.isinf(abs(a))))(d)


def with_nothing_put(d):
    """A key with a mask that is False selects nothing: the tensor has the gradient, the values have none."""
    call, keys = d.case.call, arguments(d).get(1)
    masks = [k for k in keys if k.dim() == 0 and k.dtype in (torch.bool, torch.uint8)]
    if not masks or all(bool(m) for m in masks):
        return False
    nothing = f"r = {call.args[0]} + 0 * {call.args[2]}.sum()"
    return agrees(d, run(torch, d.case, steps=[nothing, *d.case.steps[1:]]))


def at_the_most(d):
    """renorm where a norm is maxnorm but for its last digit: the slice is scaled, or is not."""
    x, order, dim, most = (arguments(d)[k] for k in range(4))
    x = x.detach()
    others = [k for k in range(x.dim()) if k != dim % x.dim()]
    at = abs(torch.linalg.vector_norm(x, order, others, keepdim=True) - most) <= 4 * torch.finfo(x.dtype).eps * most
    at = at | ~torch.isfinite(x)
    tolerance = TOLERANCE.get(dtype(d.theirs), 0)
    differ = [not near(a, b, tolerance, 1.0) for a, b in zip(numbers(d.ours), numbers(d.theirs), strict=True)]
    return all(at_most or not other for at_most, other in zip(numbers(at.expand(x.shape)), differ, strict=True))


def zero_of_a_zero(d):
    """A second derivative of what is 0 at 0: the first one is 0 there, and what it is multiplied by is finite."""
    tensors = [v for v in before(d.case).values() if is_tensor(v)]
    if op(d) == "dist":
        tensors.append(arguments(d)[0] - arguments(d)[1])
    zeros = any(bool((v == 0).any()) for v in tensors)
    summed = op(d) in ("pow", "float_power")  # an exponent for several bases
    return (lambda a, b, x: (a == 0 or (summed and finite(a))) and b != b) if d.name[0] == "k" and zeros else None


def left_of_large_ones(d):
    """At 0 a cosine's first derivatives are as large as 1 / eps: what is left of the differences of their squares is digits that were lost."""
    if d.name[0] != "k" or not is_tensor(d.theirs):
        return False
    lost = 8 * torch.finfo(d.theirs.dtype).eps * abs(numbers(d.all_theirs.names["h"])[0])
    zeros = any(bool((v == 0).any()) for v in given(d))
    return zeros and each(lambda a, b, x: (a == 0 and b != b) or abs(a - b) <= lost)(d)


def digits_of_the_largest(d):
    """A second derivative is a difference of sums: what is left has the digits of the largest of them."""
    if d.name[0] != "k" or not is_tensor(d.theirs) or not d.theirs.is_floating_point():
        return None
    most = max((abs(v) for v in numbers(d.theirs) if finite(v)), default=0)
    lost = 16 * torch.finfo(d.theirs.dtype).eps * most
    return lambda a, b, x: abs(a - b) <= lost


def left_of_quotients(d):
    """The product of the others, by which PyTorch's first derivative divides: its second one is digits of the squares of the first ones."""
    if d.name[0] != "k" or not is_tensor(d.theirs) or not d.theirs.is_floating_point():
        return None
    first = [abs(v) for g in d.all_theirs.names["g"] if is_tensor(g) for v in numbers(g) if finite(v)]
    lost = 16 * torch.finfo(d.theirs.dtype).eps * max(first, default=0) ** 2
    return lambda a, b, x: abs(a - b) <= lost


def left_of_squares(d):
    """A second derivative that is 0 but for the digits of the squares of the first ones, of which it is a difference."""
    holds = left_of_quotients(d)
    return holds and (lambda a, b, x: holds(a, 0, x) and holds(b, 0, x))


def left_of_a_constant(d):
    """The squares of hypot's two slopes add up to 1: what is left of their derivatives is digits that were lost, more near the origin."""
    x, y, r = *(abs_of(arguments(d)[k]) for k in (0, 1)), abs_of(d.all_theirs.names["r"])
    if d.name[0] != "k" or tuple(x.shape) != tuple(y.shape) or not bool((r > 0).any()):
        return False
    slopes = max(abs(v) for g in d.all_theirs.names["g"] if is_tensor(g) for v in numbers(g))
    lost = 32 * torch.finfo(d.theirs.dtype).eps * slopes**2 / float(r[r > 0].min())
    return each(lambda a, b, x: abs(a) <= lost and abs(b) <= lost)(d)


def abs_of(x):
    return x.detach().abs()


def at_the_origin(d):
    """Where both are 0, a sum over several places of one of them is NaN, too, and what a second derivative makes of it."""
    zeros = all(bool((v == 0).any()) for v in given(d))
    return zeros and each(lambda a, b, x: a != a and (x == 0 or d.name[0] == "k"))(d)


def over_zero(d):
    """A complex factor over a complex 0: what is finite is the same."""
    below = arguments(d)[2]
    zeros = bool((below == 0).any()) and isinstance(arguments(d).get("value"), complex)
    return zeros and each(lambda a, b, x: not finite(a) and not finite(b))(d)


# corrcoef in PyTorch's ops, where {passed} are the correlations, cut to -1 and 1, that a gradient passes.
CORRELATIONS = (
    "c = t.cov({x}); e = t.diagonal(c); e = (e.real if e.is_complex() else e).sqrt(); c = c / e[:, None] / e[None, :]; "
    "c = t.view_as_real(c) if c.is_complex() else c[..., None]; r = t.where({passed}, c, c.detach()); "
    "r = t.view_as_complex(r.contiguous()) if r.shape[-1] == 2 else r[..., 0]"
)


def at_the_ends(d):
    """A correlation is 1 or -1 but for its last digit, so it is cut or is not. The second derivative is a sum over those that aren't."""
    x, late = d.case.call.args[0], d.case.steps[1:]
    values = run(torch, d.case, steps=[CORRELATIONS.format(x=x, passed="c == c")]).names["c"]
    ends = [end for end in (values.detach().abs() >= 1 - 1e-6).nonzero().tolist() if end[0] != end[1]]
    if d.name[0] != "k" or not 0 < 2 * len(ends) <= leaf(d).numel():
        return False
    rest = "(c.abs() < 1 - 1e-6)"

    def gradient(passed):
        outcome = run(torch, d.case, steps=[CORRELATIONS.format(x=x, passed=passed), *late])
        return torch.tensor(numbers(outcome.names["k"][int(d.name[2:-1])]), dtype=torch.complex128)

    none = gradient(rest)
    one = f"t.zeros_like(c, dtype=t.bool).index_put((t.tensor({{0}}), t.tensor({{1}}), t.tensor({{2}})), t.tensor(True)) | {rest}"
    parts = torch.stack([gradient(one.format(*end)) - none for end in ends], 1)
    wanted = torch.tensor(numbers(d.ours), dtype=torch.complex128) - none
    shares = torch.linalg.lstsq(parts, wanted[:, None], driver="gelsd").solution
    left = (parts @ shares)[:, 0] - wanted
    return bool(left.abs().max() <= 100 * TOLERANCE[dtype(d.ours)] * (none + wanted).abs().max())


def mode_beside_nan(d):
    """The gradient goes to the number that is the mode, where PyTorch's mode is NaN: the same sum."""
    if not not_finite_given(d) or not is_tensor(d.theirs) or not is_tensor(d.ours):
        return False
    return near(sum(numbers(d.ours)), sum(numbers(d.theirs)), 1e-4, 1.0)


def of_matrices(d):
    """block_diag of vectors: PyTorch says the same of matrices of one row."""
    call = d.case.call
    rows_of = call.but([f"({a}.reshape(1, -1) if {a}.dim() < 2 else {a})" for a in call.args])
    return agrees(d, run(torch, d.case, steps=[rows_of, *d.case.steps[1:]]))


def of_wide_bases(d):
    """Of whole numbers PyTorch takes the logarithm in float32: it says the same of float64."""
    whole = [v for v in given(d) if not (v.is_floating_point() or v.is_complex())]
    return bool(whole) and any(
        agrees(d, run(torch, d.case, lambda names, k=k: whole_to(names, k)), 1e-8)
        for k in (torch.float64, torch.complex128)
    )


def whole_to(names, kind):
    for k, v in names.items():
        if is_tensor(v) and not (v.is_floating_point() or v.is_complex()):
            names[k] = v.to(kind)


def at_a_pole(a, b, x):
    return x.imag == 0 and x.real <= 0 and float(x.real).is_integer() and not finite(a)


def on_the_lower_side(a, b, x):
    """The imaginary part is -0: the other side of the cut has the other sign."""
    return x.imag == 0 and math.copysign(1, x.imag) < 0 and x.real < 1 and near(a, -b, 1e-9, 1.0)


def round_what_was_there(d):
    """pad(mode='circular') by a negative amount reads places modulo the size; so does its gradient."""
    call, x = d.case.call, given(d)[0]
    left, right = arguments(d)[1]
    if call.words.get("mode") != "'circular'" or min(left, right) >= 0:
        return False
    size = x.shape[-1]
    places = [k % size for k in range(-left, size + right)]
    picked = f"r = {call.args[0]}.index_select(-1, t.tensor({places}, dtype=t.int64))"
    return agrees(d, run(torch, d.case, steps=[picked, *d.case.steps[1:]]))


def slopes(d, step=1e-5):
    """The gradient of the loss by finite differences in PyTorch; of the first gradients' squares, where second ones are asked for, in
    Adjoin: its first gradients are compared by themselves."""
    lib, loss = {"g": (torch, "s"), "k": (adjoin, "h")}[d.name[0]]
    x = leaf(d).detach()
    name = next(k for k, v in before(d.case).items() if v is leaf(d))

    def at(k, by):
        moved = torch.zeros(x.numel(), dtype=x.dtype)
        moved[k] = by

        def turn(names):
            added = lib.tensor(moved.tolist(), dtype=getattr(lib, dtype(x))).reshape(tuple(x.shape))
            names[name.removesuffix("0")] = names[name] + added

        found = run(lib, d.case, turn).names.get(loss)
        return float(found.detach() if is_tensor(found) else found)

    def slope(k, by):
        return (at(k, by) - at(k, -by)) / (2 * step)

    if x.is_complex():
        return [complex(slope(k, step), slope(k, step * 1j)) for k in range(x.numel())]
    return [slope(k, step) for k in range(x.numel())]


def as_differences_say(d):
    x = leaf(d)
    if x is None or not 0 < x.numel() <= 64 or x.dtype not in (torch.float64, torch.complex128):
        return False
    said = slopes(d)
    ours = numbers(zeros_for(d.ours, x))
    return all(near(a, b, 1e-4, max(1.0, abs(b))) for a, b in zip(ours, said, strict=True))


def too_few(d):
    """A variance that divides by nothing has no finite gradient."""
    return is_tensor(d.ours) and all(not finite(v) for v in numbers(d.ours))


def far_whole(d):
    """Has the call a whole number whose square is beyond 64 bits?"""
    held = [v for v in before(d.case).values() if is_tensor(v) and dtype(v) in ("int64", "uint64")]
    return any(abs(n) >= 2**31 for v in held for n in numbers(v))


def times_nothing(d):
    """An infinite alpha, or NaN, times a sum of no terms: 0 where PyTorch says NaN."""
    alpha = arguments(d).get("alpha", 1)
    if not isinstance(alpha, (float, complex)) or finite(alpha) or all(x.numel() for x in given(d)):
        return False
    return all(a == 0 and b != b for a, b in zip(numbers(d.ours), numbers(d.theirs), strict=True))


def summed_terms(d):
    """An infinite alpha multiplies each term of a gradient: infinities of both signs are NaN where PyTorch multiplies the sum."""
    alpha = arguments(d).get("alpha", 1)
    if not isinstance(alpha, float) or not math.isinf(alpha):
        return False
    return each(lambda a, b, x: not finite(a) and not finite(b))(d)


RULES = [
    Rule("gradient: infinite terms", "and in gradients the terms", "gradient", named("addmm addmv addbmm baddbmm addr", summed_terms)),
    Rule("gradient: nothing times infinity", "of nothing times an infinite", "gradient", named("addmm addmv addbmm baddbmm addr", times_nothing)),
    Rule("gradient: one of several equal elements", "goes to one of several equal elements", "gradient", named("kthvalue median nanmedian mode quantile nanquantile topk sort msort max min cummax cummin amax amin", same_sums)),
    Rule("gradient: a comparison with NaN is false", "derivatives of `relu`, `maximum`", "gradient", named("relu relu6 maximum minimum fmax fmin amax amin aminmax clamp clamp_min clamp_max clip hardtanh threshold max min copysign hardsigmoid", lambda d: not_finite_given(d) and each(lambda a, b, x: a == 0 or (a != a) != (b != b))(d))),
    Rule("gradient: squares that wrap", "the derivative of `atan2` beside whole numbers", "gradient", named("atan2 arctan2 atan2_ arctan2_", far_whole)),
    Rule("gradient: a sixth", "the derivative of `hardsigmoid` in float64", "gradient", named("hardsigmoid", each(lambda a, b, x: not finite(x) or abs(a - b) <= 1e-6 * abs(a)))),
    Rule("gradient: at numbers that are not finite", "derivatives at NaN are NaN", "gradient", each(lambda a, b, x: not finite(x))),
    Rule("gradient: beside numbers that are not finite", "behind a place that no gradient reaches", "gradient", also(not_finite_given, each(lambda a, b, x: not (finite(a) and finite(b))))),
    Rule("gradient: digits of the largest", "digits that were lost", "gradient", by(digits_of_the_largest)),
    Rule("gradient: results that are NaN", "derivatives of `relu`, `maximum`", "gradient", named(ELEMENTWISE, without_nan)),
    Rule("gradient: of the tensor in another dtype", "with `dtype=` is that of the tensor", "gradient", of_the_cast_tensor),
    Rule("gradient: a start that is left out", "`include_self=False`", "gradient", named("index_reduce scatter_reduce", start_is_left_out)),
    Rule("gradient: a source beyond the index", "beyond the index", "gradient", named("scatter_reduce scatter scatter_add", beyond_the_index)),
    Rule("gradient: second derivatives of what is 0", "second derivatives", "gradient", named("sinc norm vector_norm normalize cosine_similarity pow float_power sgn renorm dist", by(zero_of_a_zero))),
    Rule("gradient: what is left of large numbers", "digits that were lost", "gradient", named("cosine_similarity", left_of_large_ones)),
    Rule("gradient: what is left of quotients", "digits that were lost", "gradient", named("scatter_reduce index_reduce", by(left_of_quotients))),
    Rule("gradient: what is left of squares", "digits that were lost", "gradient", by(left_of_squares)),
    Rule("gradient: what is left of a constant", "digits that were lost", "gradient", named("hypot", left_of_a_constant)),
    Rule("gradient: correlations at their ends", "a correlation with 1", "gradient", named("corrcoef", at_the_ends)),
    Rule("gradient: a complex factor over 0", "`addcdiv` by a complex value over 0", "gradient", named("addcdiv", over_zero)),
    Rule("gradient: poles", "`polygamma` of integers at or below 0", "gradient", named("digamma lgamma polygamma", each(at_a_pole))),
    Rule("gradient: at the origin", "those of `atan2` and `angle` at the origin", "gradient", named("atan2 angle", at_the_origin)),
    Rule("gradient: mode beside NaN", "`mode` beside NaN", "gradient", named("mode", mode_beside_nan)),
    Rule("gradient: vectors in block_diag", "`block_diag` of vectors without elements", "gradient", named("block_diag", of_matrices)),
    Rule("gradient: exponents that float32 rounds", "is rounded to the digits of the base", "gradient", named("pow float_power", of_rounded_exponent)),
    Rule("gradient: exponents of whole numbers", "powers of whole numbers have the digits", "gradient", named("pow float_power", of_wide_bases)),
    Rule("gradient: copysign", "derivatives of `relu`, `maximum`", "gradient", named("copysign", each(lambda a, b, x: a == 0))),
    Rule("gradient: atan2 and xlogy at the origin", "those of `atan2` and `angle` at the origin", "gradient", named("atan2 xlogy xlog1py", each(lambda a, b, x: (b != b and x in (0, -1)) or ((a != a or a == 0) and (b != b or b == 0))))),
    Rule("gradient: nextafter", "and of `nextafter`", "gradient grad less", lambda d: op(d) in ("nextafter", "heaviside") and (d.kind != "gradient" or d.ours is None)),
    Rule("gradient: variances over no named dimension", "`var(x, ())`", "gradient", named("var std var_mean std_mean", of_all)),
    Rule("gradient: variances of too few numbers", "`var(x, ())`", "gradient", named("var std var_mean std_mean", too_few)),
    Rule("gradient: of nothing", "is looked at even if nothing is there to compute", "grad", lambda d: any(x.requires_grad and x.numel() == 0 for x in before(d.case).values() if is_tensor(x))),
    Rule("gradient: acosh on its cut", "derivatives of `acosh` below its cut", "gradient", named("acosh arccosh", each(on_the_lower_side))),
    Rule("gradient: complex factors", "derivatives of complex products in `scatter_reduce`", "gradient", named("index_add", conjugated)),
    Rule("gradient: a mask that selects nothing", "a mask without dimensions in `index_put`", "gradient", named("index_put", with_nothing_put)),
    Rule("gradient: powers of False", "that of a power of False", "gradient", named("pow float_power", false_is_zero)),
    Rule("gradient: trapezoid of infinite distances", "infinite beside infinity", "gradient", named("trapezoid cumulative_trapezoid", infinitely_far)),
    Rule("gradient: norms at their bound", "digits that were lost", "gradient", named("renorm", at_the_most)),
    Rule("gradient: logit at -0", "that of `logit` at -0", "gradient", named("logit", each(lambda a, b, x: x == 0 and a == -b and math.isinf(a)))),
    Rule("gradient: pad goes round", "`pad(mode='circular')` by a negative number", "gradient", named("pad", round_what_was_there)),
    Rule("gradient: products of complex numbers", "derivatives of complex products in `scatter_reduce`", "gradient", named("scatter_reduce index_reduce", also(lambda d: given(d)[0].is_complex(), each(conjugated_where_finite)))),
    Rule("gradient: products of complex numbers by differences", "derivatives of complex products in `scatter_reduce`", "gradient", named("scatter_reduce index_reduce", lambda d: given(d)[0].is_complex() and as_differences_say(d))),
    Rule("gradient: powers of bases of fewer digits", "powers of whole numbers have the digits", "gradient", named("pow float_power", by(in_few_digits))),
    Rule("gradient: second ones of what is left out", "`include_self=False`", "gradient", named("scatter_reduce index_reduce", lambda d: d.name[0] == "k" and (d.case.call.words.get("include_self") == "False" or goes_beyond(d)) and as_differences_say(d))),
    Rule("gradient: comparisons in place", "comparisons in place", "less", lambda d: said(d.ours, "has no gradient; register a vjp") and op(d) in ("eq", "ne", "lt", "le", "gt", "ge", "isclose", "floor_divide", "logical_and", "logical_or", "logical_xor", "logical_not", "heaviside", "bitwise_not", "signbit")),
]  # fmt: skip
