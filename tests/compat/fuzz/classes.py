"""classes.py: the differences that frontends/docs/differences.md names: for each a rule that says precisely which ones it takes.

``line`` is a piece of the line of differences.md that a rule stands for; fuzz_test sees that it is there.
"""

import pathlib

from . import (
    outs,
    rules_asked,
    rules_dtypes,
    rules_functions,
    rules_gradients,
    rules_less,
    rules_memory,
    rules_more,
    rules_places,
    rules_refusals,
    rules_sums,
    rules_written,
)
from .elements import element_by_element, together
from .judged import LACKING, NOTHING
from .narrow import narrowed
from .repaired import with_long_index
from .rule import Rule

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "frontends/docs/differences.md"
OUTS = [
    Rule("out=: of another dtype or shape", "an `out=` of another dtype of the same or a higher kind", "more", lambda d: outs.as_plain(d, rule_for)),
    Rule("out=: the result of the call without it", "the result is that of the call without `out=`", "value shape shares strides dtype", lambda d: outs.as_plain(d, rule_for)),
    Rule("out=: in place, that of the plain call", "`out=` and in-place forms of nearly all ops", "more", lambda d: outs.in_place(d, rule_for)),
]  # fmt: skip
RULES = [
    *OUTS,
    *rules_refusals.RULES,
    *rules_less.RULES,
    *rules_more.RULES,
    *rules_functions.RULES,
    *rules_dtypes.RULES,
    *rules_sums.RULES,
    *rules_places.RULES,
    *rules_memory.RULES,
    *rules_gradients.RULES,
    *rules_written.RULES,
    *rules_asked.RULES,
    LACKING,
    NOTHING,
]


def rule_for(d):
    """The first rule that takes a difference, or all that one of several steps begins with; None if there is none."""
    rule = rule_of(d) or of_our_digits(d)
    if rule is None and (begun := narrowed(d)):
        taken = [rule_of(x) or of_our_digits(x) for x in begun]
        rule = taken[0] if all(taken) else None
    if rule is None and (still := with_long_index(d)) is not None and all(map(rule_of, still)):
        rule = rules_more.SMALL_INDEX
    return rule


def of_our_digits(d):
    """The rule of what still differs when PyTorch's last step is given Adjoin's digits."""
    still = rules_written.with_our_digits(d)
    return still and rule_of(still)


def rule_of(d):
    rules = [rule for rule in RULES if d.kind in rule.kinds]
    for rule in rules:
        if asked(rule.takes, d):
            return rule
    rows_of = {"value": element_by_element, "gradient": rules_gradients.rows}.get(d.kind)
    return asked(together, d, rules, rows_of) if rows_of else None


def asked(question, *about):
    """A rule that meets a case of another form than its own does not take it."""
    try:
        return question(*about)
    except Exception:
        return None
