"""adjoin.distributed.checkpoint.state_dict_loader: load: each process reads its own part, whoever has saved it."""

import adjoin

from . import _boxes, _names
from ._meeting import Meeting
from .filesystem import FileSystemReader
from .metadata import BytesStorageMetadata
from .planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner, is_plain, known_planner
from .state_dict_saver import _background
from .stateful import Stateful
from .storage import reader_of, set_up

__all__ = ["load", "load_state_dict"]


def _is_stateful(value):
    return isinstance(value, Stateful) and not isinstance(value, adjoin.Tensor)


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Fills a state with what the folder ``checkpoint_id`` has of it: tensors in place, other values in their places.

    Values with ``load_state_dict`` are given their state. The processes need not be as many as those that saved, nor tensors be cut as
    they were.
    """
    reader, planner = reader_of(storage_reader, checkpoint_id), known_planner(planner, DefaultLoadPlanner)
    _background.settle()
    state = {key: value.state_dict() if _is_stateful(value) else value for key, value in state_dict.items()}
    _load_state_dict(state, reader, process_group, no_dist=no_dist, planner=planner)
    for key, value in list(state_dict.items()):
        if _is_stateful(value):
            value.load_state_dict(state[key])
        else:
            state_dict[key] = state[key]
    if isinstance(planner, _EmptyStateDictLoadPlanner):
        state_dict.update(state)


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older name of load: of a state alone, without objects that have one."""
    _load_state_dict(state_dict, reader_of(storage_reader), process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    planner = known_planner(planner, DefaultLoadPlanner)
    meeting = Meeting(process_group, no_dist, coordinator_rank)
    if is_plain(planner) and type(storage_reader) is FileSystemReader:
        meeting.step("load", lambda: _read(state_dict, storage_reader, planner), lambda results: None)
        return

    def local():
        leads, found = meeting.rank == meeting.coordinator, storage_reader.read_metadata()
        planner.set_up_planner(state_dict, found, leads)
        set_up(storage_reader.set_up_storage_reader, found, leads, rank=meeting.rank)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def planned(everybody):
        return storage_reader.prepare_global_plan(planner.create_global_plan(everybody))

    def read():
        storage_reader.read_data(planner.finish_plan(plan), planner).wait()

    plan = meeting.step("load: the plan", local, planned)[meeting.rank]
    meeting.step("load", read, lambda results: None)


def _read(state, reader, planner):
    found = reader.read_metadata()
    if isinstance(planner, _EmptyStateDictLoadPlanner):
        planner.make(state, found)
    names = _names.known(state, found.state_dict_metadata) if planner.flatten_state_dict else _names.flat(state)
    missing = sorted(names.keys() - found.state_dict_metadata.keys())
    if missing and not planner.allow_partial_load:
        raise RuntimeError(
            f"Missing key in checkpoint state_dict: {', '.join(missing[:20])}; {reader.path} has "
            f"{', '.join(sorted(found.state_dict_metadata)[:20])}. allow_partial_load=True keeps what is there"
        )
    for name, (path, value) in names.items():
        if name not in missing:
            _fill(state, reader, found, name, path, value)
    reader.end()


def _fill(state, reader, found, name, path, value):
    entry = found.state_dict_metadata[name]
    if isinstance(entry, BytesStorageMetadata):
        _names.put(state, path, reader.read_object(found, name))
        return
    if not isinstance(value, adjoin.Tensor):
        value = adjoin.empty(tuple(entry.size), dtype=entry.properties.dtype)
        _names.put(state, path, value)
    size, boxes = _boxes.own(value)
    if tuple(size) != tuple(entry.size):
        raise ValueError(f"Size mismatch between saved {tuple(entry.size)} and current: {tuple(size)} for {name}")
    reader.read(found, name, size, boxes)


def whole(reader, keys=None):
    """The whole state of a checkpoint, in this process."""
    state = {}
    _load_state_dict(state, reader, no_dist=True, planner=_EmptyStateDictLoadPlanner(keys))
    return state
