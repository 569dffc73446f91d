"""outs.py: a call with out= is held against the same call without it: the same numbers, and a difference with a name, or none."""

import adjoin
import torch

from .case import Case, run
from .compare import TOLERANCE, differences, dtype, is_tensor
from .meaning import same_numbers


def results(outcome):
    r = outcome.names.get("r")
    return list(r) if isinstance(r, (tuple, list)) else [r]


def as_plain(d, rule_for):
    """Are Adjoin's results those without out=, and is what PyTorch says of that call the same, or named?"""
    case = d.case
    if case.call is None or "out" not in case.call.words or case.call.result != "r" or "r" not in d.all_ours.names:
        return False
    call = case.call.but(out=None)
    plain = Case(case.target, case.name, case.setup, [call, *case.steps[1:]], call, case.values)
    ours = run(adjoin, plain)
    if ours.error:
        return False
    written, fresh = results(d.all_ours), results(ours)
    if len(written) != len(fresh) or not all(map(is_tensor, written + fresh)):
        return False
    same = [same_numbers(a, b, digits(a, b)) for a, b in zip(written, fresh, strict=True)]
    # Two outs over one memory hold what was written last.
    if not (all(same) or (len(same) == 2 and any(same) and one_memory(*written))):
        return False
    return all(rule_for(x) for x in differences(plain, ours, run(torch, plain)))


def digits(a, b):
    """Between two floating dtypes the fewer digits count."""
    found = [TOLERANCE[k] for k in (dtype(a), dtype(b)) if k in TOLERANCE]
    return max(found) if len(found) == 2 else None


def one_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
