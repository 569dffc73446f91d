"""adjoin.distributed.checkpoint.state_dict_saver: save and async_save: each process writes its own parts, what all have once."""

import concurrent.futures
import enum
import threading

import adjoin

from . import _boxes, _names
from ._meeting import Meeting
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import DefaultSavePlanner, plain
from .stateful import Stateful
from .storage import writer_of

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(enum.Enum):
    """Where a save in the background runs."""

    THREAD = "thread"
    PROCESS = "process"


def _states(state_dict):
    return {
        key: value.state_dict() if isinstance(value, Stateful) and not isinstance(value, adjoin.Tensor) else value
        for key, value in state_dict.items()
    }  # fmt: skip


def _items(flat):
    """{index: (tensor or object)} of what this process has, and what the others need to know of it."""
    values, told = {}, []
    for name, (path, value) in flat.items():
        if not isinstance(value, adjoin.Tensor):
            values[MetadataIndex(name)] = value
            told.append((name, path, None, None, [None]))
            continue
        size, parts = _boxes.own(value)
        properties = TensorProperties.create_from_tensor(value)
        for offsets, part in parts:
            values[MetadataIndex(name, adjoin.Size(offsets))] = part
        told.append((name, path, size, properties, [(o, tuple(p.shape)) for o, p in parts]))
    return values, told


def _planned(everybody, to_lowest):
    """({rank: indices it writes}, the metadata): of what several have, that process writes which has the least so far."""
    entries, paths, holders, load = {}, {}, {}, [0] * len(everybody)
    for rank, told in enumerate(everybody):
        for name, path, size, properties, boxes in told:
            known = entries.setdefault(
                name,
                BytesStorageMetadata() if size is None else TensorStorageMetadata(properties, adjoin.Size(size), []),
            )
            paths[name] = path
            if (
                (size is None) != isinstance(known, BytesStorageMetadata)
                or size is not None
                and tuple(known.size) != tuple(size)
            ):
                raise ValueError(
                    f"save: {name!r} is not the same on all ranks: rank {rank} has {'an object' if size is None else tuple(size)}"
                )
            for box in boxes:
                holders.setdefault((name, box), []).append(rank)
    tasks = [[] for _ in everybody]
    for (name, box), ranks in holders.items():
        cost = 1 if box is None else _bytes(entries[name], box)
        rank = ranks[0] if to_lowest or box is None else min(ranks, key=load.__getitem__)
        load[rank] += cost
        tasks[rank].append(MetadataIndex(name) if box is None else MetadataIndex(name, adjoin.Size(box[0])))
        if box is not None:
            entries[name].chunks.append(ChunkStorageMetadata(adjoin.Size(box[0]), adjoin.Size(box[1])))
    for name, entry in entries.items():
        wrong = isinstance(entry, TensorStorageMetadata) and _boxes.tiles(
            entry.size, [(c.offsets, c.sizes) for c in entry.chunks]
        )
        if wrong:
            raise ValueError(f"save: the parts of {name!r}, which is {tuple(entry.size)}, do not make it: {wrong}")
    return tasks, Metadata(entries, paths, version="1.0.0")


def _bytes(entry, box):
    count = entry.properties.dtype.itemsize
    for n in box[1]:
        count *= n
    return count


def _save(flat, writer, planner, meeting):
    values, told = _items(flat)
    kept = {}

    def planned(everybody):
        tasks, kept["metadata"] = _planned(everybody, planner.to_lowest)
        return tasks, writer.begin()

    def finished(parts):
        kept["metadata"].storage_data = {index: info for part in parts for index, info in part}
        writer.finish(kept["metadata"])
        return kept["metadata"]

    tasks, number = meeting.step("save: the plan", lambda: told, planned)
    items = [(index, values[index]) for index in tasks[meeting.rank]]
    return meeting.step("save: writing", lambda: writer.write(meeting.rank, number, items), finished)


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False,
         use_collectives=True):  # fmt: skip
    """Saves what the processes have together, into the folder ``checkpoint_id``; gives its metadata.

    Each value may have ``state_dict()``. Of a DTensor each process writes its own part. Whoever dies meanwhile: the folder has what it
    had before.
    """
    writer, planner = writer_of(storage_writer, checkpoint_id), plain(planner, DefaultSavePlanner)
    _background.settle()
    return _save(_names.flattened(_states(state_dict)), writer, planner, Meeting(process_group, no_dist))


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older name of save."""
    planner = plain(planner, DefaultSavePlanner)
    meeting = Meeting(process_group, no_dist, coordinator_rank)
    return _save(_names.flattened(_states(state_dict)), writer_of(storage_writer, None), planner, meeting)


class _Background:
    """The save that runs in the background, one at a time."""

    def __init__(self):
        self.running = None

    def settle(self):
        """Waits for it; raises its error, if nobody has asked for it."""
        future, self.running = self.running, None
        if future is not None:
            asked, error = future.asked, future.exception()
            if error is not None and not asked:
                raise error


class _Future(concurrent.futures.Future):
    asked = False

    def result(self, timeout=None):
        """The metadata, as soon as the checkpoint is complete; its error is raised."""
        self.asked = True
        return super().result(timeout)


_background = _Background()


def _snapshot(value, done):
    """A tensor's elements as they are now, on the processor."""
    if id(value) not in done:
        done[id(value)] = value.detach().to("cpu", copy=True), value  # the second keeps the first's id
    return done[id(value)][0]


def async_save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None,
               async_checkpointer_type=AsyncCheckpointerType.THREAD, async_stager=None, no_dist=False,
               use_collectives=True):  # fmt: skip
    """Copies what is to be saved, and saves it in the background; a future of its metadata.

    An error is raised by ``result()``, else by the next save. The next save waits for this one.
    """
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD or async_stager is not None:
        raise NotImplementedError(
            "async_save: a thread of this process writes copies that it has made; leave these arguments out"
        )
    writer, planner = writer_of(storage_writer, checkpoint_id), plain(planner, DefaultSavePlanner)
    _background.settle()
    done, flat = {}, {}
    for name, (path, value) in _names.flattened(_states(state_dict)).items():
        flat[name] = path, _snapshot(value, done) if isinstance(value, adjoin.Tensor) else value
    meeting, future = Meeting(process_group, no_dist), _Future()

    def run():
        try:
            future.set_result(_save(flat, writer, planner, meeting))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, name="adjoin-async-save")
    _background.running = future
    thread.start()
    return future
