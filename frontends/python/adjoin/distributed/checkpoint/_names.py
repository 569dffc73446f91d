"""adjoin.distributed.checkpoint._names: a nested state as one level of names, as PyTorch's files have it."""

import collections.abc

import adjoin

Mapping = collections.abc.Mapping


def _whole(value):
    """Whether a list is one object: it has no tensors and no dicts."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return all(not isinstance(v, adjoin.Tensor) and (not isinstance(v, (Mapping, list)) or _whole(v)) for v in value)


def flattened(state):
    """{name: (path, value)}: {"a": {"b": 1}} has the name "a.b" with the path ("a", "b")."""
    found = {}

    def visit(path, value):
        if isinstance(value, Mapping):
            for key, v in value.items():
                visit((*path, str(key)), v)
        elif _whole(value):
            name = ".".join(map(str, path))
            if name in found:
                raise ValueError(f"checkpoint: two values have the name {name!r}; rename one of their keys")
            found[name] = path, value
        else:
            for i, v in enumerate(value):
                visit((*path, i), v)

    visit((), state)
    return found


def flat(state):
    """The same of the first level alone: what lies deeper belongs to an object."""
    return {str(key): ((str(key),), value) for key, value in state.items()}


def known(state, names):
    """The same for a file that has these names: what it has as one object is one, however deep it is here."""
    found = {}

    def visit(path, value):
        name = ".".join(map(str, path))
        if name in names:
            found[name] = path, value
        elif isinstance(value, Mapping):
            for key, v in value.items():
                visit((*path, str(key)), v)
        elif _whole(value):
            found[name] = path, value
        else:
            for i, v in enumerate(value):
                visit((*path, i), v)

    visit((), state)
    return found


def put(state, path, value):
    """Puts a value to its place in a nested state; levels that are not there are made."""
    place = state
    for key, following in zip(path, path[1:], strict=False):
        place = _level(place, key, [] if isinstance(following, int) else {})
    if isinstance(place, list):
        place.extend([None] * (path[-1] + 1 - len(place)))
        place[path[-1]] = value
    else:
        place[_own_key(place, path[-1])] = value


def _own_key(place, key):
    """A dict's keys need not be strings: optimizers count parameters."""
    if key in place:
        return key
    return next((k for k in place if str(k) == key), key)


def _level(place, key, otherwise):
    if isinstance(place, list):
        place.extend([None] * (key + 1 - len(place)))
        if place[key] is None:
            place[key] = otherwise
        return place[key]
    return place.setdefault(_own_key(place, key), otherwise)
