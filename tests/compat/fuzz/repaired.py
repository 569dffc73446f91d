"""repaired.py: a line that PyTorch refuses for one named reason, and then for another: the case without the first one.

An index of a small dtype gets int64 where it is made. Adjoin must say the same with it; what differs still is asked again.
"""

import re

import adjoin
import torch

from .case import Case, run
from .compare import differences, is_tensor
from .meaning import same_numbers
from .rule import said
from .rules_more import PLACES

SMALL = re.compile(r"dtype=t\.int(8|16|32)\b")


def with_long_index(d):
    """What differs still once one index is of int64; None if that changes what Adjoin says, or nothing of what PyTorch says."""
    if d.kind != "more" or not said(d.theirs, PLACES):
        return None
    for k, line in enumerate(d.case.setup):
        if SMALL.search(line):
            case = Case(d.case.target, d.case.name, list(d.case.setup), d.case.steps, d.case.call, d.case.values)
            case.setup[k], case.many = SMALL.sub("dtype=t.int64", line), d.case.many
            ours, theirs = run(adjoin, case), run(torch, case)
            if same_names(d.all_ours, ours, line.partition(" = ")[0]) and not said(theirs.error, PLACES):
                return differences(case, ours, theirs)
    return None


def same_names(a, b, but):
    """Have both outcomes the same tensors, in whatever dtype the changed one has?"""
    named = {k: v for k, v in a.names.items() if is_tensor(v) and k != but}
    return b.error is None and all(k in b.names and same_numbers(v, b.names[k]) for k, v in named.items())
