"""judged.py: cases that judge themselves: what they run in each library, and what follows for Adjoin's answer."""

import math
import warnings

import numpy as np

from .case import PASTE, compiled, within
from .rule import Rule

LACKING = Rule("sparse: an op that a layout lacks", "An op that a sparse layout lacks", "judged", lambda d: False)
NOTHING = Rule(
    "sparse: a fault where nothing is there",
    "is looked at even if nothing is there to compute",
    "judged",
    lambda d: False,
)


class Judged:
    """setup makes tensors; the texts of `expressions` are evaluated behind it. A subclass says what differs."""

    values = False

    def __init__(self, name, setup, **expressions):
        self.name, self.setup, self.expressions = name, list(setup), expressions

    def text(self):
        return "\n".join([PASTE, *self.setup, *(f"{k} = {e}" for k, e in self.expressions.items())])

    def ask(self, lib, which):
        """The value of an expression, or the error that it or what comes before it raises."""
        names = {"t": lib, "inf": math.inf, "nan": math.nan, "np": np}
        with within(lib), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for line in self.setup:
                    exec(compiled(line), names)
                exec(compiled(f"answer = {self.expressions[which]}"), names)
            except Exception as error:
                return error.with_traceback(None)
        return names["answer"]


def refused(answer):
    return isinstance(answer, Exception)
