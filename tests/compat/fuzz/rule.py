"""rule.py: what a rule is: a name, the line that it stands for, the kinds of differences it may take, and when it takes one."""

import re


class Rule:
    def __init__(self, name, line, kinds, takes):
        self.name, self.line, self.kinds, self.takes = name, line, kinds.split(), takes


def said(error, pattern):
    return isinstance(error, BaseException) and re.search(pattern, str(error), re.IGNORECASE) is not None


def op(d):
    """The op of a case, without the _ of an in-place form."""
    return d.case.name.rstrip("_") if d.case.call is not None else failed_step(d)


def failed_step(d):
    """The text of the step that an error ended, or the last one."""
    number = (
        (d.all_ours.line if d.all_ours.error else d.all_theirs.line)
        if (d.all_ours.error or d.all_theirs.error)
        else None
    )
    lines = d.case.lines()
    return lines[-1 if number is None else min(number, len(lines) - 1)]
