"""rules_functions.py: both answer, and values of functions of single elements differ: powers, halves, poles, infinite parts."""

import ast
import math
import re

import torch

from .case import Call, Case, run
from .compare import dtype, is_tensor, near, numbers
from .elements import WHOLE, also, broken, each, finite, named, rows
from .meaning import arguments, given, redo, same_result, verified
from .rule import Rule, op


def root_of_minus_zero(a, b, x):
    return x == 0 and math.copysign(1, x) < 0 and a == math.inf and b == -math.inf


def of_a_far_quotient(d):
    """Where a quotient is beyond all floats Adjoin has the remainder of Python's floats, which are exact."""
    x, y = torch.broadcast_tensors(*(torch.as_tensor(arguments(d)[k]).double() for k in (0, 1)))
    if x.shape != d.theirs.shape:  # a later step made another of it
        return False
    most, floored = torch.finfo(d.theirs.dtype).max, op(d) != "fmod"
    rows = zip(numbers(d.ours), numbers(d.theirs), numbers(x), numbers(y), strict=True)
    differ = [(a, p, q) for a, b, p, q in rows if not (a == b or (a != a and b != b))]
    far = all(math.isfinite(p) and q != 0 and abs(p) / most > abs(q) for _, p, q in differ)
    return far and all(near(a, p % q if floored else math.fmod(p, q), 2e-5, 0) for a, p, q in differ)


def but_for_lost_digits(d, wide):
    """A sum in float32, where the largest term's digits decide what is left of it."""
    top = max((float(x.double().abs().max()) for x in given(d) if x.numel() and not x.is_complex()), default=0)
    b = wide.names.get(d.name)
    if top <= 2**24 or not is_tensor(b) or b.is_complex() or tuple(b.shape) != tuple(d.ours.shape):
        return False
    return all(a == v or abs(a - v) <= 2e-7 * top for a, v in zip(numbers(d.ours), numbers(b), strict=True))


def half_given(d):
    """Halves compute in wider numbers: PyTorch says the same of float64, or float32."""
    call = d.case.call
    if call is not None and call.words.get("dtype") in ("t.float16", "t.bfloat16"):
        wide = redo(torch, d, call.but(dtype="t.float32"))
        return wide.error is None and (same_result(d.all_ours, wide) or but_for_lost_digits(d, wide))
    if not any(x.dtype in (torch.float16, torch.bfloat16) for x in given(d)):
        return False

    def in_single(names):
        for k, v in names.items():
            if is_tensor(v) and not v.is_complex():
                names[k] = v.float()

    other = run(torch, d.case, in_single)
    return verified(d) or (other.error is None and same_result(d.all_ours, other)) or written_in_single(d)


def written_in_single(d):
    """The same lines with float32 where they say a half: views stay views."""
    if not d.case.many:
        return False
    single = [re.sub(r"t\.b?float16", "t.float32", line) for line in d.case.setup]
    other = run(torch, Case(d.case.target, d.case.name, single, d.case.steps, d.case.call, d.case.values))
    return other.error is None and same_result(d.all_ours, other)


def literal(text):
    try:
        return ast.literal_eval(text)
    except ValueError:
        return None


def lowest_bound_is_too_large(d):
    """PyTorch refuses the number, too, where no bound is a tensor."""
    found = re.search(r"value cannot be converted to type (\w+)", str(d.ours))
    bounds = [arguments(d).get(k) for k in (1, "min")]
    return found is not None and any(
        redo(torch, d, Call("clamp", [f"t.zeros(1, dtype=t.{found[1]})", repr(v)])).error
        for v in bounds
        if isinstance(v, (int, float))
    )


def tensors_for_numbers(d):
    """PyTorch says the same where all bounds are tensors; a number beyond the dtype's range is its end."""
    call = d.case.call
    if op(d) not in ("clamp", "clip") or not any(is_tensor(arguments(d).get(k)) for k in (1, 2, "min", "max")):
        return False

    whole = d.kind != "less" and dtype(d.ours) in WHOLE

    def tensor(text):
        if whole and isinstance(value := literal(text), int):
            ends = torch.iinfo(getattr(torch, dtype(d.ours)))
            text = str(min(max(value, ends.min), ends.max))
        return text if text == "None" else f"t.as_tensor({text})"

    args = [call.args[0], *map(tensor, call.args[1:])]
    other = redo(torch, d, call.but(args, **{k: tensor(v) for k, v in call.words.items() if k in ("min", "max")}))
    if d.kind == "less":
        return other.error is not None or lowest_bound_is_too_large(d)
    return other.error is None and same_result(d.all_ours, other)


def steps_in_its_dtype(d):
    """nextafter takes a step in the dtype of what it writes."""
    call, args = d.case.call, arguments(d)
    if call is None or op(d) != "nextafter" or not is_tensor(args[1]):
        return False
    into = call.words.get("out", call.args[0] if call.name == "nextafter_" else None)
    if into is None:
        return False
    first = call.args[0] if into == call.args[0] else f"{call.args[0]}.to({into}.dtype)"
    other = redo(torch, d, call.but([first, f"{call.args[1]}.to({into}.dtype)"]))
    return other.error is None and same_result(d.all_ours, other)


def scaled_far(a, b, n, x):
    """By powers of two that no float holds."""
    return abs(n) >= 2**31 and (
        a == (x if x == 0 else math.copysign(math.inf, x)) if n > 0 else a == 0 or not finite(x)
    )


def scaled(a, b):
    """0 stays 0 by whatever finite power of two; the other digits are those of more bits."""
    return (a == 0 and b != b) or (finite(a) and finite(b) and abs(a - b) <= 1e-6 * abs(b))


def between_neighbours(*row):
    """Two numbers whose digits were lost before are compared."""
    if len(row) < 4:
        return False
    x, y = row[2:4]
    return abs(x - y) <= 2e-5 * max(1, abs(x))


def far_byte(a, b, x=0, *others):
    """A number that 32 bits cannot hold, as a byte."""
    return isinstance(x, float) and finite(x) and abs(x) >= 2**31 and a == 0 and int(x) % 256 == b


RULES = [
    Rule("other: far numbers as bytes", "a float beyond 32 bits as a byte", "value", also(lambda d: is_tensor(d.ours) and dtype(d.ours) == "uint8", rows(far_byte))),
    Rule("other: gcd of the smallest number", "`gcd` and `lcm` are not negative", "value", also(named("gcd lcm"), each(lambda a, b: a == -b and a > 0))),
    Rule("other: powers of two in single digits", "`ldexp` of halves is exact", "value", also(named("ldexp"), lambda d: verified(d) or each(scaled)(d) or rows(scaled_far)(d))),
    Rule("other: complex numbers with an infinite part", "of complex numbers with an infinite part", "value", each(broken)),
    Rule("other: quotients of far complex numbers", "complex quotients", "value", also(named("div true_divide divide reciprocal / /="), each(lambda a, b: isinstance(a, complex) and finite(a) and not finite(b)))),
    Rule("other: halves in wider numbers", "numbers are not rounded before they are used", "value", half_given),
    Rule("other: 1 to a power that is NaN", "1 to a complex power that is NaN", "value", also(named("pow float_power **"), rows(lambda a, b, *x: a != a and abs(b) == 1 and isinstance(a, complex) and any(v != v for v in x)))),
    Rule("other: nextafter_ of two dtypes", "`nextafter_` takes a step", "value", steps_in_its_dtype),
    Rule("other: clamp between a tensor and a number", "`clamp` between a tensor and a number", "value less", tensors_for_numbers),
    Rule("other: 1 to a power that is not finite", "1 to a complex power that is not finite", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: a != a and b == 1 and not finite(x[-1])))),
    Rule("other: 0 to an infinite power", "0 to a power with a positive real part", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: not finite(b) and (a == 1 or broken(a, b) or (a == 0 and x[-1] == 0))))),
    Rule("other: digits in a comparison", "digits that were lost", "value", also(named("eq ne lt le gt ge"), also(lambda d: d.case.many, rows(between_neighbours)))),
    Rule("other: polygamma at poles", "`polygamma` of integers at or below 0", "value", also(named("polygamma"), rows(lambda a, b, x: (x <= 0 and (math.isinf(x) or float(x).is_integer()) and not math.isfinite(a)) or (x == math.inf and a == 0 and b != b)))),
    Rule("other: Bessel functions", "Bessel functions", "value", also(lambda d: op(d).startswith(("bessel", "modified_bessel", "spherical_bessel")), rows(lambda a, b, x: (math.isinf(x) and a == 0 and b != b) or abs(a - b) <= 1e-7 * max(1, abs(b))))),
    Rule("other: anything to the power 0 is 1", "`float_power(inf + 0j, 0)` is 1", "value", also(named("pow float_power ** **="), each(lambda a, b: (a == 1 and not finite(b)) or broken(a, b)))),
    Rule("other: powers of infinite complex numbers", "an infinite complex number to a negative power", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: broken(a, b) or (any(isinstance(v, complex) and not finite(v) for v in x) and a == 0 and not finite(b))))),
    Rule("other: powers of minus infinity", "`pow` of minus infinity", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: any(v == -math.inf for v in x if not isinstance(v, complex)) and b != b))),
    Rule("other: remainders of far quotients", "`remainder` where the quotient", "value", also(named("remainder fmod %"), of_a_far_quotient)),
    Rule("other: powers of -0", "`pow` of -0 to -0.5", "value", also(named("pow float_power ** **="), also(lambda d: repr(arguments(d).get(1)) == "-0.5", rows(root_of_minus_zero)))),
    Rule("other: activations at -inf", "at infinity and minus infinity have their limit", "value", also(named("gelu silu mish"), rows(lambda a, b, x: math.isinf(x) and a == max(x, 0) and b != b))),
    Rule("other: zeta at NaN", "`zeta` of NaN is NaN", "value", also(named("zeta"), rows(lambda a, b, x, y: ((x != x or y != y) and a != a) or (a == 0 and b != b)))),
]  # fmt: skip
