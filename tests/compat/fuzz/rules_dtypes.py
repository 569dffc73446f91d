"""rules_dtypes.py: both answer, and the dtypes differ, or what lists, NumPy's numbers and infinities become in a dtype."""

import math
import re

import adjoin
import numpy as np
import torch

from .case import run
from .compare import TOLERANCE, differences, differs, dtype, is_tensor, near, numbers, parts
from .elements import WHOLE, also, finite, named, not_finite_in, pairs
from .meaning import arguments, change, given, redo, same_numbers, same_result
from .rule import Rule, op


def complex_factor(d):
    if not any(isinstance(v, complex) for k, v in arguments(d).items() if k in ("alpha", "beta")):
        return False
    rows = list(zip(numbers(d.ours), numbers(d.theirs), strict=True))
    kept = arguments(d).get("alpha", 1) == 0 and all(a != a or a == b for a, b in rows)
    if d.kind == "dtype" and is_tensor(d.theirs) and dtype(d.theirs) in ("float16", "bfloat16"):  # those are rounded
        tolerance = TOLERANCE[dtype(d.theirs)]
        return all(near(a, b, tolerance, 1.0) or not (finite(a) or finite(b)) for a, b in rows)
    return kept or same_numbers(d.ours, d.theirs)


def with_tensors(call):
    """The call with a tensor without dimensions for each of NumPy's numbers."""
    return call.but([re.sub(r"np\.(\w+?)_?\(([^()]*)\)", r"t.tensor(\2, dtype=t.\1)", a) for a in call.args])


def numpy_numbers(d):
    """NumPy's numbers count as tensors without dimensions: PyTorch agrees when it is given those, or refuses them, too."""
    call = d.case.call
    if call is None or "np." not in call.text():
        return False

    asked = with_tensors(call)
    other = redo(torch, d, asked)
    if d.kind == "less":
        return other.error is not None
    if other.error is not None and is_tensor(d.ours) and dtype(d.ours) == "bool":  # no common dtype
        other = redo(torch, d, asked, change("complex"))
    if other.error is None and is_tensor(d.ours) and dtype(d.ours) == "bool":  # comparisons
        return same_result(d.all_ours, other)
    if other.error is not None or complex_halves(d):
        return half_or_refused(d)
    if op(d) == "where":
        return half_or_refused(d)
    a, b = parts(d.all_ours), parts(other)
    return all(k in b and not differs(d.case, a[k], b[k], True) for k in a if k in ("r", "x"))


def numpy_beside_bools(d):
    """PyTorch subtracts no bools: the same of whole numbers."""
    other = redo(torch, d, with_tensors(d.case.call), change("whole"))
    return "np." in d.case.call.text() and other.error is None and same_result(d.all_ours, other)


def half_or_refused(d):
    """PyTorch has no such kernel: the dtype is at least that of the tensors, complex where the number is."""
    if d.kind == "more":
        return "np.bool_" in d.case.call.text()
    is_complex = "np.complex" in d.case.call.text()
    tensors = [x for x in given(d)]
    kind = str(d.ours).rpartition(".")[2] if not is_tensor(d.ours) else dtype(d.ours)
    allowed = {str(x.dtype).rpartition(".")[2] for x in tensors} | {"bool", "int64", "uint8", "int8"}
    return kind.startswith("complex") if is_complex else kind in allowed


def inside(d):
    """What tensor([...]) was given, with PyTorch's tensors."""
    return arguments(d).get(0)


def holds_tensors(value):
    return isinstance(value, (list, tuple)) and any(is_tensor(v) or holds_tensors(v) for v in value)


def cut_each(d):
    """The elements in float64, cut, and taken modulo 2^n."""
    other, r = redo(torch, d, d.case.call.but(dtype="t.float64")), d.all_ours.names["r"]
    if other.error or dtype(r) not in WHOLE or not all(map(math.isfinite, numbers(other.names["r"]))):
        return False
    low, count = (0 if dtype(r)[0] == "u" else -(2 ** (WHOLE[dtype(r)] - 1))), 2 ** WHOLE[dtype(r)]
    wanted = [{int(v), round(v)} if abs(v - round(v)) < 1e-9 else {int(v)} for v in numbers(other.names["r"])]
    return all(n in {(v - low) % count + low for v in values} for n, values in zip(numbers(r), wanted, strict=True))


def stacked(d):
    """Tensors in lists are stacked as nested lists would be."""
    kind = getattr(torch, dtype(d.all_ours.names["r"])) if "dtype" in d.case.call.words else None

    def stack(value):
        if isinstance(value, (list, tuple)):
            return torch.stack([stack(v) for v in value])
        return torch.as_tensor(value) if kind is None else torch.as_tensor(value).to(kind)

    if op(d) not in ("tensor", "as_tensor") or not holds_tensors(inside(d)):
        return False
    try:
        return same_numbers(d.all_ours.names["r"], stack(inside(d)))
    except RuntimeError:
        return False


def one_element_in_list(d):
    """A tensor of shape (1,) is a row, no number."""

    def rows_of_one(value):
        return any(
            tuple(v.shape) == (1,) if is_tensor(v) else isinstance(v, (list, tuple)) and rows_of_one(v) for v in value
        )

    return isinstance(inside(d), (list, tuple)) and rows_of_one(inside(d))


def complex_halves(d):
    if "np.complex" in (d.case.call.text() if d.case.call else "") and any(
        x.dtype in (torch.float16, torch.bfloat16) for x in given(d)
    ):
        return True
    return (
        is_tensor(d.ours)
        and dtype(d.ours) == "complex64"
        and dtype(d.theirs) in ("complex32", "bcomplex32", "BComplex32")
    )


def common(a, b):
    """The dtype of two operands; PyTorch has none for an unsigned one and a bool."""
    try:
        return torch.result_type(a, b)
    except RuntimeError:
        kinds = {getattr(v, "dtype", None) for v in (a, b)} - {torch.bool}
        return kinds.pop() if len(kinds) == 1 else None


def clamp_of_three(d):
    """The dtype is that of the operands joined one after another."""
    operands = [v for k, v in sorted(arguments(d).items(), key=str) if v is not None and k in (0, 1, 2, "min", "max")]
    orders = [[0, 1, 2], [1, 2, 0], [0, 2, 1]] if len(operands) == 3 else [[0, 1]]
    found = set()
    for order in orders:
        joined = operands[order[0]]
        for k in order[1:]:
            kind = common(joined, operands[k])
            if kind is None:
                break
            dims = max(getattr(joined, "dim", lambda: 0)(), getattr(operands[k], "dim", lambda: 0)())
            joined = torch.zeros((1,) * dims, dtype=kind)
        else:
            found.add(str(joined.dtype).rpartition(".")[2])
    return dtype(d.ours) in found


def cast_back(d):
    """In PyTorch's dtype the numbers are PyTorch's."""
    ours = torch.tensor(numbers(d.ours), dtype=getattr(torch, dtype(d.ours))).to(d.theirs.dtype)
    return all(near(a, b, 0, 1.0) for a, b in zip(numbers(ours.reshape(-1)), numbers(d.theirs), strict=True))


def infinite_end(d):
    """Where an end is infinite, what lies between is NaN, and the end itself."""
    ends = [v for k, v in arguments(d).items() if k in (0, 1)]
    return any(isinstance(v, float) and not math.isfinite(v) for v in ends) and all(
        a != a or a in ends for a, b in pairs(d)
    )


def halves_of_complex(d):
    return str(d.ours).endswith("complex64") and str(d.theirs).rpartition(".")[2] in ("complex32", "bcomplex32")


def not_finite_as_number(d):
    """Infinity and NaN as whole numbers; what is finite is the same."""
    source = inside(d)
    values = numbers(torch.tensor(np.asarray(source).astype(complex))) if isinstance(source, np.ndarray) else []
    rows = list(zip(numbers(d.ours), numbers(d.theirs), values, strict=False))
    return bool(values) and len(values) == len(numbers(d.ours)) and all(a == b or not finite(v) for a, b, v in rows)


def finite_is_the_same(d):
    """Infinity and NaN count as whole numbers in a reduction; where they are 0 both say the same."""
    if "dtype" not in d.case.call.words or dtype(d.ours) not in WHOLE or not any(not_finite_in(x) for x in given(d)):
        return False

    def turn(lib):
        def each_finite(names):
            for k, v in names.items():
                if isinstance(v, lib.Tensor) and (v.is_floating_point() or v.is_complex()):
                    names[k] = lib.where(lib.isfinite(v), v, lib.zeros_like(v))

        return each_finite

    return not differences(d.case, run(adjoin, d.case, turn(adjoin)), run(torch, d.case, turn(torch)))


def at_a_cut(d):
    """Digits that were lost before show where fractions are cut to whole numbers."""
    source = given(d)[0] if d.case.call and op(d) == "to" and d.case.many else None
    if source is None or not (source.is_floating_point() or source.is_complex()):
        return False
    near_whole = [abs(v.real - round(v.real)) <= 1e-4 * max(1, abs(v)) for v in numbers(source) if finite(v)]
    lost = max(TOLERANCE.get(dtype(v), 0) for v in d.all_theirs.names.values() if is_tensor(v))
    return any(near_whole) and all(abs(a - b) <= max(1, lost * abs(b)) for a, b in pairs(d))


def last_digits_that_wrap(d):
    """Numbers beyond all digits differ by a few of their last ones, which is all that whole numbers of few bits keep."""
    if not (d.case.call and op(d) == "to" and d.case.many and dtype(d.ours) in WHOLE):
        return False
    source, count = given(d)[0], 2 ** WHOLE[dtype(d.ours)]
    if not source.is_floating_point():
        return False
    eps = torch.finfo(source.dtype).eps
    rows = [r for r in zip(numbers(d.ours), numbers(d.theirs), numbers(source), strict=True) if r[0] != r[1]]
    return all(finite(v) and min((a - b) % count, (b - a) % count) <= 8 * eps * abs(v) for a, b, v in rows)


def not_finite_copied(d):
    """NaN, infinity or what is too large becomes a whole number."""
    x, source = (arguments(d).get(k) for k in (0, 1))
    values = numbers(source) if is_tensor(source) else [source]
    return is_tensor(x) and dtype(x) in WHOLE and any(isinstance(v, float) and not abs(v) < 2**31 for v in values)


def steps_in_double(d):
    """Elements beyond 2**53 have the digits of doubles: the next one is as good."""
    most = max((abs(float(v)) for v in arguments(d).values() if isinstance(v, (int, float))), default=0)
    found = pairs(d) if most >= 2**53 else None
    return bool(found) and all(abs(a - b) <= math.ulp(most) for a, b in found)


RULES = [
    Rule("other: steps between large numbers", "digits that were lost", "value", also(named("linspace range arange logspace"), steps_in_double)),
    Rule("other: NumPy's numbers have their dtype", "NumPy's scalars are numbers of their dtype", "dtype value shape less more", numpy_numbers),
    Rule("other: halves with complex numbers", "float16 or bfloat16 with complex numbers gives complex64", "dtype", complex_halves),
    Rule("other: clamp joins three dtypes", "`clamp` joins all three dtypes", "dtype", also(named("clamp clip clamp_min clamp_max"), clamp_of_three)),
    Rule("other: tensors of one element in lists", "has shape `(2, 1)`", "shape", also(one_element_in_list, stacked)),
    Rule("other: tensor(bytearray)", "`tensor(bytearray)` is uint8", "dtype", lambda d: isinstance(inside(d), bytearray) and dtype(d.ours) == "uint8" and numbers(d.ours) == list(inside(d))),
    Rule("other: bincount of halves", "`bincount` with halves as weights", "dtype", also(named("bincount"), lambda d: dtype(d.ours) in ("float16", "bfloat16") and dtype(d.theirs) == "float64" and same_numbers(d.ours, d.theirs))),
    Rule("other: range of whole numbers", "`linspace` and `logspace` of a whole dtype cut each element", "shape value", also(named("range linspace logspace"), lambda d: dtype(d.theirs) in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64") and any(isinstance(v, float) and not v.is_integer() for v in arguments(d).values()))),
    Rule("other: result_type of halves and complex numbers", "float16 or bfloat16 with complex numbers gives complex64", "value", also(named("result_type promote_types"), halves_of_complex)),
    Rule("other: linspace to an infinite end", "`linspace` to or from an end that is infinite or NaN", "value", also(named("linspace logspace"), infinite_end)),
    Rule("other: infinity in arrays as whole numbers", "infinity copied into whole numbers", "value", also(named("tensor as_tensor asarray new_tensor from_numpy"), also(lambda d: dtype(d.ours) in WHOLE, not_finite_as_number))),
    Rule("other: infinity summed as whole numbers", "infinity copied into whole numbers", "value", also(named("sum nansum prod cumsum cumprod"), finite_is_the_same)),
    Rule("other: infinity as a whole number", "infinity copied into whole numbers", "value", also(named("copy"), not_finite_copied)),
    Rule("other: last digits that wrap", "digits that were lost", "value", last_digits_that_wrap),
    Rule("other: digits at a cut", "digits that were lost", "value", at_a_cut),
    Rule("other: bincount of nothing", "`bincount` of nothing", "dtype", also(named("bincount"), lambda d: given(d)[0].numel() == 0)),
    Rule("other: complex factors", "a factor that is complex", "dtype", also(named("addmm addmv addbmm baddbmm addr"), complex_factor)),
    Rule("other: numbers in block_diag", "`block_diag` counts a tensor without dimensions", "dtype", also(named("block_diag"), lambda d: any(x.dim() == 0 for x in given(d)) and cast_back(d))),
    Rule("other: powers that are cut", "`linspace` and `logspace` of a whole dtype cut each element", "value", also(named("logspace linspace range"), cut_each)),
    Rule("other: ldexp of complex numbers", "`ldexp` has the dtype of what is scaled", "dtype", named("ldexp")),
]  # fmt: skip
