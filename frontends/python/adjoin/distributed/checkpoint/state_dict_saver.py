"""adjoin.distributed.checkpoint.state_dict_saver: save and async_save: each process writes its own parts, what all have once."""

import concurrent.futures
import enum
import threading

import adjoin

from . import _names, _planning
from ._meeting import Meeting
from .planner import DefaultSavePlanner, is_plain, known_planner
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


def _save(state, writer, planner, meeting):
    """By what the processes have, or, where somebody has written a planner, by what its methods say."""
    kept = {}

    def planned(everybody):
        if is_plain(planner):
            tasks, kept["metadata"] = _planning.planned(everybody, planner.dedup_save_to_lowest_rank)
        else:
            tasks, kept["metadata"] = planner.create_global_plan(everybody)
        return tasks, writer.begin()

    def finished(parts):
        kept["metadata"].storage_data = {index: info for part in parts for index, info in part}
        writer.finish(kept["metadata"])
        return kept["metadata"]

    if is_plain(planner):
        values, told = _planning.items(_names.flattened(state))
        tasks, number = meeting.step("save: the plan", lambda: told, planned)
        items = [(index, values[index]) for index in tasks[meeting.rank]]
        return meeting.step("save: writing", lambda: writer.write(meeting.rank, number, items), finished)

    def local():
        planner.set_up_planner(state, writer.storage_meta(), meeting.rank == meeting.coordinator)
        return planner.create_local_plan()

    def written():
        items = planner.finish_plan(plans[meeting.rank]).items
        return writer.write(meeting.rank, number, ((i.index, planner.resolve_data(i)) for i in items)) if items else []

    plans, number = meeting.step("save: the plan", local, planned)
    return meeting.step("save: writing", written, finished)


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False,
         use_collectives=True):  # fmt: skip
    """Saves what the processes have together, into the folder ``checkpoint_id``; gives its metadata.

    Each value may have ``state_dict()``. Of a DTensor each process writes its own part. Whoever dies meanwhile: the folder has what it
    had before.
    """
    writer, planner = writer_of(storage_writer, checkpoint_id), known_planner(planner, DefaultSavePlanner)
    _background.settle()
    return _save(_states(state_dict), writer, planner, Meeting(process_group, no_dist))


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older name of save."""
    planner = known_planner(planner, DefaultSavePlanner)
    meeting = Meeting(process_group, no_dist, coordinator_rank)
    return _save(_states(state_dict), writer_of(storage_writer, None), planner, meeting)


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
    writer, planner = writer_of(storage_writer, checkpoint_id), known_planner(planner, DefaultSavePlanner)
    _background.settle()
    done, copied = {}, {}
    for path, value in _names.flattened(_states(state_dict)).values():
        _names.put(copied, path, _snapshot(value, done) if isinstance(value, adjoin.Tensor) else value)
    meeting, future = Meeting(process_group, no_dist), _Future()

    def run():
        try:
            future.set_result(_save(copied, writer, planner, meeting))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, name="adjoin-async-save")
    _background.running = future
    thread.start()
    return future
