"""adjoin.utils.data.graph: which pipes a pipe is made of."""

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def traverse_dps(datapipe):
    """``{id: (pipe, the same of those it is made of)}``; one that is met on its own way is not gone into again."""
    return _below(datapipe, frozenset())


def traverse(datapipe, only_datapipe=None):
    """The older name."""
    return traverse_dps(datapipe)


def _below(pipe, above):
    if id(pipe) in above:
        return {}
    above, found = above | {id(pipe)}, {}
    for one in _held(pipe):
        found.update(_below(one, above))
    return {id(pipe): (pipe, found)}


def _held(pipe):
    """The pipes among what a pipe would be written with, also in lists, sets and dictionaries."""
    state = pipe.__getstate__()
    waiting, seen, found = list(state.values() if isinstance(state, dict) else [state]), {id(state)}, []
    while waiting:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, IterDataPipe | MapDataPipe):
            found.append(value)
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
    return found
