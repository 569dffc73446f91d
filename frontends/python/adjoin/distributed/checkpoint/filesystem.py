"""adjoin.distributed.checkpoint.filesystem: a checkpoint as a folder: one file of pieces from each process, and ``.metadata``.

The folder is complete as soon as ``.metadata`` is in it, which is written last and appears whole. A save into a folder that has a
checkpoint writes new files beside the old ones: until its own ``.metadata`` takes the other's place, the old checkpoint loads.
"""

import dataclasses
import io
import os
import pathlib
import re
import uuid

import adjoin

from ..._files import contents
from ...futures import Future
from . import metadata as _metadata
from ._boxes import copied, cut, meeting
from .metadata import BytesStorageMetadata, MetadataIndex, StorageMeta, _StorageInfo, _StoragePrefix  # noqa: F401
from .planner import LoadItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter", "newest"]

_NAME = ".metadata"
_PIECES = re.compile(r"__\d+_(\d+)\.distcp")


def _done(result=None):
    future = Future()
    future.set_result(result)
    return future


class _Folder:
    """Of a reader and of a writer: where the checkpoint lies."""

    checkpoint_id = property(lambda self: self.path)

    def reset(self, checkpoint_id=None):
        """Another save or load begins, perhaps in another folder."""
        if checkpoint_id is not None:
            self.path = pathlib.Path(checkpoint_id)

    def prepare_local_plan(self, plan):
        """The plan as it is."""
        return plan

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether it is the name of a folder."""
        return "://" not in str(checkpoint_id)


def _sync(path):
    """What was renamed in a folder, or written to a file, is on the disk."""
    held = os.open(path, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


class FileSystemWriter(_Folder, StorageWriter):
    """Writes a checkpoint into a folder. ``overwrite=False`` refuses a folder that has one."""

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, per_thread_copy_ahead=10_000_000,
                 cache_staged_state_dict=False, overwrite=True, _extensions=None, serialization_format=None):  # fmt: skip
        if _extensions:
            raise NotImplementedError(
                "FileSystemWriter: extensions that change the bytes are not served; leave them out"
            )
        self.path, self.sync_files, self.overwrite = pathlib.Path(path), sync_files, overwrite

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Nothing: a file is opened when it is written."""

    def prepare_global_plan(self, plans):
        """Each process gets the name of its file."""
        number = self.begin()
        names = [_StoragePrefix(f"__{rank}_{number}") for rank in range(len(plans))]
        return [dataclasses.replace(plan, storage_data=name) for plan, name in zip(plans, names, strict=True)]

    def write_data(self, plan, planner):
        """Writes the items of a plan into the file of this process."""
        items = ((item.index, planner.resolve_data(item)) for item in plan.items)
        return _done(self.write(plan.storage_data.prefix, items) if plan.items else [])

    def begin(self):
        """The coordinator's first step: the folder, and the number that the files of this save have in their names."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _NAME).exists():
            raise RuntimeError(f"FileSystemWriter: {self.path} has a checkpoint already; overwrite=True writes another")
        taken = [int(m[1]) for m in map(_PIECES.fullmatch, os.listdir(self.path)) if m]
        return max(taken, default=-1) + 1

    def write(self, prefix, items):
        """Writes pieces; a WriteResult of each. ``items``: (index, tensor or object)."""
        name, found = f"{prefix}.distcp", []
        if not items:
            return found
        with open(self.path / name, "xb") as file:
            for index, value in items:
                begin = file.tell()
                if isinstance(value, io.BytesIO):  # of a planner that has made the bytes
                    file.write(value.getbuffer())
                else:
                    adjoin.save(value.cpu().contiguous() if isinstance(value, adjoin.Tensor) else value, _Counted(file))
                size = file.tell() - begin
                found.append(WriteResult(index, size, _StorageInfo(name, begin, size)))
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        return found

    def storage_meta(self):
        """Where it is, for planners."""
        return StorageMeta(checkpoint_id=str(self.path))

    def finish(self, metadata, results):
        """The coordinator's last step: from here on the checkpoint is there."""
        metadata.storage_data = {r.index: r.storage_data for part in results for r in part}
        if self.sync_files:
            _sync(self.path)
        metadata.storage_meta = StorageMeta(str(self.path), str(uuid.uuid4()))
        beside = self.path / f"{_NAME}.tmp"
        with open(beside, "wb") as file:
            file.write(_metadata.written(metadata))
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        os.replace(beside, self.path / _NAME)
        if self.sync_files:
            _sync(self.path)
        kept = {info.relative_path for info in metadata.storage_data.values()}
        for name in os.listdir(self.path):  # of saves that ended early, and of the checkpoint before
            if _PIECES.fullmatch(name) and name not in kept:
                os.unlink(self.path / name)


class _Counted:
    """Gives the writer of tensors a file that begins where it stands."""

    def __init__(self, file):
        self.write, self.flush = file.write, file.flush


class _Slice:
    def __init__(self, data):
        self._data = data

    def read(self):
        return self._data


class FileSystemReader(_Folder, StorageReader):
    """Reads a checkpoint of a folder, also one that PyTorch has written."""

    def __init__(self, path, _extension_registry=None):
        self.path, self._files, self._metadata = pathlib.Path(path), {}, None

    def read_metadata(self, *args, **kwargs):
        """What the checkpoint holds."""
        try:
            found = _metadata.read(self.path / _NAME)
        except FileNotFoundError:
            beside = newest(self.path.parent) if self.path.parent.is_dir() else None
            raise FileNotFoundError(
                f"checkpoint: {self.path} has no {_NAME}: there is none, or its save did not end"
                + (f"; the newest complete one beside it is {beside}" if beside else "")
            ) from None
        found.storage_meta = found.storage_meta or StorageMeta()
        found.storage_meta.load_id = str(uuid.uuid4())
        return found

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Takes what the checkpoint holds."""
        self._metadata = metadata

    def prepare_global_plan(self, plans):
        """The plans as they are."""
        return plans

    def read_data(self, plan, planner):
        """Reads the items of a plan; the planner is asked for each place, and told when that is filled."""
        held = None, None
        for item in plan.items:
            info = self._metadata.storage_data[
                _index(self._metadata, item.storage_index.fqn, item.storage_index.offset or ())
            ]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(self.stored(info)))
                continue
            if held[0] is not info:  # the items of a piece stand together
                held = info, self.piece(info)
            source = cut(held[1], list(zip(item.storage_offsets, item.lengths, strict=True)))
            target = planner.resolve_tensor(item)
            if tuple(target.shape) != tuple(item.lengths):
                raise ValueError(
                    f"load: {type(planner).__name__}.resolve_tensor gave {tuple(target.shape)} for {item.dest_index.fqn}, of which "
                    f"{tuple(item.lengths)} is read"
                )
            copied(target, source)
            planner.commit_tensor(item, target)
        self.end()
        return _done()

    def piece(self, info):
        """A stored tensor or object."""
        return adjoin.load(_Slice(self.stored(info)), map_location="cpu", weights_only=True)

    def stored(self, info):
        """The bytes of a piece."""
        if info.transform_descriptors:
            raise NotImplementedError(
                f"checkpoint: {info.relative_path} was written through {info.transform_descriptors}, which is not served; save "
                "without extensions"
            )
        if info.relative_path not in self._files:
            name = pathlib.PurePosixPath(info.relative_path)
            if name.is_absolute() or ".." in name.parts:
                raise ValueError(f"checkpoint: {_NAME} names the file {name}, which is outside of {self.path}")
            self._files[info.relative_path] = contents(self.path / name)
        data = self._files[info.relative_path][info.offset : info.offset + info.length]
        if len(data) != info.length:
            raise ValueError(f"checkpoint: {self.path / info.relative_path} is too short; the file is damaged")
        return data

    def read(self, found, name, size, boxes):
        """Fills tensors with their part of a stored one. ``boxes``: (offsets, tensor) of each."""
        kept = found.state_dict_metadata[name]
        for chunk in kept.chunks:
            meets = [(t, m) for o, t in boxes if (m := meeting(chunk.offsets, chunk.sizes, o, t.shape)) is not None]
            if not meets and not (not kept.size or 0 in kept.size):
                continue
            stored = self.piece(found.storage_data[_index(found, name, chunk.offsets)])
            if tuple(stored.shape) != tuple(chunk.sizes):
                raise ValueError(
                    f"checkpoint: {name}: the part at {tuple(chunk.offsets)} is said to be {tuple(chunk.sizes)}, the file has "
                    f"{tuple(stored.shape)}; the checkpoint is damaged"
                )
            for target, ranges in meets:
                source = cut(stored, [(begin, n) for begin, _, n in ranges])
                copied(cut(target, [(begin, n) for _, begin, n in ranges]), source)

    def read_object(self, found, name):
        """A stored object."""
        return self.piece(found.storage_data[MetadataIndex(name)])

    def end(self):
        """Lets the files go."""
        self._files.clear()


def _index(found, name, offsets):
    """The piece's key: tensors of no dimension, and older files, have it without a place."""
    for key in (MetadataIndex(name, adjoin.Size(offsets)), MetadataIndex(name)):
        if key in found.storage_data:
            return key
    raise ValueError(f"checkpoint: {_NAME} does not say where the part of {name!r} at {tuple(offsets)} lies")


def _order(path):
    number = re.search(r"(\d+)\D*$", path.name)
    return int(number[1]) if number else -1, (path / _NAME).stat().st_mtime_ns


def newest(directory):
    """The newest complete checkpoint among the folders of a directory, or None: that with the highest number in its name."""
    directory = pathlib.Path(directory)
    complete = [path for path in directory.iterdir() if (path / _NAME).is_file()]
    return max(complete, key=_order, default=None)
