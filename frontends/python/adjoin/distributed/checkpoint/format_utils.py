"""adjoin.distributed.checkpoint.format_utils: a checkpoint of a folder as one file, and back."""

import adjoin

from .filesystem import FileSystemReader
from .planner import _EmptyStateDictLoadPlanner  # noqa: F401
from .state_dict_loader import _load_state_dict, whole  # noqa: F401
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """One file of a folder's checkpoint; a name that ends in .safetensors makes one of that kind, of its tensors."""
    state = whole(FileSystemReader(dcp_checkpoint_dir))
    if str(torch_save_path).endswith(".safetensors"):
        from ... import safetensors
        from ._names import flattened

        flat = {name: value for name, (_, value) in flattened(state).items() if isinstance(value, adjoin.Tensor)}
        safetensors.save_file(flat, torch_save_path)
    else:
        adjoin.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """A folder's checkpoint of what one file has."""
    save(adjoin.load(torch_save_path, weights_only=True), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
