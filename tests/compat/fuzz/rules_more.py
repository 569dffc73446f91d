"""rules_more.py: only PyTorch refuses. Each rule asks PyTorch for the same in another way and compares what that gives."""

import fractions
import math
import re

import adjoin
import numpy as np
import torch

from .case import Call, run
from .compare import MANY, differences, dtype, is_tensor, numbers, same_gradient
from .meaning import arguments, asked, before, change, given, redo, same_numbers, same_result, verified
from .rule import Rule, op, said
from .rules_dtypes import cut_each, numpy_beside_bools, numpy_numbers, stacked
from .rules_memory import out_is_part
from .rules_places import lies_at, wraps_like_numpy
from .rules_sums import product_of_nothing


def theirs(pattern, holds=verified, ops=None):
    def takes(d):
        return (ops is None or op(d) in ops.split()) and said(d.theirs, pattern) and holds(d)

    return takes


def nothing(d):
    """All results are without elements."""
    r = d.all_ours.names.get("r")
    found = r[:1] if isinstance(r, tuple) else [r]
    return all(isinstance(x, adjoin.Tensor) and x.numel() == 0 for x in found)


def of_nothing(d):
    """Nothing is given, or nothing comes: zeros, what a pool begins with, or nothing."""
    r = d.all_ours.names.get("r")
    found = [x for x in (r if isinstance(r, tuple) else (r,)) if is_tensor(x)]
    empty = any(x.numel() == 0 for x in given(d))
    return nothing(d) or (empty and all(v == 0 or v == -math.inf or v != v for x in found for v in numbers(x)))


def widens(d):
    """Adjoin's own answer in wider dtypes, where PyTorch has no way to ask."""
    return not any(True for _ in asked(d)) and any(
        same_result(d.all_ours, o, name=d.case.call.result if d.case.call else "r") for o in asked(d, adjoin)
    )


def either(d):
    return verified(d) or widens(d) or in_single(d) or rounded(d)


def in_single(d):
    """Whole numbers as float32, which functions of fractions take them as."""

    def turn(names):
        for k, v in names.items():
            if is_tensor(v) and not (v.is_floating_point() or v.is_complex()):
                names[k] = v.float()

    return answers_in(run(torch, d.case, turn), d)


def rounded(d):
    """Whole numbers beyond 2**24 lose digits in float32: the same but for those."""
    top = max((float(x.double().abs().max()) for x in given(d) if x.numel() and not x.is_complex()), default=0)
    r = d.all_ours.names.get("r")
    if top > 2**24 and op(d) in ("baddbmm", "addmm", "addmv", "addbmm", "addr"):
        return any(tuple(o.names["r"].shape) == tuple(r.shape) for o in asked(d))  # products of whole numbers go round
    if top <= 2**24 or not is_tensor(r) or r.is_complex():
        return False
    return any(
        is_tensor(o.names.get("r"))
        and tuple(o.names["r"].shape) == tuple(r.shape)
        and not o.names["r"].is_complex()
        and all(abs(a - b) <= 2e-7 * top or a == b for a, b in zip(numbers(r), numbers(o.names["r"]), strict=True))
        for o in asked(d)
    )


def answers_as(turn):
    """PyTorch's answer once turn(d, names) changed an argument is the same."""

    def holds(d):
        other = run(torch, d.case, lambda names: turn(d, names))
        return other.error is None and same_result(d.all_ours, other, name=d.case.call.result)

    return holds


def mask_of_bools(d, names):
    """Bytes as a mask are truth values."""
    for mask in re.findall(r"\w+", d.case.call.args[1]):
        if is_tensor(names.get(mask)) and names[mask].dtype == torch.uint8:
            names[mask] = names[mask] != 0
    for name in d.case.call.args[2:]:
        if name in names:
            names[name] = names[name].to(names[d.case.call.args[0]].dtype)


def masked(d):
    """As with truth values, and with a value that is cut."""
    call = d.case.call
    other = redo(torch, d, call.but([*call.args[:2], *map(cut, call.args[2:])]), lambda names: mask_of_bools(d, names))
    return answers_as(mask_of_bools)(d) or answers_in(other, d)


def cut(text):
    """A fraction without its fraction."""
    try:
        value = complex(eval(text, {"inf": math.inf, "nan": math.nan}))
    except Exception:
        return text
    return str(int(value.real)) if math.isfinite(value.real) and value.imag == 0 else text


def from_the_end(d, names):
    x, dim, places = d.case.call.args[:3]
    size = names[x].shape[int(dim)] if names[x].dim() else 1
    names[places] = names[places].long() % max(size, 1)


def from_front(d):
    """PyTorch answers the same, gradients too, where the places count from the front."""
    other = run(torch, d.case, lambda names: from_the_end(d, names))
    places = d.case.call.args[2]
    return other.error is None and all(x.name == places for x in differences(d.case, d.all_ours, other))


def truths(d):
    """The numbers in float64 that are not 0 are True."""
    r = d.all_ours.names["r"]
    if r.numel() > MANY:
        return op(d) == "arange" and many_truths(d, r)
    other = redo(torch, d, d.case.call.but(dtype="t.float64"))
    if other.error:
        return False
    rows = zip(numbers(r), numbers(other.names["r"]), strict=True)
    return all(a == (v != 0) or (a is False and abs(v) < 1e-15) for a, v in rows)


def many_truths(d, r):
    """Beginning, end and number of elements of a long arange."""
    start, end, step = (arguments(d).get(k, v) for k, v in ((0, 0), (1, None), (2, 1)))
    start, end = (0, start) if end is None else (start, end)
    places = [*range(100), *range(r.numel() - 100, r.numel())]
    return r.numel() == math.ceil((end - start) / step) and all(r[k].item() == (start + k * step != 0) for k in places)


def product_of_truths(d):
    """With dtype=bool the product or sum is that of what is not 0."""
    call = d.case.call
    if call.words.get("dtype") != "t.bool":
        return False
    other = redo(torch, d, call.but([f"({call.args[0]} != 0).long()", *call.args[1:]], dtype=None))
    return other.error is None and same_result(d.all_ours, other)


def same_places(d):
    """What is read is what is written, all of it; with a copy PyTorch does the same."""
    return as_of_copies(d) if d.case.call is not None else out_is_part(d)


def cut_to_whole(d):
    """A fraction among bytes is cut, and a whole number is taken modulo 256, however it is written."""

    def whole_of(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(whole_of, value))
        return int(value.real) if isinstance(value, (float, complex)) and math.isfinite(value.real) else value

    def cut(text):
        try:
            value = eval(text, {"inf": math.inf, "nan": math.nan})
        except Exception:
            return text
        return repr(whole_of(value)) if isinstance(value, (float, complex, list, tuple)) else text

    call = d.case.call
    if verified(d):
        return True
    factors = {
        k: "1" if v == "True" else "0" if v == "False" else cut(v)
        for k, v in call.words.items()
        if k in ("alpha", "beta", "value")
    }
    whole = call.but([cut(a) for a in call.args], **{**{k: cut(v) for k, v in call.words.items()}, **factors})
    others = [redo(torch, d, whole, turn) for turn in (None, change("long"))]
    return whole.text() != call.text() and any(o.error is None and same_result(d.all_ours, o) for o in others)


def function_says(d):
    """PyTorch's function of the name that its method would have."""
    call = d.case.call
    plain = Call(call.name.rstrip("_"), call.args, call.words)
    steps = [plain, *d.case.steps[1:]]
    return any(run(lib, d.case, turn, steps).error is None and same_r(d, run(lib, d.case, turn, steps))
               for turn in (None, change("double"), change("complex")) for lib in (torch, adjoin))  # fmt: skip


def same_r(d, other):
    a, b = d.all_ours.names["r"], other.names["r"]
    a, b = (a, b) if isinstance(a, tuple) else ((a,), (b,))
    return all(same_numbers(x, y) for x, y in zip(a, b, strict=True))


def added_to_one(d):
    """index_add into a number: once for each place."""
    x, places, source = (arguments(d)[k] for k in (0, 2, 3))
    alpha = arguments(d).get("alpha", 1)
    if not (x.is_floating_point() or x.is_complex()) and not isinstance(alpha, complex):
        alpha = int(alpha)
    if x.dim() or source.numel() != 1 or places.dim() > 1:
        return False
    wide = x if x.is_complex() or not x.is_floating_point() else x.double()
    return (
        same_numbers(d.all_ours.names["r"], wide + source.reshape(()) * alpha * places.numel()) or x.dtype == torch.bool
    )


def along_from_the_end(d):
    args, name = arguments(d), d.case.call.args[1]
    size = args[0].numel()
    other = run(
        torch,
        d.case,
        lambda names: names.update(
            {d.case.call.args[0]: args[0].contiguous(), name: (names[name].long() % max(size, 1)).contiguous()}
        ),
    )
    return other.error is None and same_result(d.all_ours, other)


def of_dense_copies(d):
    other = run(
        torch,
        d.case,
        lambda names: names.update(
            {k: v.contiguous().clone(memory_format=torch.contiguous_format) for k, v in names.items() if is_tensor(v)}
        ),
    )
    return other.error is None and same_result(d.all_ours, other)


def one_element(d):
    return any(x.dim() == 0 for x in given(d)) and (verified(d) or same_elements(d))


def same_elements(d):
    """Of a number nothing but itself, or nothing, can come."""
    r, x = d.all_ours.names.get("r"), arguments(d).get(0)
    return (
        is_tensor(r) and r.numel() <= 1 and all(v in (numbers(x) if x.dim() == 0 else []) or v != v for v in numbers(r))
    )


def floating_number(d):
    """A number beyond a dtype's range is infinite there."""
    return verified(d) or widens(d) or of_infinite_numbers(d)


def exact_means(d):
    """The means of whole numbers as doubles, by their exact sums."""
    x, dims = arguments(d)[0], arguments(d).get("dim", arguments(d).get(1))
    r = d.all_ours.names["r"]
    if x.is_floating_point() or x.is_complex() or not x.numel():
        return False
    dims = tuple(range(x.dim())) if dims is None else tuple(dims) if isinstance(dims, (list, tuple)) else (dims,)
    doubles = np.array([fractions.Fraction(v) for v in numbers(x.double())], dtype=object).reshape(tuple(x.shape))
    exact = doubles.sum(axis=dims) if x.dim() else doubles
    means = [float(v) * r.numel() / x.numel() for v in np.array(exact, dtype=object).reshape(-1)]
    return same_numbers(r, torch.tensor(means, dtype=torch.float64).reshape(tuple(r.shape)))


def of_infinite_numbers(d):
    """PyTorch says the same when infinity is written for what a half cannot hold."""
    call, numbers_given = d.case.call, {k: v for k, v in arguments(d).items() if isinstance(v, (int, float))}
    far = {k: repr(math.copysign(math.inf, v)) for k, v in numbers_given.items() if abs(v) > 65504}
    if call is None or not far or not any(x.dtype in (torch.float16, torch.bfloat16) for x in given(d)):
        return False
    places = [far.get(k, a) for k, a in enumerate(call.args)]
    return answers_in(redo(torch, d, call.but(places, **{k: v for k, v in far.items() if isinstance(k, str)})), d)


def as_of_copies(d):
    """The write does what it would with copies of what it reads."""
    call = d.case.call
    other = redo(
        torch,
        d,
        call.but(
            [
                call.args[0],
                *[
                    f"{a}.clone()" if is_tensor(v) else a
                    for a, v in zip(
                        call.args[1:], (arguments(d).get(k + 1) for k in range(len(call.args) - 1)), strict=True
                    )
                ],
            ]
        ),
    )
    return other.error is None and same_numbers(d.all_ours.names[call.args[0]], other.names[call.args[0]])


def derivative(d):
    """The function that is no in-place form has the same derivative; without one, the result is the same and gradients fit."""
    call, g = d.case.call, d.all_ours.names.get("g", ())
    plain = Call(call.name.rstrip("_"), call.args, call.words)
    other = run(torch, d.case, None, [plain, *d.case.steps[1:]])
    if other.error is None:
        return all(same_gradient(a, b) for a, b in zip(g, other.names.get("g", ()), strict=False))
    return all(p is None or is_tensor(p) for p in g)


def of_uint64(d):
    """The list as it is told in int64, or its numbers."""
    call = d.case.call
    other = redo(torch, d, call.but(dtype="t.int64"))
    return (other.error is None and same_result(d.all_ours, other)) or (
        numbers(d.all_ours.names["r"]) == whole_numbers(arguments(d)[0])
    )


def whole_numbers(value):
    """The numbers in nested lists, cut; None where something else is there."""
    if isinstance(value, (list, tuple)):
        rows = [whole_numbers(v) for v in value]
        return None if None in rows else [n for row in rows for n in row]
    is_number = isinstance(value, (int, float, np.generic)) and not isinstance(value, (np.complexfloating, np.bool_))
    return [int(value)] if is_number and math.isfinite(value) else None


def cut_list(d):
    """Each number of the list is cut, and taken modulo 2^n, as Python's own are."""
    values, r = whole_numbers(arguments(d)[0]), d.all_ours.names["r"]
    if dtype(r) == "bool":
        return same_numbers(r, torch.tensor(arguments(d)[0], dtype=torch.float64).bool())
    return values is not None and same_numbers(
        r, torch.tensor(values).to(getattr(torch, dtype(r))).reshape(tuple(r.shape))
    )


def as_arrays(d):
    call = d.case.call
    is_scalar = call.args[0].startswith("np.complex")
    return is_scalar and answers_in(redo(torch, d, call.but([f"np.array({call.args[0]})", *call.args[1:]])), d)


def real_number(d):
    call, number = d.case.call, arguments(d).get(3)
    real = isinstance(number, complex) and number.imag == 0
    return real and answers_in(redo(torch, d, call.but([*call.args[:3], repr(number.real)])), d)


def one_window(d):
    """Nothing, or one window, as with a step of the size."""
    call = d.case.call
    size = max(arguments(d)[0].shape[arguments(d)[1]], 1)
    return nothing(d) or answers_in(redo(torch, d, call.but([*call.args[:3], str(size)])), d)


def counted(d):
    """All elements, in Python's whole numbers."""
    args, r = arguments(d), d.all_ours.names["r"]
    start, end, step = (args.get(k, v) for k, v in ((0, 0), (1, None), (2, 1)))
    return all(isinstance(v, int) for v in (start, end, step)) and numbers(r) == list(range(start, end, step))


def answers_in(other, d):
    return other.error is None and same_result(d.all_ours, other)


def grids(d):
    """Each result holds its own argument along its own dimension."""
    x = [arguments(d)[k] for k in range(len(d.case.call.args))]
    places = torch.meshgrid(*[torch.arange(max(v.numel(), 0)) for v in x], indexing=arguments(d).get("indexing", "ij"))
    return all(same_numbers(r, v.reshape(-1)[p]) for r, v, p in zip(d.all_ours.names["r"], x, places, strict=True))


def product_of_bools(d):
    """beta * x or any of both: as truth values."""
    args = arguments(d)
    x, y, z = args[0], args[1], args[2]
    if not all(v.dtype == torch.bool for v in (x, y, z)):
        return False
    product = (y.double() @ z.double()) if op(d) != "addr" else torch.outer(y.double(), z.double())
    product = product.sum(0) if op(d) == "addbmm" else product
    said = (x & bool(args.get("beta", 1))) | ((product > 0) & bool(args.get("alpha", 1)))
    return same_numbers(d.all_ours.names["r"], said)


def over_all(d):
    """No dimension means all of them, and several are one vector."""
    call, x = d.case.call, arguments(d)[0]
    dims = arguments(d).get("dim", arguments(d).get(1))
    if not dims:
        x, dims = x.reshape(1) if x.dim() == 0 else x, range(x.dim() or 1)
    dims = list(dims)
    wide = x.double() if not x.is_complex() else torch.where(x.isnan(), torch.full_like(x, math.nan), x)
    keepdim = call.words.get("keepdim") == "True"
    said = (
        torch.logsumexp(wide, dims, keepdim)
        if op(d) == "logsumexp"
        else torch.linalg.vector_norm(wide, 2, dims, keepdim)
    )
    return same_numbers(d.all_ours.names["r"], said)


def picked(d):
    """The values of topk, kthvalue and their kin are PyTorch's in a wider dtype, and lie at the places given."""
    if not isinstance(d.all_ours.names["r"], tuple):
        return False
    values, places = d.all_ours.names["r"][:2]
    args, words = arguments(d), d.case.call.words
    x, dim = args[0], args.get("dim", args.get(2, -1))
    x = x.reshape(1) if x.dim() == 0 else x
    return any(same_numbers(values, o.names["r"][0]) for o in asked(d)) and lies_at(
        x, values, places, dim, words.get("keepdim") == "True"
    )


def last_is_written(d):
    """index_copy into a number: as into a vector of one element."""
    args = arguments(d)
    if args[0].dim() or args[3].dim() > 1:
        return False
    r = d.all_ours.names["r"]
    x, dim, places, source = d.case.call.args[:4]
    index = f"{places}.reshape(-1).long() % 1"
    values = f"{source}.reshape(-1).to({x}.dtype)" + (f".expand({places}.numel())" if args[3].dim() == 0 else "")
    line = f"r = t.index_copy({x}.reshape(1), 0, {index}, {values}).reshape(())"
    other = run(torch, d.case, steps=[line, *d.case.steps[1:]])
    gradients = zip(d.all_ours.names.get("g", ()), other.names.get("g", ()), strict=False)
    return other.error is None and same_numbers(r, other.names["r"]) and all(same_gradient(a, b) for a, b in gradients)


DTYPE = (r"not implemented for|not supported|does not support|doesn't support|must be either float or double|floating point|"
         r"same dtype|dtype|result type|scalar.?type|boolean masks?|inputs to be|support.* (complex|bool)|for integral input|Boolean alpha|complex")  # fmt: skip
PLACES = r"expected.* for index|Expected (a long|dtype int(32/)?int64|tensor for argument #\d 'indices')|dtype int64 for index|used as indices|LongTensor|dtype of indices"
TENSOR = r"must be Tensor, not|invalid combination of arguments|expected Tensor|must be tuple of ints, not"
SMALL_INDEX = Rule("more: an index of a small dtype", "indices of `int32`, `int16`, `int8`", "more", theirs(PLACES))

RULES = [
    Rule("more: a diagonal that wraps", "`fill_diagonal_(wrap=True)` of a matrix", "more", theirs("setStorage", wraps_like_numpy, "fill_diagonal")),
    Rule("more: a mask of bytes without dimensions", "a mask without dimensions in `index_put`", "more", theirs("ntensor >= 3 INTERNAL ASSERT", lambda d: any(x.dim() == 0 and x.dtype == torch.uint8 for x in given(d)), "index_put")),
    SMALL_INDEX,
    Rule("more: a number where a tensor is expected", "some numbers where a tensor is expected", "more", theirs(TENSOR, lambda d: "out" not in d.case.call.words and either(d) if d.case.call else False)),
    Rule("more: a method that PyTorch lacks", "in-place forms of nearly all ops", "more", theirs(r"'Tensor' object has no attribute", function_says)),
    Rule("more: products of bools", "most ops compute in every dtype", "more", theirs(DTYPE, product_of_bools, "addmm addmv addbmm baddbmm addr")),
    Rule("more: means of whole numbers", "most ops compute in every dtype", "more", theirs("floating point or complex dtype", exact_means, "nanmean")),
    Rule("more: topk and kthvalue of bools", "most ops compute in every dtype", "more", theirs(DTYPE, picked, "topk kthvalue sort median mode")),
    Rule("more: reductions over no or many dimensions", "`logsumexp(x, ())`", "more", theirs("doesn't match the broadcast shape|must be of length 1 or 2|must be a 2-tuple", over_all, "logsumexp norm")),
    Rule("more: an op in a dtype that PyTorch lacks", "most ops compute in every dtype", "more", theirs(DTYPE, either)),
    Rule("more: products of nothing", "pools, convolutions and products of nothing", "more", theirs("size mismatch|must be a matrix|can't be cast|size of tensor|expand|same dtype", product_of_nothing, "addmm addmv addbmm baddbmm")),
    Rule("more: nothing to compute", "pools, convolutions and products of nothing", "more", lambda d: d.case.call is not None and d.case.call.form == "F" and of_nothing(d)),
    Rule("more: shapes of nothing", "shapes such as `(0, 2**62, 4)`", "more", theirs("(calculation|multiplication) overflow|represented as a SymInt", lambda d: nothing(d) or all(x.numel() == 0 for x in given(d)))),
    Rule("more: a slice with a huge step", "a slice whose step nears 2**63", "more", theirs("(calculation|multiplication) overflow", lambda d: d.case.name == "key" and same_numbers(d.all_ours.names["r"], before(d.case)["x"][:1]))),
    Rule("more: one value per group", "`group_norm` of one value", "more", theirs("Expected more than 1 value per channel", lambda d: all(v == 0 or v != v for v in numbers(d.all_ours.names["r"])), "group_norm")),
    Rule("more: a number that goes nowhere", "a word that no kernel has to read", "more", theirs("without overflow", nothing)),
    Rule("more: numbers in lists of uint64", "`tensor` of whole numbers for `uint64`", "more", theirs("an integer is required", of_uint64, "tensor as_tensor asarray new_tensor")),
    Rule("more: meshgrid of several dtypes", "most ops compute in every dtype", "more", theirs("same dtype", grids, "meshgrid")),
    Rule("more: products of truths", "most ops compute in every dtype", "more", theirs("not implemented for 'Bool'", product_of_truths, "cumprod prod cumsum")),
    Rule("more: ranges of truths", "most ops compute in every dtype", "more", theirs("not implemented for 'Bool'", truths, "range logspace linspace arange")),
    Rule("more: itself in another shape", "with a part of themselves", "more", theirs("refer to a single memory location", same_places)),
    Rule("more: a part of itself", "with a part of themselves", "more", theirs("refer to a single memory location", as_of_copies, "index_add put index_copy scatter scatter_add masked_scatter index_put")),
    Rule("more: derivatives that PyTorch lacks", "derivatives of in-place forms", "more", theirs("derivative for|Double backward is unsupported|support automatic differentiation|derivative of|not differentiable|returned an invalid gradient|proper Tensor but got None|Autograd not support|^The size of tensor a", derivative)),
    Rule("more: a word that no kernel reads", "a word that no kernel has to read", "more", theirs("expected rounding_mode to be one of", nothing)),
    Rule("more: a number beyond the range", "is infinite", "more", theirs(r"cannot be converted to type (float|double|c10::\w+) without overflow", floating_number)),
    Rule("more: tensors in lists", "stacks", "more", theirs("only one element tensors|only integer tensors of a single element|an integer is required", stacked)),
    Rule("more: NumPy's floats in lists of a whole dtype", "lists of NumPy's floats for a whole dtype", "more", theirs("interpreted as an integer|without overflow", cut_list, "tensor as_tensor asarray new_tensor")),
    Rule("more: NumPy's complex numbers for a whole dtype", "NumPy's scalars are cast as arrays of one element are", "more", theirs("an integer is required|interpreted as an integer", as_arrays, "tensor as_tensor asarray new_tensor")),
    Rule("more: a real number written as a complex one", "a complex number without an imaginary part in `index_fill`", "more", theirs("Converting complex Scalar", real_number, "index_fill")),
    Rule("more: NumPy's unsigned numbers", "NumPy's scalars are numbers of their dtype", "more", theirs("an integer is required|interpreted as an integer", numpy_numbers)),
    Rule("more: bools from NumPy's numbers", "NumPy's scalars are numbers of their dtype", "more", theirs("Subtraction, the `-` operator", numpy_beside_bools)),
    Rule("more: frombuffer of nothing", "`frombuffer(count=0)`", "more", theirs(r"both buffer length \(\d+\) and count \(-?\d+\) must not be 0", nothing)),
    Rule("more: random whole numbers in every dtype", "most ops compute in every dtype", "more", theirs("handles only integral|not implemented for", lambda d: not d.case.values, "randint randperm")),
    Rule("more: no whole number to a negative power", "`0 ** -1` of no integers", "more", theirs("Integers to negative integer powers", lambda d: nothing(d) or all(x.numel() == 0 for x in given(d)))),
    Rule("more: xlogy of complex numbers", "most ops compute in every dtype", "more", theirs("not implemented for 'Complex", lambda d: same_numbers(d.all_ours.names["r"], arguments(d)[0] * torch.as_tensor(arguments(d)[1], dtype=torch.complex128).log()), "xlogy")),
    Rule("more: steps near the end of 64 bits", "and other steps near the end of 64 bits", "more", theirs("possible overflow", counted, "arange")),
    Rule("more: windows far apart", "and other steps near the end of 64 bits", "more", theirs("cannot be represented as a SymInt|Negative strides are not supported", one_window, "unfold")),
    Rule("more: a bound beyond the range", "a fraction between -1 and 0, or a whole number beyond the range", "more", theirs("outside the representable range", verified, "clamp clip clamp_min clamp_max")),
    Rule("more: index_reduce of halves", "most ops compute in every dtype", "more", theirs("INTERNAL ASSERT FAILED", verified, "index_reduce")),
    Rule("more: slices of nothing", "pools, convolutions and products of nothing", "more", theirs("zero sized dimensions", nothing, "unique unique_consecutive")),
    Rule("more: a mask of bytes", "a mask of bytes", "more", theirs(r"boolean masks|BoolTensor", masked)),
    Rule("more: places from the end", "places that count from the end in `index_copy`", "more", theirs("out of bounds|out of range in self|out of DATA bounds|Expected a long tensor", from_front, "index_copy index_reduce index_fill")),
    Rule("more: powers that are cut", "`linspace` and `logspace` of a whole dtype cut each element", "more", theirs("without overflow", cut_each, "logspace linspace range")),
    Rule("more: a fraction that is cut to 0", "a fraction between -1 and 0", "more", theirs(r"cannot be converted to type u?int\d*(_t)? without overflow|Integer division with addcdiv|must not be a floating point number", cut_to_whole)),
    Rule("more: values of one element for one place", "values of shape `(1,)` for one place", "more", theirs(r"value tensor of shape \[1(, 1)*\] cannot be broadcast to indexing result of shape \[\]", either)),
    Rule("more: take_along_dim from the end", "places that count from the end in `index_copy`", "more", theirs("out of bounds|view size is not compatible", along_from_the_end, "take_along_dim")),
    Rule("more: other layouts", "in any layout", "more", theirs("view size is not compatible|must be 1 to view", of_dense_copies)),
    Rule("more: dtypes that PyTorch cannot compute in", "most ops compute in every dtype", "more", theirs(r"'UInt(16|32|64)'|uint16, uint32, uint64|'B?Complex(Half|32)'|BComplex", lambda d: True)),
    Rule("more: nothing to take", "a word that no kernel has to read", "more", theirs("view size is not compatible", nothing, "take_along_dim")),
    Rule("more: a tensor without dimensions is one element, index_add", "a tensor without dimensions counts as one element", "more", theirs("no dimensions|source tensor shape must match", added_to_one, "index_add")),
    Rule("more: a tensor without dimensions is one element, index_copy", "a tensor without dimensions counts as one element", "more", theirs("When source is scalar|Expected a long tensor|out of bounds", last_is_written, "index_copy")),
    Rule("more: a tensor without dimensions is one element", "a tensor without dimensions counts as one element", "more", theirs(r"no dimensions|1-d|1 dimension|scalar|0-dim|zero-dim|slice\(\) cannot|Dimension out of range", one_element)),
]  # fmt: skip
