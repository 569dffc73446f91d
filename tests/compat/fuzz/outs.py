"""outs.py: a call with out= is held against the same call without it: the same numbers, and a difference with a name, or none."""

import adjoin
import torch

from .case import Case, run
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


def cast(b, a):
    """Whole numbers in the dtype of out, which they go round."""
    return b if b.is_floating_point() or b.is_complex() else b.to(a.dtype)


def digits(a, b):
    """Between two floating dtypes the fewer digits count."""
    found = [TOLERANCE[k] for k in (dtype(a), dtype(b)) if k in TOLERANCE]
    return max(found) if len(found) == 2 else None


def one_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
