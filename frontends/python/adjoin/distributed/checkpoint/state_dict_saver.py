"""adjoin.distributed.checkpoint.state_dict_saver: save and async_save: each process writes its own parts, what all have once."""

import collections.abc
import concurrent.futures
import copy
import enum
import threading

import adjoin

from . import _names, _planning
from ._meeting import Meeting
from .filesystem import FileSystemWriter
from .planner import DefaultSavePlanner, is_plain, known_planner
from .stateful import Stateful
from .storage import set_up, writer_of

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
    """By what the processes have, or, where somebody has written a planner or a writer, by what its methods say."""
    kept = {}

    def finished(results):
        writer.finish(kept["metadata"], results)
        return kept["metadata"]

    if is_plain(planner) and type(writer) is FileSystemWriter:
        named = _names.flattened if planner.flatten_state_dict else _names.flat
        values, told = _planning.items(named(state))

        def shared(everybody):
            tasks, kept["metadata"] = _planning.planned(everybody, planner.dedup_save_to_lowest_rank)
            if not planner.flatten_state_dict:
                kept["metadata"].planner_data = None
            return tasks, writer.begin()

        tasks, number = meeting.step("save: the plan", lambda: told, shared)
        items = [(index, values[index]) for index in tasks[meeting.rank]]
        return meeting.step("save: writing", lambda: writer.write(f"__{meeting.rank}_{number}", items), finished)

    def local():
        leads = meeting.rank == meeting.coordinator
        planner.set_up_planner(state, writer.storage_meta(), leads)
        set_up(writer.set_up_storage_writer, leads, rank=meeting.rank)
        return writer.prepare_local_plan(planner.create_local_plan())

    def planned(everybody):
        plans, kept["metadata"] = planner.create_global_plan(everybody)
        return writer.prepare_global_plan(plans)

    plans = meeting.step("save: the plan", local, planned)
    plan = plans[meeting.rank]
    return meeting.step("save: writing", lambda: writer.write_data(planner.finish_plan(plan), planner).wait(), finished)


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
    return _save(_states(state_dict), writer_of(storage_writer), planner, meeting)


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
    """The same state, its tensors as they are now, on the processor."""
    if isinstance(value, adjoin.Tensor):
        if id(value) not in done:
            done[id(value)] = value.detach().to("cpu", copy=True), value  # the second keeps the first's id
        return done[id(value)][0]
    if isinstance(value, collections.abc.Mapping):
        made = copy.copy(value) if isinstance(value, dict) else {}
        made.update((key, _snapshot(v, done)) for key, v in value.items())
        return made
    if type(value) in (list, tuple):
        return type(value)(_snapshot(v, done) for v in value)
    return value


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
    copied = _snapshot(_states(state_dict), {})
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
