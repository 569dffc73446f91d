"""meaning.py: what a call means, asked in a way that PyTorch takes: wider dtypes, places of int64, tensors for numbers, without out=.

A rule for "only PyTorch refuses" holds where one of these has the values of Adjoin's answer.
"""

import cmath
import functools

import torch

from .case import run
from .compare import MANY, TOLERANCE, close, dtype, is_tensor, numbers, parts

SMALL = (torch.int32, torch.int16, torch.int8)


def tensors(names):
    return {k: v for k, v in names.items() if isinstance(v, torch.Tensor)}


@functools.lru_cache(64)
def before(case):
    """PyTorch's names once the arguments are made."""
    return run(torch, case, steps=[]).names


def arguments(d):
    """The values of the call's arguments in PyTorch, by position and by word; what cannot be evaluated is left out."""
    call, names, out = d.case.call, before(d.case), {}
    if call is None:
        return out
    for key, text in [*enumerate(call.args), *call.words.items()]:
        try:
            out[key] = eval(text, dict(names))
        except Exception:
            continue
    return out


def given(d):
    """The tensors among the arguments, lists taken apart; without out=. All tensors there are, where a case has no call."""
    found, todo = [], [v for k, v in arguments(d).items() if k != "out"] or list(tensors(before(d.case)).values())
    while todo:
        value = todo.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            todo.extend(value)
    return found


def change(kind):
    """A function that changes the tensors among names in place of a narrower call."""

    def each(names, turn):
        for k, v in tensors(names).items():
            names[k] = turn(v)

    def common(names):
        dtypes = [v.dtype for v in tensors(names).values()]
        joined = functools.reduce(join, dtypes) if dtypes else torch.float64
        each(names, lambda v: v.to(joined) if v.dtype != joined else v)

    return {
        "detach": lambda names: each(names, lambda v: v.detach()),
        "places": lambda names: each(names, lambda v: v.long() if v.dtype in SMALL else v),
        "bytes": lambda names: each(names, lambda v: v.long() if v.dtype == torch.uint8 else v),
        "common": common,
        "long": lambda names: each(
            names, lambda v: v if v.is_floating_point() or v.is_complex() or v.dtype == torch.bool else v.long()
        ),
        "small": lambda names: each(
            names, lambda v: v.to(torch.uint8) if v.dtype in (torch.uint16, torch.uint32, torch.uint64) else v
        ),
        "whole": lambda names: each(names, lambda v: v.long() if v.dtype == torch.bool else v),
        "truths": lambda names: each(names, lambda v: v.bool() if v.dtype == torch.uint8 else v),
        "double": lambda names: each(names, lambda v: v if v.is_complex() else v.double()),
        "fractions": lambda names: each(names, lambda v: v.double() if v.is_floating_point() else v),
        "complex": lambda names: each(names, lambda v: v.to(torch.complex128)),
        "points": lambda names: each(names, lambda v: v.reshape(()) if v.shape == (1,) else v),
        "lines": lambda names: each(names, lambda v: v.reshape(1) if v.dim() == 0 else v),
    }[kind]


def one_dtype(names, call):
    """What is written gets the dtype of what it is written into."""
    first, last = (names.get(call.args[k]) for k in (0, -1)) if call and len(call.args) > 1 else (None, None)
    if is_tensor(first) and is_tensor(last) and not (last.is_complex() and not first.is_complex()):
        names[call.args[-1]] = last.to(first.dtype)


def one_point(names, call):
    """What is written is a number, where it is one element."""
    last = names.get(call.args[-1]) if call else None
    if is_tensor(last) and last.numel() == 1:
        names[call.args[-1]] = last.reshape(())


def join(a, b):
    try:
        return torch.promote_types(a, b)
    except RuntimeError:
        return torch.int64


WAYS = [("detach",), ("places",), ("places", "bytes"), ("common",), ("fractions",), ("double",), ("whole",), ("truths",), ("long",), ("small",), ("complex",), ("lines",), ("points",), ("places", "lines"),
        ("places", "common"), ("places", "double"), ("places", "points"), ("places", "common", "points"), ("whole", "common"), ("double", "lines")]  # fmt: skip


OF_THE_LAST = {"value": one_dtype, "last": one_point}


def numbers_to_tensors(call, cast=""):
    """The call with t.tensor(2) where it has 2 as one of its first arguments."""

    def turn(text):
        try:
            value = eval(text, {"inf": float("inf"), "nan": float("nan"), "np": __import__("numpy")})
        except Exception:
            return text
        return f"t.tensor({text}){cast}" if not isinstance(value, (tuple, list, str, type(None))) else text

    return call.but([turn(a) if k else a for k, a in enumerate(call.args)])


def calls(d):
    """The call and the same one in other words."""
    call = d.case.call
    if call is None:
        return [None]
    out = [call]
    if "out" in call.words:
        out.append(call.but(out=None))
    out.append(numbers_to_tensors(out[-1]))
    out.append(
        numbers_to_tensors(out[0], f".to({call.args[0]}.dtype)" if call.args and call.args[0].isidentifier() else "")
    )
    if call.words.get("dtype") == "t.bool":
        out.append(call.but(dtype="t.int64"))
    if call.words.get("dtype") in ("t.float16", "t.bfloat16"):
        out.append(call.but(dtype="t.float32"))
    if call.name == "flip":
        out.append(call.but([call.args[0], f"({call.args[1]},)"]))
    as_number = {"True": "1", "False": "0"}
    if {"alpha", "beta", "value"} & {k for k, v in call.words.items() if v in as_number}:
        out.append(
            call.but(
                **{k: as_number.get(v, v) if k in ("alpha", "beta", "value") else v for k, v in call.words.items()}
            )
        )
    return out


def asked(d, lib=torch):
    """Outcomes of all other ways to ask, as far as they are taken."""
    case = d.case
    for call in calls(d):
        steps = None if call is None else [call, *case.steps[1:]]
        for way in ((), *WAYS, ("value",), ("places", "value"), ("places", "value", "last")):

            def turn(names, way=way):
                for kind in way:
                    if kind in OF_THE_LAST:
                        OF_THE_LAST[kind](names, call)
                    else:
                        change(kind)(names)

            outcome = run(lib, case, turn if way else None, steps)
            if outcome.error is None:
                yield outcome


def same_result(ours, other, loose=None, name="r"):
    """Are the results (r, or what was written) the same numbers, in whatever dtype?"""
    a, b = parts(ours), parts(other)
    keys = [k for k in a if k == name or k.startswith(name + "[")] or list(a)
    return all(k in b and same_numbers(a[k], b[k], loose) for k in keys)


def ends(t, many=500):
    """The first and the last elements of a large tensor, by their places in the order of rows: a list of all takes seconds."""
    flat = t.detach().reshape(-1)
    places = [*range(many), *range(flat.numel() - many, flat.numel())]
    return flat[places]


def same_numbers(a, b, loose=None):
    if not is_tensor(a) or not is_tensor(b):
        return is_tensor(a) == is_tensor(b) and (a == b or str(a).rpartition(".")[2] == str(b).rpartition(".")[2])
    if tuple(a.shape) != tuple(b.shape):
        return False
    kind = dtype(a)
    if isinstance(b, torch.Tensor) and dtype(b) != kind:
        try:
            b = b.real if b.is_complex() and not kind.startswith("complex") else b
            b = b.to(getattr(torch, kind))
        except RuntimeError:  # PyTorch's own answer has a size that it cannot hold
            return False
    x, y = (numbers(ends(v) if v.numel() > MANY else v) for v in (a, b))
    if kind.startswith("complex"):  # parts beside NaN and infinity are by the order of the multiplications
        pairs = [(p, q) for p, q in zip(x, y, strict=True) if cmath.isfinite(p) or cmath.isfinite(q)]
        x, y = [p for p, _ in pairs], [q for _, q in pairs]
    return close(x, y, loose or TOLERANCE.get(kind, 0))


def verified(d, loose=None):
    """Does PyTorch say the same when it is asked in another way?"""
    name = d.case.call.result if d.case.call else "r"
    return any(same_result(d.all_ours, other, loose, name) for other in asked(d))


def redo(lib, d, call, turn=None):
    """The case with another call."""
    return run(lib, d.case, turn, [call, *d.case.steps[1:]])


def overlaps_itself(t):
    """Do several elements share memory?"""
    if t.numel() < 2:
        return False
    if t.numel() > 100_000:
        return any(s == 0 and n > 1 for n, s in zip(t.shape, t.stride(), strict=True))
    places = torch.arange(t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1)
    return places.as_strided(t.shape, t.stride(), t.storage_offset()).unique().numel() < t.numel()


def share(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.untyped_storage().nbytes() > 0
