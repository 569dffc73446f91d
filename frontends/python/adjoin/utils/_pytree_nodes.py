"""adjoin.utils._pytree_nodes: Python's own containers, taken apart and made again; keys of ways to leaves. Reached as adjoin.utils._pytree."""

import dataclasses
from collections import OrderedDict, defaultdict, deque
from typing import Any


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The way to an item of a list."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The item there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The way to a value of a dictionary."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The way to an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The attribute's value."""
        return getattr(obj, self.name)


def _list_flatten(node):
    return node, None


def _list_flatten_with_keys(node):
    return [(SequenceKey(k), child) for k, child in enumerate(node)], None


def _list_unflatten(children, context):
    return list(children)


def _tuple_flatten(node):
    return list(node), None


_tuple_flatten_with_keys = _list_flatten_with_keys


def _tuple_unflatten(children, context):
    return tuple(children)


def _dict_flatten(node):
    return list(node.values()), list(node.keys())


def _dict_flatten_with_keys(node):
    return [(MappingKey(k), v) for k, v in node.items()], list(node.keys())


def _dict_unflatten(children, context):
    return dict(zip(context, children, strict=True))


_odict_flatten = _ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _ordereddict_unflatten(children, context):
    return OrderedDict(zip(context, children, strict=True))


_odict_unflatten = _ordereddict_unflatten


def _defaultdict_flatten(node):
    return list(node.values()), [node.default_factory, list(node.keys())]


def _defaultdict_flatten_with_keys(node):
    return _dict_flatten_with_keys(node)[0], _defaultdict_flatten(node)[1]


def _defaultdict_unflatten(children, context):
    return defaultdict(context[0], zip(context[1], children, strict=True))


def _deque_flatten(node):
    return list(node), node.maxlen


def _deque_flatten_with_keys(node):
    return _list_flatten_with_keys(node)[0], node.maxlen


def _deque_unflatten(children, context):
    return deque(children, maxlen=context)


def _namedtuple_flatten(node):
    return list(node), type(node)


def _namedtuple_flatten_with_keys(node):
    return [(GetAttrKey(f), getattr(node, f)) for f in node._fields], type(node)


def _namedtuple_unflatten(children, context):
    return context(*children)
