"""outs.py: a call with out= or in place is held against the same call without it: the same numbers, and a difference with a name, or none."""

import adjoin
import torch

from .case import Call, Case, run
from .compare import TOLERANCE, differences, dtype, is_tensor
from .meaning import same_numbers


def results(outcome, call):
    """What a call gave; what it wrote, where it is a statement."""
    r = outcome.names.get(call.result, outcome.names.get(call.words.get("out")))
    return list(r) if isinstance(r, (tuple, list)) else [r]


def as_plain(d, rule_for):
    """Are Adjoin's results those without out=, and is what PyTorch says of that call the same, or named?"""
    case = d.case
    if case.call is None or "out" not in case.call.words:
        return False
    call = case.call.but(out=None)
    plain = Case(case.target, case.name, case.setup, [call, *case.steps[1:]], call, case.values)
    ours = run(adjoin, plain)
    if ours.error:
        return False
    written, fresh = results(d.all_ours, case.call), results(ours, call)
    if len(written) != len(fresh) or not all(map(is_tensor, written + fresh)):
        return False
    same = [same_numbers(a, cast(b, a), digits(a, b)) for a, b in zip(written, fresh, strict=True)]
    # Two outs over one memory hold what was written last.
    if not (all(same) or (len(same) == 2 and any(same) and one_memory(*written))):
        return False
    return all(rule_for(x) for x in differences(plain, ours, run(torch, plain)))


def in_place(d, rule_for):
    """Has an in-place form that only Adjoin takes the numbers of the call that is not in place, of which PyTorch says the same, or what is named?"""
    case, call = d.case, d.case.call
    if call is None or not call.name.endswith("_") or d.all_ours.error:
        return False
    plain = Call(call.name.rstrip("_"), call.args, {k: v for k, v in call.words.items() if k != "out"})
    fresh = Case(case.target, plain.name, case.setup, [plain, *case.steps[1:]], plain, case.values)
    ours, theirs = run(adjoin, fresh), run(torch, fresh)
    written = d.all_ours.names.get(call.result)
    if ours.error or theirs.error or not is_tensor(written) or not is_tensor(ours.names[plain.result]):
        return False
    same = same_numbers(written, ours.names[plain.result].to(written.dtype))
    return same and all(rule_for(x) for x in differences(fresh, ours, theirs))


def cast(b, a):
    """Whole numbers in the dtype of out, which they go round; others in one of fewer digits, beyond whose range they are infinite."""
    fewer = TOLERANCE.get(dtype(a), 0) > TOLERANCE.get(dtype(b), 0)
    return b.to(a.dtype) if fewer or not (b.is_floating_point() or b.is_complex()) else b


def digits(a, b):
    """Between two floating dtypes the fewer digits count."""
    found = [TOLERANCE[k] for k in (dtype(a), dtype(b)) if k in TOLERANCE]
    return max(found) if len(found) == 2 else None


def one_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
