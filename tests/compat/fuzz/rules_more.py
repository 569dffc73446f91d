"""rules_more.py: only PyTorch refuses. Each rule asks PyTorch for the same in another way and compares what that gives."""

import math

import adjoin
import torch

from .case import Call, run
from .compare import is_tensor, numbers
from .meaning import arguments, asked, change, given, redo, same_numbers, same_result, verified, without_out
from .rule import Rule, op, said


def theirs(pattern, holds=verified, ops=None):
    def takes(d):
        return (ops is None or op(d) in ops.split()) and said(d.theirs, pattern) and holds(d)

    return takes


def nothing(d):
    """All results are without elements."""
    r = d.all_ours.names.get("r")
    found = r if isinstance(r, tuple) else [r]
    return all(isinstance(x, adjoin.Tensor) and x.numel() == 0 for x in found)


def own_answer(d):
    """The call without out= says the same, in Adjoin and, where it takes that, in PyTorch."""
    plain = without_out(adjoin, d)
    return plain.error is None and same_result(d.all_ours, plain) and (without_out(torch, d).error is not None or verified(d))


def widens(d):
    """Adjoin's own answer in wider dtypes, where PyTorch has no way to ask."""
    return not any(True for _ in asked(d)) and any(same_result(d.all_ours, o) for o in asked(d, adjoin))


def either(d):
    return verified(d) or widens(d)


def answers_as(turn):
    """PyTorch's answer once turn(d, names) changed an argument is the same."""

    def holds(d):
        other = run(torch, d.case, lambda names: turn(d, names))
        return other.error is None and same_result(d.all_ours, other)

    return holds


def mask_of_bools(d, names):
    """Bytes as a mask are truth values."""
    mask = d.case.call.args[1]
    names[mask] = names[mask] != 0
    for name in d.case.call.args[2:]:
        if name in names:
            names[name] = names[name].to(names[d.case.call.args[0]].dtype)


def from_the_end(d, names):
    x, dim, places = d.case.call.args[:3]
    size = names[x].shape[int(dim)] if names[x].dim() else 1
    names[places] = names[places].long() % max(size, 1)


def cut_to_whole(d):
    """A fraction among bytes is cut, and a whole number is taken modulo 256, however it is written."""

    def cut(text):
        try:
            value = eval(text, {"inf": math.inf, "nan": math.nan})
        except Exception:
            return text
        return str(int(value.real)) if isinstance(value, (float, complex)) and math.isfinite(value.real) else text

    call = d.case.call
    whole = call.but([cut(a) for a in call.args], **{k: cut(v) for k, v in call.words.items()})
    other = redo(torch, d, whole)
    return whole.text() != call.text() and other.error is None and same_result(d.all_ours, other)


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


def one_element(d):
    return any(x.dim() == 0 for x in given(d)) and (verified(d) or same_elements(d))


def same_elements(d):
    """Of a number nothing but itself, or nothing, can come."""
    r, x = d.all_ours.names.get("r"), arguments(d).get(0)
    return is_tensor(r) and r.numel() <= 1 and all(v in (numbers(x) if x.dim() == 0 else []) or v != v for v in numbers(r))


def last_is_written(d):
    """index_copy into a number: the last of several is there."""
    args = arguments(d)
    source, x = args[3], d.all_ours.names["r"]
    return args[0].dim() == 0 and source.dim() == 0 and same_numbers(x, source if args[2].numel() else args[0])


DTYPE = (r"not implemented for|not supported|does not support|doesn't support|must be either float or double|floating point|"
         r"same dtype|dtype|scalar.?type|boolean masks?|inputs to be|support.* (complex|bool)|for integral input|Boolean alpha|complex")  # fmt: skip
PLACES = r"expected.* for index|Expected (a long|dtype int(32/)?int64|tensor for argument #\d 'indices')|dtype int64 for index|used as indices|LongTensor|dtype of indices"
TENSOR = r"must be Tensor, not|invalid combination of arguments|expected Tensor|must be tuple of ints, not"
OUT = (r"unexpected keyword argument 'out'|out=|\bout\b|result type .* can't be cast|for (values|indices) output|output (values|indices)|"
       r"for result|'values' to have the same|output with shape|single memory location|written-to|given to float_power|outputs?\b|out tensor|result dtype")  # fmt: skip

RULES = [
    Rule("more: an index of a small dtype", "indices of `int32`, `int16`, `int8`", "more", theirs(PLACES)),
    Rule("more: a number where a tensor is expected", "numbers where a tensor is expected", "more", theirs(TENSOR, lambda d: "out" not in d.case.call.words and either(d) if d.case.call else False)),
    Rule("more: a method that PyTorch lacks", "in-place forms of nearly all ops", "more", theirs(r"'Tensor' object has no attribute", function_says)),
    Rule("more: out=", "an `out=` of another dtype of the same or a higher kind", "more", lambda d: d.case.call is not None and "out" in d.case.call.words and said(d.theirs, OUT) and own_answer(d)),
    Rule("more: an op in a dtype that PyTorch lacks", "most ops compute in every dtype", "more", theirs(DTYPE, either)),
    Rule("more: nothing to compute", "pools, convolutions and products of nothing", "more", lambda d: d.case.call is not None and d.case.call.form == "F" and nothing(d)),
    Rule("more: a word that no kernel reads", "a word that no kernel has to read", "more", theirs("expected rounding_mode to be one of", nothing)),
    Rule("more: a mask of bytes", "a mask of bytes", "more", theirs(r"boolean masks|BoolTensor", answers_as(mask_of_bools))),
    Rule("more: places from the end", "places that count from the end in `index_copy`", "more", theirs("out of bounds|out of range in self", answers_as(from_the_end), "index_copy index_reduce")),
    Rule("more: a fraction that is cut to 0", "a fraction between -1 and 0", "more", theirs("cannot be converted to type uint8_t without overflow", cut_to_whole)),
    Rule("more: values of one element for one place", "values of shape `(1,)` for one place", "more", theirs(r"value tensor of shape \[1(, 1)*\] cannot be broadcast to indexing result of shape \[\]", either)),
    Rule("more: a tensor without dimensions is one element, index_copy", "a tensor without dimensions counts as one element", "more", theirs("When source is scalar", last_is_written, "index_copy")),
    Rule("more: a tensor without dimensions is one element", "a tensor without dimensions counts as one element", "more", theirs(r"no dimensions|1-d|1 dimension|scalar|0-dim|zero-dim|slice\(\) cannot|Dimension out of range", one_element)),
]  # fmt: skip
