"""rules_asked.py: PyTorch gives Adjoin's answer itself when it is asked for the same in another way. Behind all other rules."""

from .meaning import verified
from .rule import Rule
from .rules_gradients import as_differences_say
from .rules_places import dense_answer


def called(d):
    """One call, whose own result differs."""
    return d.case.call is not None and d.name.partition("[")[0] in (d.case.call.result, "r")


RULES = [
    Rule("asked: in more digits", "whose digits are those of more bits", "value", lambda d: called(d) and verified(d)),
    Rule("asked: of copies", "whatever the order of memory is", "value shape", lambda d: called(d) and dense_answer(d)),
    Rule("asked: in another dtype", "most ops compute in every dtype", "more", lambda d: called(d) and verified(d)),
    Rule("asked: finite differences", "where finite differences agree", "gradient", as_differences_say),
]
