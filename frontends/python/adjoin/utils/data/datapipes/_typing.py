"""adjoin.utils.data.datapipes._typing: whether data are what a hint of a pipe says."""

import collections.abc
import types
import typing


class PipeType:
    """The hint of a pipe's data."""

    def __init__(self, hint):
        self.hint = hint

    def issubtype(self, other):
        """Whether all data of this hint are of the other's."""
        return is_part(self.hint, other.hint)

    def issubtype_of_instance(self, value):
        """Whether a value is as the hint says."""
        return fits(value, self.hint)

    def __repr__(self):
        return getattr(self.hint, "__name__", None) if isinstance(self.hint, type) else str(self.hint)


def _choices(hint):
    """The hints of which one has to hold; None for anything."""
    if hint is None:
        return (type(None),)
    if hint in (typing.Any, object):
        return None
    if isinstance(hint, typing.TypeVar):
        if hint.__constraints__:
            return hint.__constraints__
        return _choices(hint.__bound__) if hint.__bound__ else None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _class(hint):
    return typing.get_origin(hint) or hint


def is_part(hint, other):
    """Whether what is as the first hint says is as the other says."""
    wanted, given = _choices(other), _choices(hint)
    if wanted is None or given is None:
        return wanted is None
    if len(given) > 1:
        return all(is_part(one, other) for one in given)
    return any(_is_part_of_one(given[0], one) for one in wanted)


def _is_part_of_one(hint, other):
    ours, theirs = _class(hint), _class(other)
    if not (isinstance(ours, type) and isinstance(theirs, type)):
        return hint == other
    if not issubclass(ours, theirs):
        return False
    of_theirs, of_ours = typing.get_args(other), typing.get_args(hint)
    if not of_theirs or not of_ours:
        return not of_theirs
    if theirs is tuple:
        ends = of_theirs[-1] is Ellipsis
        of_theirs = of_theirs[:1] * len(of_ours) if ends else of_theirs
        of_ours = of_ours[:1] * len(of_theirs) if of_ours[-1] is Ellipsis and ends else of_ours
    return len(of_ours) == len(of_theirs) and all(map(is_part, of_ours, of_theirs))


def fits(value, hint):
    """Whether a value, with what is in it, is as a hint says."""
    choices = _choices(hint)
    return choices is None or any(_fits_one(value, one) for one in choices)


def _fits_one(value, hint):
    kind = _class(hint)
    if kind is typing.Literal:
        return value in typing.get_args(hint)
    if not isinstance(kind, type):
        return True  # nothing that can be looked at
    if hint is None:
        return value is None
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
        return False
    inner = typing.get_args(hint)
    if not inner:
        return True
    if issubclass(kind, tuple):
        if inner[-1] is Ellipsis:
            return all(fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if issubclass(kind, collections.abc.Mapping):
        return all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if issubclass(kind, (list, set, frozenset, collections.abc.Sequence)):
        return all(fits(item, inner[0]) for item in value)
    return True
