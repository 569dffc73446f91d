"""adjoin.distributed.checkpoint._nested_dict: the longer path to names of a nested state, which planners call."""

from . import _names


def flatten_state_dict(state_dict):
    """(name -> value, name -> path)."""
    found = _names.flattened(state_dict)
    return {name: value for name, (_, value) in found.items()}, {name: path for name, (path, _) in found.items()}


def unflatten_state_dict(state_dict, mapping):
    """The nested state again."""
    made = {}
    for name, value in state_dict.items():
        _names.put(made, mapping[name], value)
    return made
