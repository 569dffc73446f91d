"""adjoin.distributed.checkpoint.storage: where checkpoints lie: a folder that all processes reach, or what a class of one's own makes of it."""

import abc
import dataclasses
import inspect

from .metadata import MetadataIndex

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclasses.dataclass(frozen=True)
class WriteResult:
    """A piece that was written, and where: the latter is the storage's own, and goes into the metadata."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: object


class StorageWriter(abc.ABC):
    """Writes a checkpoint. A save calls reset, set_up_storage_writer, prepare_local_plan and write_data in each process, in the
    coordinator prepare_global_plan between the last two, and finish at the end."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """A save begins; of ``checkpoint_id``, if that was given."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Who takes ``kwargs`` is told its rank, too."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """The plan of this process; ``storage_data`` of a plan is the storage's own."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """The plans of all processes."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """Writes what ``planner.resolve_data(item)`` gives for each of ``plan.items``; a Future of a list of WriteResult."""

    @abc.abstractmethod
    def finish(self, metadata, results):
        """Everything is written: from here on the checkpoint is there. ``results``: a list of each process."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether checkpoints of such a name can lie here."""

    def storage_meta(self):
        """A StorageMeta for planners, or None."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint. A load calls reset, read_metadata, set_up_storage_reader, prepare_local_plan and read_data in each process, in
    the coordinator prepare_global_plan between the last two."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """A load begins; of ``checkpoint_id``, if that was given."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """The Metadata that was given to finish()."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Who takes ``kwargs`` is told its rank, too."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """The plan of this process."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """The plans of all processes."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """Reads each of ``plan.items``: ``planner.load_bytes`` takes an object, ``resolve_tensor`` gives the place of a tensor, and
        ``commit_tensor`` is told when that is filled. A Future of None."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether checkpoints of such a name can lie here."""


def set_up(function, *args, rank):
    """Calls a storage's set_up_...; the rank is for those that take it."""
    more = {"rank": rank, "use_collectives": True} if "kwargs" in inspect.signature(function).parameters else {}
    function(*args, **more)


def writer_of(storage, checkpoint_id=None):
    """The one that was given, or that of a folder."""
    from .filesystem import FileSystemWriter

    return _of(storage, checkpoint_id, FileSystemWriter, "storage_writer", StorageWriter)


def reader_of(storage, checkpoint_id=None):
    """The one that was given, or that of a folder."""
    from .filesystem import FileSystemReader

    return _of(storage, checkpoint_id, FileSystemReader, "storage_reader", StorageReader)


def _of(storage, checkpoint_id, kind, word, wanted):
    if storage is None:
        if checkpoint_id is None:
            raise RuntimeError(f"checkpoint: pass checkpoint_id=FOLDER, or {word}={kind.__name__}(FOLDER)")
        return kind(checkpoint_id)
    if not isinstance(storage, wanted):
        raise TypeError(f"checkpoint: {word} is a {type(storage).__name__}; wanted is a {wanted.__name__}")
    storage.reset(checkpoint_id)
    return storage
