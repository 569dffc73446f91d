"""rules_other.py: both answer, and the answers differ: in values, dtypes, shapes, memory, gradients."""

import math
import re

import adjoin
import numpy as np
import torch

from .compare import TOLERANCE, address, differences, differs, dtype, is_tensor, near, numbers, parts, strides
from .case import run
from .meaning import arguments, given, redo, same_numbers, same_result, verified
from .rule import Rule, op


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
    if args[0].requires_grad:
        return True
    key = tuple((k != 0).numpy() if k.dtype in (torch.uint8, torch.bool) else k.numpy() for k in args[1])
    if not any(k.dtype == bool and k.ndim == 0 for k in key) or args[0].dtype == torch.bfloat16:
        return any(k.dtype == bool and k.ndim == 0 for k in key)
    x = args[0].numpy().copy()
    try:
        np.add.at(x, key, args[2].detach().numpy()) if args.get("accumulate") else x.__setitem__(
            key, args[2].detach().numpy()
        )
    except (IndexError, ValueError):
        return d.kind == "more" or bool(d.all_ours.error)
    return d.kind == "less" or same_numbers(d.all_ours.names["r"], torch.from_numpy(x))


def unsorted(d):
    """A sequence with NaN is in no order: comparisons with NaN are false."""
    args = arguments(d)
    edges = args[0] if op(d) == "searchsorted" else args[1]
    return edges.is_floating_point() and bool(edges.isnan().any())


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
        assigned = re.match(r"(\w+(?:\[.*\])? \S*= )(\w+)$", line) or re.match(r"(\w+\.copy_\()(\w+)\)$", line)
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
        if other.error is None and not differences(d.case, d.all_ours, other):
            return True
    return False


def goes_round(d):
    """pad(mode='circular') takes places modulo the size, also after a part was cut away."""
    x, (left, right) = (arguments(d)[k] for k in (0, 1))
    places = torch.arange(-left, x.shape[-1] + right) % x.shape[-1]
    return (
        d.case.call.words.get("mode") == "'circular'" and min(left, right) < 0 and same_numbers(d.ours, x[..., places])
    )


def of_not_finite(d):
    return any(not bool(torch.isfinite(x).all()) for x in given(d)) and all(
        not (finite(a) and finite(b)) for a, b in pairs(d)
    )


def complex_factor(d):
    if not any(isinstance(v, complex) for k, v in arguments(d).items() if k in ("alpha", "beta")):
        return False
    rows = list(zip(numbers(d.ours), numbers(d.theirs), strict=True))
    kept = arguments(d).get("alpha", 1) == 0 and all(a != a or a == b for a, b in rows)
    return kept or same_numbers(d.ours, d.theirs)


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
    try:
        said = (x * beta).expand(shape) if beta else torch.zeros(shape)
    except RuntimeError:
        return False
    joined = torch.promote_types(x.dtype, torch.promote_types(y.dtype, z.dtype))
    return dtype(r) == str(joined).rpartition(".")[2] and same_numbers(r, said)


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


def numpy_numbers(d):
    """NumPy's numbers count as tensors without dimensions: PyTorch agrees when it is given those, or refuses them, too."""
    call = d.case.call
    if call is None or "np." not in call.text():
        return False

    def tensor(text):
        return re.sub(r"np\.(\w+?)_?\(([^()]*)\)", r"t.tensor(\2, dtype=t.\1)", text)

    other = redo(torch, d, call.but([tensor(a) for a in call.args]))
    if d.kind == "less":
        return other.error is not None
    if other.error is None and is_tensor(d.ours) and dtype(d.ours) == "bool":  # comparisons
        return same_result(d.all_ours, other)
    if other.error is not None or complex_halves(d):
        return half_or_refused(d)
    if op(d) == "where":
        return half_or_refused(d)
    a, b = parts(d.all_ours), parts(other)
    return all(k in b and not differs(d.case, a[k], b[k], True) for k in a if k in ("r", "x"))


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


def clamp_of_three(d):
    """The dtype is that of the operands joined one after another."""
    operands = [v for k, v in sorted(arguments(d).items(), key=str) if v is not None and k in (0, 1, 2, "min", "max")]
    orders = [[0, 1, 2], [1, 2, 0], [0, 2, 1]] if len(operands) == 3 else [[0, 1]]
    found = set()
    for order in orders:
        joined = operands[order[0]]
        for k in order[1:]:
            kind = torch.result_type(joined, operands[k])
            dims = max(getattr(joined, "dim", lambda: 0)(), getattr(operands[k], "dim", lambda: 0)())
            joined = torch.zeros((1,) * dims, dtype=kind)
        found.add(str(joined.dtype).rpartition(".")[2])
    return dtype(d.ours) in found


def cast_back(d):
    """In PyTorch's dtype the numbers are PyTorch's."""
    ours = torch.tensor(numbers(d.ours), dtype=getattr(torch, dtype(d.ours))).to(d.theirs.dtype)
    return all(near(a, b, 0, 1.0) for a, b in zip(numbers(ours.reshape(-1)), numbers(d.theirs), strict=True))


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


def half_given(d):
    """Halves compute in wider numbers: PyTorch says the same of float64, or float32."""
    call = d.case.call
    if call is not None and call.words.get("dtype") in ("t.float16", "t.bfloat16"):
        wide = redo(torch, d, call.but(dtype="t.float32"))
        return wide.error is None and same_result(d.all_ours, wide)
    if not any(x.dtype in (torch.float16, torch.bfloat16) for x in given(d)):
        return False

    def in_single(names):
        for k, v in names.items():
            if is_tensor(v) and not v.is_complex():
                names[k] = v.float()

    other = run(torch, d.case, in_single)
    return verified(d) or (other.error is None and same_result(d.all_ours, other))


def large_whole_numbers(d):
    """PyTorch says the same of float64, of whole numbers that are no float32."""
    return any(
        not x.is_floating_point() and x.numel() and x.double().abs().max() > 2**24
        for x in given(d)
        if not x.is_complex()
    ) and verified(d)


def dense_answer(d):
    """PyTorch's own answer for dense copies of its arguments is Adjoin's."""
    from_copies = run(
        torch,
        d.case,
        lambda names: names.update(
            {k: v.clone(memory_format=torch.contiguous_format) for k, v in names.items() if is_tensor(v)}
        ),
    )
    return from_copies.error is None and same_result(d.all_ours, from_copies)


def of_fractions(d):
    return all(not (x.is_floating_point() or x.is_complex()) for x in given(d)) and dtype(d.ours) == "float32"


def exact_trapezoid(d):
    return of_fractions(d) and verified(d)


def infinite_end(d):
    """Where an end is infinite, what lies between is NaN, and the end itself."""
    ends = [v for k, v in arguments(d).items() if k in (0, 1)]
    return any(isinstance(v, float) and not math.isfinite(v) for v in ends) and all(
        a != a or a in ends for a, b in pairs(d)
    )


def halves_of_complex(d):
    return str(d.ours).endswith("complex64") and str(d.theirs).rpartition(".")[2] in ("complex32", "bcomplex32")


def infinite_with_nan(a, b):
    return a != a and not isinstance(b, complex) and math.isinf(b)


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


def not_finite_in(x):
    return (x.is_floating_point() or x.is_complex()) and not bool(torch.isfinite(x).all())


def tensors_for_numbers(d):
    """PyTorch says the same where all bounds are tensors."""
    call = d.case.call
    if op(d) not in ("clamp", "clip") or not any(is_tensor(arguments(d).get(k)) for k in (1, 2, "min", "max")):
        return False

    def tensor(text):
        return text if text == "None" else f"t.as_tensor({text})"

    args = [call.args[0], *map(tensor, call.args[1:])]
    other = redo(torch, d, call.but(args, **{k: tensor(v) for k, v in call.words.items() if k in ("min", "max")}))
    if d.kind == "less":
        return other.error is not None
    return other.error is None and same_result(d.all_ours, other)


def same_rows(d):
    """unique(dim=) with NaN: the same slices in another order."""
    x = given(d)[0]
    if not (x.is_floating_point() or x.is_complex()) or not x.isnan().any():
        return False
    r = d.all_ours.names["r"]
    values = r[0] if isinstance(r, tuple) else r
    if x.dim() == 1 and d.kind == "shape" and op(d) == "unique":
        return {repr(v + 0) for v in numbers(values)} == {repr(v + 0) for v in numbers(x)}
    theirs = d.all_theirs.names["r"]
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    return sorted(map(repr, numbers(values))) == sorted(map(repr, numbers(theirs)))


def at_the_most(d):
    """renorm where a norm is maxnorm but for its last digit: it is scaled by maxnorm / (maxnorm + 1e-7), or is not."""
    most = arguments(d)[3]
    return all(abs(a - b) * most <= abs(b) * 1.01e-7 for a, b in pairs(d))


def steps_in_its_dtype(d):
    """nextafter_ takes a step in the dtype of what it writes."""
    call, args = d.case.call, arguments(d)
    if call is None or call.name != "nextafter_" or not is_tensor(args[1]):
        return False
    other = redo(torch, d, call.but([call.args[0], f"{call.args[1]}.to({call.args[0]}.dtype)"]))
    return other.error is None and same_result(d.all_ours, other)


def distance_by_parts(d):
    """dist of complex numbers: the norm of the differences of their parts."""
    x, y = arguments(d)[0], arguments(d)[1]
    if not (x.is_complex() and y.is_complex()):
        return False
    apart = torch.view_as_complex((torch.view_as_real(x) - torch.view_as_real(y)).contiguous())
    return same_numbers(d.ours, torch.linalg.vector_norm(apart, arguments(d).get(2, arguments(d).get("p", 2))))


def scaled_far(a, b, n, x):
    """By powers of two that no float holds."""
    return abs(n) >= 2**31 and (
        a == (x if x == 0 else math.copysign(math.inf, x)) if n > 0 else a == 0 or not finite(x)
    )


def scaled(a, b):
    """0 stays 0 by whatever finite power of two; the other digits are those of more bits."""
    return (a == 0 and b != b) or (finite(a) and finite(b) and abs(a - b) <= 1e-6 * abs(b))


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


def at_a_cut(d):
    """Digits that were lost before show where fractions are cut to whole numbers."""
    source = given(d)[0] if d.case.call and op(d) == "to" and d.case.many else None
    if source is None or not (source.is_floating_point() or source.is_complex()):
        return False
    near_whole = [abs(v.real - round(v.real)) <= 1e-4 * max(1, abs(v)) for v in numbers(source) if finite(v)]
    lost = max(TOLERANCE.get(dtype(v), 0) for v in d.all_theirs.names.values() if is_tensor(v))
    return any(near_whole) and all(abs(a - b) <= max(1, lost * abs(b)) for a, b in pairs(d))


def between_neighbours(*row):
    """Two numbers whose digits were lost before are compared."""
    x, y = row[2:4]
    return abs(x - y) <= 2e-5 * max(1, abs(x))


def order_of_the_base(d):
    """The base is a result, whose order of memory differs already."""
    base = d.name.rpartition(" in ")[2]
    a, b = d.all_ours.names.get(base), d.all_theirs.names.get(base)
    return is_tensor(a) and is_tensor(b) and strides(a) != strides(b)


def not_finite_copied(d):
    """NaN, infinity or what is too large becomes a whole number."""
    x, source = (arguments(d).get(k) for k in (0, 1))
    values = numbers(source) if is_tensor(source) else [source]
    return is_tensor(x) and dtype(x) in WHOLE and any(isinstance(v, float) and not abs(v) < 2**31 for v in values)


NOT_FINITE = each(broken)
RULES = [
    Rule(
        "other: gcd of the smallest number",
        "`gcd` and `lcm` are not negative",
        "value",
        also(named("gcd lcm"), each(lambda a, b: a == -b and a > 0)),
    ),
    Rule(
        "other: powers of two in single digits",
        "`ldexp` of halves is exact",
        "value",
        also(named("ldexp"), lambda d: verified(d) or each(scaled)(d) or rows(scaled_far)(d)),
    ),
    Rule(
        "other: trapezoid beside infinity",
        "`trapezoid` over one sample",
        "value",
        also(named("trapezoid"), each(lambda a, b: math.isinf(abs(a)) and b != b)),
    ),
    Rule("other: complex numbers with an infinite part", "of complex numbers with an infinite part", "value", NOT_FINITE),
    Rule("other: NumPy's numbers have their dtype", "NumPy's scalars are numbers of their dtype", "dtype value shape less more", numpy_numbers),
    Rule("other: halves with complex numbers", "float16 or bfloat16 with complex numbers gives complex64", "dtype", complex_halves),
    Rule("other: clamp joins three dtypes", "`clamp` joins all three dtypes", "dtype", also(named("clamp clip clamp_min clamp_max"), clamp_of_three)),
    Rule("other: tensors of one element in lists", "has shape `(2, 1)`", "shape", also(one_element_in_list, stacked)),
    Rule("other: tensor(bytearray)", "`tensor(bytearray)` is uint8", "dtype", lambda d: isinstance(inside(d), bytearray) and dtype(d.ours) == "uint8" and numbers(d.ours) == list(inside(d))),
    Rule("other: bincount of halves", "`bincount` with halves as weights", "dtype", also(named("bincount"), lambda d: dtype(d.ours) in ("float16", "bfloat16") and dtype(d.theirs) == "float64" and same_numbers(d.ours, d.theirs))),
    Rule("other: norms of complex numbers with NaN", "the norm of an infinite complex number with a NaN part", "value", also(named("norm vector_norm dist abs"), also(complex_given, each(lambda a, b: infinite_with_nan(a, b) or not (math.isfinite(a) or math.isfinite(b)))))),
    Rule("other: products times 0", "with `alpha=0`", "value", also(named("addmm addmv addbmm baddbmm addr"), alpha_is_zero)),
    Rule("other: range of whole numbers", "`linspace` and `logspace` of a whole dtype cut each element", "shape value", also(named("range linspace logspace"), lambda d: dtype(d.theirs) in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64") and any(isinstance(v, float) and not v.is_integer() for v in arguments(d).values()))),
    Rule("other: result_type of halves and complex numbers", "float16 or bfloat16 with complex numbers gives complex64", "value", also(named("result_type promote_types"), halves_of_complex)),
    Rule("other: halves in wider numbers", "numbers are not rounded before they are used", "value", half_given),
    Rule("other: digits of large whole numbers", "`cov` of whole numbers", "value", also(named("trapezoid cumulative_trapezoid mean nanmean diff cov corrcoef var std sum nansum"), digits_of_large)),
    Rule("other: trapezoid of one sample", "`trapezoid` over one sample", "value", also(named("trapezoid"), one_sample)),
    Rule("other: variances of too few numbers", "`var` of two numbers with `correction=2`", "value", also(named("var std var_mean std_mean"), divides_by_nothing)),
    Rule("other: mode beside NaN", "`mode` beside NaN", "value", also(named("mode"), lambda d: any(bool(x.isnan().any()) for x in given(d) if x.is_floating_point()))),
    Rule("other: covariances of large whole numbers", "`cov` of whole numbers", "value", also(named("cov corrcoef"), large_whole_numbers)),
    Rule("other: arguments whose elements share memory", "of an expanded tensor", "value", also(named("median nanmedian kthvalue mode"), dense_answer)),
    Rule("other: trapezoid of whole numbers", "`trapezoid` of whole numbers", "value dtype", also(named("trapezoid cumulative_trapezoid"), lambda d: exact_trapezoid(d) or (d.kind == "dtype" and of_fractions(d)))),
    Rule("other: linspace to an infinite end", "`linspace` to or from an end that is infinite or NaN", "value", also(named("linspace logspace"), infinite_end)),
    Rule("other: another of several equal ones", "give among equal elements", "value", also(named("topk kthvalue mode median nanmedian"), another_of_several)),
    Rule("other: means beside deviations", "means beside `std_mean` and `var_mean`", "value", also(named("std_mean var_mean"), means_of_infinities)),
    Rule("other: logarithms of complex numbers", "`logcumsumexp` of complex numbers", "value", also(named("logcumsumexp"), lambda d: each(same_angle)(d) or weightless(d))),
    Rule("other: batch_norm of a constant", "`batch_norm` subtracts the mean", "value", also(named("batch_norm instance_norm group_norm layer_norm"), verified)),
    Rule("other: 1 to a power that is NaN", "1 to a complex power that is NaN", "value", also(named("pow float_power **"), rows(lambda a, b, *x: a != a and abs(b) == 1 and isinstance(a, complex) and any(v != v for v in x)))),
    Rule("other: nextafter_ of two dtypes", "`nextafter_` takes a step", "value", steps_in_its_dtype),
    Rule("other: distances of complex numbers with an infinite part", "differences of complex numbers with an infinite part", "value", also(named("dist"), distance_by_parts)),
    Rule("other: norms at their bound", "digits that were lost", "value", also(named("renorm"), at_the_most)),
    Rule("other: norms beside an infinite number with a NaN part", "the norm of an infinite complex number with a NaN part", "value", also(named("renorm"), also(part_without_number, each(lambda a, b: b == 0 or not finite(b))))),
    Rule("other: infinity in arrays as whole numbers", "infinity copied into whole numbers", "value", also(named("tensor as_tensor asarray new_tensor from_numpy"), also(lambda d: dtype(d.ours) in WHOLE, not_finite_as_number))),
    Rule("other: convolutions beside infinities", "convolutions and", "value", also(named("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"), padding_is_nothing)),
    Rule("other: infinity summed as whole numbers", "infinity copied into whole numbers", "value", also(named("sum nansum prod cumsum cumprod"), finite_is_the_same)),
    Rule("other: clamp between a tensor and a number", "`clamp` between a tensor and a number", "value less", tensors_for_numbers),
    Rule("other: 0 to an infinite power", "0 to a power with a positive real part", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: not finite(b) and (a == 1 or broken(a, b) or (a == 0 and x[-1] == 0))))),
    Rule("other: slices with NaN", "slices with NaN", "value shape", also(named("unique unique_consecutive"), same_rows)),
    Rule("other: places of NaN among unique elements", "slices with NaN", "value", also(named("unique unique_consecutive"), found_again)),
    Rule("other: digits in a comparison", "digits that were lost", "value", also(named("eq ne lt le gt ge"), also(lambda d: d.case.many, rows(between_neighbours)))),
    Rule("other: order of a result's memory", "strides of results are no promise", "strides", order_of_the_base),
    Rule("other: infinity as a whole number", "infinity copied into whole numbers", "value", also(named("copy"), not_finite_copied)),
    Rule("other: digits at a cut", "digits that were lost", "value", at_a_cut),
    Rule("other: bincount of nothing", "`bincount` of nothing", "dtype", also(named("bincount"), lambda d: given(d)[0].numel() == 0)),
    Rule("other: a mask without dimensions in index_put", "a mask without dimensions in `index_put`", "value more less", also(named("index_put"), masks_without_dimensions)),
    Rule("other: searchsorted among NaN", "`searchsorted` and `bucketize` among NaN", "value", also(named("searchsorted bucketize"), unsorted)),
    Rule("other: strides of nonzero", "strides of results are no promise", "strides", named("nonzero where argwhere")),
    Rule("other: conj and real are new tensors", "`conj()` is a new tensor", "shares value shape strides", conj_is_new),
    Rule("other: an alias of the argument", "another tensor over the same memory", "shares", also(named("real broadcast_tensors"), alias_of_itself)),
    Rule("other: the argument or a copy", "is the tensor itself or a copy", "shares dtype", also(named("pixel_shuffle sum_to_size"), itself_or_copy)),
    Rule("other: pad goes round", "`pad(mode='circular')` by a negative number", "value", also(named("pad"), goes_round)),
    Rule("other: interpolation beside infinities", "`interpolate` beside", "value", also(named("interpolate"), of_not_finite)),
    Rule("other: a slice with a huge step", "a slice whose step nears 2**63", "shape", lambda d: d.case.name == "key" and min(d.theirs.shape) < 0),
    Rule("other: complex factors", "a factor that is complex", "dtype", also(named("addmm addmv addbmm baddbmm addr"), complex_factor)),
    Rule("other: products of nothing", "pools, convolutions and products of nothing", "shape dtype value", also(named("addmm addmv addbmm baddbmm"), product_of_nothing)),
    Rule("other: shapes of nothing", "pools, convolutions and products of nothing", "shape", right_shape_of_nothing),
    Rule("other: out= over memory that is read", "an `out=` that shares memory with an input", "value shape shares strides dtype", out_is_part),
    Rule("other: polygamma at poles", "`polygamma` of integers at or below 0", "value", also(named("polygamma"), rows(lambda a, b, x: (x <= 0 and (math.isinf(x) or float(x).is_integer()) and not math.isfinite(a)) or (x == math.inf and a == 0 and b != b)))),
    Rule("other: Bessel functions", "Bessel functions", "value", also(lambda d: op(d).startswith(("bessel", "modified_bessel", "spherical_bessel")), rows(lambda a, b, x: (math.isinf(x) and a == 0 and b != b) or abs(a - b) <= 1e-7 * max(1, abs(b))))),
    Rule("other: anything to the power 0 is 1", "`float_power(inf + 0j, 0)` is 1", "value", also(named("pow float_power ** **="), each(lambda a, b: (a == 1 and not finite(b)) or broken(a, b)))),
    Rule("other: powers of infinite complex numbers", "an infinite complex number to a negative power", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: broken(a, b) or (any(isinstance(v, complex) and not finite(v) for v in x) and a == 0 and not finite(b))))),
    Rule("other: numbers in block_diag", "`block_diag` counts a tensor without dimensions", "dtype", also(named("block_diag"), lambda d: any(x.dim() == 0 for x in given(d)) and cast_back(d))),
    Rule("other: powers that are cut", "`linspace` and `logspace` of a whole dtype cut each element", "value", also(named("logspace linspace range"), cut_each)),
    Rule("other: powers of minus infinity", "`pow` of minus infinity", "value", also(named("pow float_power ** **="), rows(lambda a, b, *x: any(v == -math.inf for v in x if not isinstance(v, complex)) and b != b))),
    Rule("other: ldexp of complex numbers", "`ldexp` has the dtype of what is scaled", "dtype", named("ldexp")),
    Rule("other: activations at -inf", "at infinity and minus infinity have their limit", "value", also(named("gelu silu mish"), rows(lambda a, b, x: math.isinf(x) and a == max(x, 0) and b != b))),
    Rule("other: zeta at NaN", "`zeta` of NaN is NaN", "value", also(named("zeta"), rows(lambda a, b, x, y: ((x != x or y != y) and a != a) or (a == 0 and b != b)))),
]  # fmt: skip
