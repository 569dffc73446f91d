"""adjoin.distributed.checkpoint: checkpoints that several processes write together, and that any number of them reads.

A checkpoint is a folder in PyTorch's layout. It is there when it is complete; until then the one before it is.
"""

from .api import CheckpointException  # noqa: F401
from .filesystem import FileSystemReader, FileSystemWriter, newest  # noqa: F401
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata  # noqa: F401
from .optimizer import load_sharded_optimizer_state_dict  # noqa: F401
from .planner import (  # noqa: F401
    DefaultLoadPlanner,
    DefaultSavePlanner,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from .state_dict_loader import load, load_state_dict  # noqa: F401
from .state_dict_saver import async_save, save, save_state_dict  # noqa: F401
from .storage import StorageReader, StorageWriter, WriteResult  # noqa: F401
