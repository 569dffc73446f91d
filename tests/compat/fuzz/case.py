"""case.py: one random call as lines of Python that anybody can paste, and how it runs in one library."""

import contextlib
import functools
import math
import warnings

import numpy as np

PASTE = "from math import inf, nan; import numpy as np; import adjoin as t  # or torch as t"
FORMS = {"t": "t.", "F": "t.nn.functional.", "L": "t.linalg.", "S": "t.special."}


class Call:
    """``result = name(*args, **words)``: each argument is the text of an expression. form: a key of FORMS, or "x" for a method."""

    def __init__(self, name, args, words=None, form="t", result="r"):
        self.name, self.args, self.words, self.form, self.result = name, list(args), dict(words or {}), form, result

    def text(self):
        head, args = (f"{self.args[0]}.", self.args[1:]) if self.form == "x" else (FORMS[self.form], self.args)
        words = [f"{k}={v}" for k, v in self.words.items()]
        return f"{self.result} = {head}{self.name}({', '.join([*args, *words])})"

    def but(self, args=None, **words):
        """The same call with other arguments; a word that is None goes."""
        words = {k: v for k, v in {**self.words, **words}.items() if v is not None}
        return Call(self.name, self.args if args is None else args, words, self.form, self.result)


class Case:
    """setup makes tensors, steps are what is compared; ``call`` is the step that has a structure, if there is one."""

    def __init__(self, target, name, setup, steps, call=None, values=True):
        self.target, self.name, self.setup, self.steps, self.call = target, name, list(setup), list(steps), call
        self.values = values  # False: the elements are random or not written
        self.many = call is None  # steps before it have lost digits

    def lines(self):
        return [*self.setup, *(s.text() if isinstance(s, Call) else s for s in self.steps)]

    def text(self):
        return "\n".join([PASTE, *self.lines()])


@functools.lru_cache(4096)
def compiled(line):
    return compile(line, line, "exec")


class Outcome:
    """What a case did: every name it bound, or the error and the line that raised it."""

    def __init__(self, names, error=None, line=None):
        self.names, self.error, self.line = names, error, line


entered = None  # told the library in whose code a case runs, and None behind it


@contextlib.contextmanager
def within(lib):
    """What runs here is this library's code."""
    tell = entered or (lambda lib: None)
    tell(lib)
    try:
        yield
    finally:
        tell(None)


def run(lib, case, change=None, steps=None):
    """Runs a case in one library. change(names) may replace arguments once they are made."""
    with within(lib):
        return executed(lib, case, change, steps)


def executed(lib, case, change, steps):
    names = {"t": lib, "inf": math.inf, "nan": math.nan, "np": np}
    texts = [s.text() if isinstance(s, Call) else s for s in (case.steps if steps is None else steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number = 0
        try:
            for line in case.setup:
                exec(compiled(line), names)
                number += 1
            if change:
                change(names)
            for line in texts:
                exec(compiled(line), names)
                number += 1
        except Exception as error:
            # What the stack holds would keep tensors alive.
            return Outcome(names, error.with_traceback(None), number)
    return Outcome(names)
