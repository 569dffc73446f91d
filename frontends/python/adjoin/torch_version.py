"""adjoin.torch_version: a version that compares with texts and tuples by its numbers."""

import functools
import re

from . import version


def _key(given):
    """(release numbers, 0 of a version before the release, else 1)."""
    if isinstance(given, (tuple, list)):
        return tuple(int(n) for n in given), 1
    text = str(given)
    numbers = re.match(r"\s*v?(\d+(?:\.\d+)*)(.*)", text)
    if numbers is None:
        raise ValueError(f"{text!r} is no version; 2.1 or 2.1.0 is one")
    release = tuple(int(n) for n in numbers.group(1).split("."))
    return release, 0 if re.match(r"[._-]?(a|b|c|rc|alpha|beta|pre|dev)", numbers.group(2)) else 1


def _padded(a, b):
    size = max(len(a[0]), len(b[0]))
    return [(n + (0,) * (size - len(n)), stage) for n, stage in (a, b)]


@functools.total_ordering
class TorchVersion(str):
    """A text; ``<`` and its kin compare numbers, so that 2.15 is behind 2.9. What follows a ``+`` does not count."""

    def __eq__(self, other):
        try:
            a, b = _padded(_key(self), _key(other))
        except ValueError:
            return str.__eq__(self, other)
        return a == b

    def __lt__(self, other):
        a, b = _padded(_key(self), _key(other))
        return a < b

    def __gt__(self, other):
        a, b = _padded(_key(self), _key(other))
        return a > b

    def __le__(self, other):
        return not self > other

    def __ge__(self, other):
        return not self < other

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


__version__ = TorchVersion(version.__version__)
