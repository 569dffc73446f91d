"""adjoin.distributed.checkpoint._meeting: what the processes tell each other of a save or a load.

By the store, not by collectives: a save in the background must not stand between the collectives of a training step.
"""

import contextlib
import pickle
import time

from .. import _group
from .._names import DistBackendError, DistStoreError
from .api import CheckpointException

_LOOK = 1  # seconds: how often who waits asks whether the other one has ended


@contextlib.contextmanager
def _lost():
    try:
        yield
    except DistStoreError as error:
        raise DistBackendError(f"checkpoint: waiting for the other processes: {error}") from None


class Meeting:
    """The processes of a save or a load. Each makes one in the same order; the coordinator is the group's first."""

    def __init__(self, group=None, alone=False, coordinator=0):
        self.rank, self.size, self.coordinator, self._round = 0, 1, coordinator, 0
        if alone or not _group.is_initialized():
            self.coordinator = 0
            return
        group = _group.of(group)
        self.rank, self.size = group.rank(), group.size()
        world, key = _group.here().world, tuple(group._ranks)
        world.meetings[key] = number = world.meetings.get(key, 0) + 1
        self._store = world.store
        self._seconds = group._timeout.total_seconds() if hasattr(group._timeout, "total_seconds") else group._timeout
        self._ranks, self._world = group._ranks, world.name
        self._name = f"checkpoint/{'-'.join(map(str, group._ranks))}/{number}"

    def _get(self, key, rank):
        """What that one sets."""
        key, until = f"{self._name}/{self._round}/{key}", time.monotonic() + self._seconds
        with _lost():
            while not self._came(key, rank, until - time.monotonic()):
                pass
            value = pickle.loads(self._store.get(key))
            self._store.delete_key(key)
        return value

    def _set(self, key, value):
        with _lost():
            self._store.set(f"{self._name}/{self._round}/{key}", value)

    def _came(self, key, rank, seconds):
        try:
            self._store.wait([key], max(0, min(seconds, _LOOK)))
            return True
        except DistStoreError as error:
            if "has no key" not in str(error) or seconds < _LOOK:
                raise
        left = f"{self._world}/left/{self._ranks[rank]}"  # the control server sets it
        if self._store.underlying_store.check([left]) and not self._store.check([key]):
            raise DistBackendError(
                f"checkpoint: rank {self._ranks[rank]} has ended its part (destroy_process_group, or the end of its program), and "
                "does not take part: every process must make the same saves and loads"
            )
        return False

    def step(self, what, mine, joined):
        """Each process calls mine(), the coordinator joined([results of all]), all get its result.

        An error in one of them is raised in all, as a CheckpointException.
        """
        result, error = None, None
        try:
            result = mine()
        except Exception as e:
            error = e
        if self.size == 1:
            if error is not None:
                raise error
            return joined([result])
        self._round += 1
        try:
            packed = _packed(result, error)
        except TypeError as e:
            error, packed = e, _packed(None, e)
        self._set(f"from/{self.rank}", packed)
        if self.rank == self.coordinator:
            self._lead(what, joined)
        told, errors = self._get(f"to/{self.rank}", self.coordinator)
        if errors:
            raise CheckpointException(what, errors) from error
        return told

    def _lead(self, what, joined):
        came = [self._get(f"from/{rank}", rank) for rank in range(self.size)]
        errors, told = {rank: e for rank, (_, e) in enumerate(came) if e is not None}, None
        if not errors:
            try:
                told = joined([r for r, _ in came])
            except Exception as e:
                errors = {self.rank: e}
        try:
            packed = _packed(told, errors)
        except TypeError as e:
            packed = _packed(None, {self.rank: e})
        for rank in range(self.size):
            self._set(f"to/{rank}", packed)


def _packed(result, error):
    try:
        packed = pickle.dumps((result, error))
        pickle.loads(packed)
        return packed
    except Exception as cause:  # an error that does not pickle is told by its text
        if error is None or error == {}:
            raise TypeError(f"checkpoint: what a process tells the others does not pickle: {cause}") from None
        text = (
            {r: RuntimeError(str(e)) for r, e in error.items()} if isinstance(error, dict) else RuntimeError(str(error))
        )
        return pickle.dumps((None, text))
