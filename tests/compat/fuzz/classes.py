"""classes.py: the differences that frontends/docs/differences.md names: for each a rule that says precisely which ones it takes.

``line`` is a piece of the line of differences.md that a rule stands for; fuzz_test sees that it is there.
"""

import pathlib

from . import rules_less, rules_more, rules_other, rules_refusals

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "frontends/docs/differences.md"
RULES = [*rules_refusals.RULES, *rules_less.RULES, *rules_more.RULES, *rules_other.RULES]


def rule_for(d):
    """The first rule that takes a difference; None if there is none."""
    for rule in RULES:
        if d.kind in rule.kinds and rule.takes(d):
            return rule
    return None
