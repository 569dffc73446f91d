"""adjoin.jit._sizes: what a program for many sizes was decided by.

A trace follows one branch of ``if x.shape[0] > 4``. While a program is made for several sizes, sizes are numbers of a class that
notes each comparison which the user's code makes of them. Both sides of a comparison are numbers that each sample of sizes gives;
from those follow the sums of products of sizes that they are, and so whether another size would have been decided otherwise.
"""

import itertools
import operator
import os
import sys
import threading
from fractions import Fraction

_HOME = os.path.dirname(os.path.dirname(__file__)) + os.sep
_FAR = 1 << 40  # stands for a size without a bound
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}

traced = threading.local()  # .notes of the sample that is traced: (comparison, left, right, file, line)


class Noted(int):
    """A size, or what was computed of sizes."""

    __slots__ = ()
    __hash__ = int.__hash__

    def __reduce__(self):
        return int, (int(self),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _note(name, a, b):
    caller = sys._getframe(2)
    file = caller.f_code.co_filename
    if not file.startswith(_HOME):
        traced.notes.append((name, int(a), int(b), file, caller.f_lineno))


def _compares(name):
    compare = getattr(int, f"__{name}__")

    def method(self, other):
        found = compare(self, other)
        if found is not NotImplemented:
            _note(name, self, other)
        return found

    return method


def _computes(name):
    compute = getattr(int, name)

    def method(self, *others):
        made = compute(self, *others)
        return Noted(made) if type(made) is int else made

    return method


for _name in _SIGNS:
    setattr(Noted, f"__{_name}__", _compares(_name))
for _name in ("add", "sub", "mul", "floordiv", "mod"):
    for _side in ("", "r"):
        setattr(Noted, f"__{_side}{_name}__", _computes(f"__{_side}{_name}__"))
for _name in ("neg", "pos", "abs", "pow"):
    setattr(Noted, f"__{_name}__", _computes(f"__{_name}__"))


def _truth(self):
    _note("ne", self, 0)
    return int(self) != 0


Noted.__bool__ = _truth


def _products(sizes):
    """The products of each choice of sizes, the empty one first."""
    return [Fraction(_product(sizes, choice)) for choice in itertools.product((False, True), repeat=len(sizes))]


def _product(sizes, choice):
    made = 1
    for size, taken in zip(sizes, choice, strict=True):
        made *= size if taken else 1
    return made


def _factors(samples, numbers):
    """The factor of each product of sizes in a number that the samples gave; None: it is no sum of such products."""
    rows = [[*_products(sizes), Fraction(n)] for sizes, n in zip(samples, numbers, strict=True)]
    n = len(rows[0]) - 1
    for column in range(n):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for r in range(len(rows)):
            if r != column and rows[r][column]:
                rows[r] = [x - rows[r][column] * y for x, y in zip(rows[r], rows[column], strict=True)]
    if any(row[n] for row in rows[n:]):
        return None
    return [row[n] for row in rows[:n]]


def _decided_alike(name, factors, bounds):
    """Does a comparison of the sum with 0 have one answer in all bounds? A sum of products of different sizes has its least and
    its greatest value in a corner."""
    corners = [
        sum(f * p for f, p in zip(factors, _products(corner), strict=True)) for corner in itertools.product(*bounds)
    ]
    low, high = min(corners), max(corners)
    if name in ("eq", "ne"):
        return low == high or low > 0 or high < 0
    compare = getattr(operator, name)
    return compare(low, 0) == compare(high, 0)


def undecided(names, samples, noted, bounds):
    """The first comparison that other sizes within the bounds would answer otherwise, as (text, file, line), or None.

    ``samples``: the sizes of each trace; ``noted``: the notes of each; ``bounds``: [(least, greatest or None)] of each name.
    """
    within = [(max(low, 2), _FAR if high is None else max(high, 2)) for low, high in bounds]
    for each in zip(*noted, strict=False):
        name, _, _, file, line = each[0]
        if any((other[0], other[3], other[4]) != (name, file, line) for other in each):
            return None  # the traces went apart here, and gave one program all the same
        factors = _factors(samples, [a - b for _, a, b, _, _ in each])
        if factors is not None and not _decided_alike(name, factors, within):
            said = f"{each[0][1]} {_SIGNS[name]} {each[0][2]}"
            return said, file, line
    return None
