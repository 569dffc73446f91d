"""adjoin.distributed.checkpoint.optimizer: an optimizer's state whose parts lie as those of the model."""

import adjoin

from ._names import put
from .metadata import BytesStorageMetadata
from .state_dict_loader import _load_state_dict

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """{optimizer_key: state}; what is as large as the parameter of its name lies as that does."""
    found, state = storage_reader.read_metadata(), {}
    for name, entry in found.state_dict_metadata.items():
        if name != optimizer_key and not name.startswith(f"{optimizer_key}."):
            continue
        path = (found.planner_data or {}).get(name, (name,))
        if isinstance(entry, BytesStorageMetadata):
            put(state, path, None)
            continue
        like = next((model_state_dict[p] for p in path if p in model_state_dict), None)
        if like is None or tuple(like.shape) != tuple(entry.size):
            put(state, path, adjoin.empty(tuple(entry.size), dtype=entry.properties.dtype))
        else:
            put(state, path, adjoin.empty_like(like, dtype=entry.properties.dtype))
    _load_state_dict(state, storage_reader)
    return state
