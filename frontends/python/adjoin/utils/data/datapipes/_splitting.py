"""adjoin.utils.data.datapipes._splitting: one stream for several readers, several streams in turn."""

import collections
import copy as copying
import warnings

from ._decorator import functional_datapipe
from .datapipe import IterDataPipe


class _Source(IterDataPipe):
    """What the children of one stream share: the stream's iterator and what waits for one of them.

    A round lasts until a child that has begun in it begins again: then all start from the beginning.
    """

    def __init__(self, datapipe, count, buffer_size, name):
        if count < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {count} is found")
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM risk", UserWarning, stacklevel=4
            )
        self.main_datapipe, self.num_instances, self.buffer_size, self.name = datapipe, count, buffer_size, name
        self.round, self._stream = 0, None
        self.restart()

    def restart(self):
        """Forgets what waits, and begins the stream anew with the next example that is asked for."""
        self._stream, self._ended = None, False

    def _next(self):
        """(True, an example), or (False, None) at the end."""
        if self._ended:
            return False, None
        if self._stream is None:
            self._stream = iter(self.main_datapipe)
        try:
            return True, next(self._stream)
        except StopIteration:
            self._ended = True
            return False, None

    def _full(self):
        raise BufferError(f"{self.name}: buffer overflow, buffer size {self.buffer_size} is insufficient")

    def begin(self, child):
        """A child begins: within the round, or the round ends."""
        if child.round == self.round:
            if not self.is_read():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each child "
                    "DataPipe will read from the start again.", UserWarning, stacklevel=4,
                )  # fmt: skip
            self.restart()
            self.round += 1
        child.round = self.round

    def __getstate__(self):
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_stream", "_waiting", "_places", "_begin")}
        return kept if type(self).getstate_hook is None else type(self).getstate_hook(kept)

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.restart()


class _Child(IterDataPipe):
    """One reader of a stream."""

    def __init__(self, source, number):
        self.main_datapipe, self.instance_id, self.round = source, number, None

    def reset(self):
        self.main_datapipe.begin(self)

    def __iter__(self):
        number, reading = self.round, self.main_datapipe.read(self.instance_id)
        while True:
            if self.main_datapipe.round != number:
                raise RuntimeError(
                    "This iterator has been invalidated because another iterator has been created from one of the child DataPipes of "
                    "the same stream"
                )
            try:
                example = next(reading)
            except StopIteration:
                return
            yield example

    def __len__(self):
        return self.main_datapipe.length()


class _Forked(_Source):
    def __init__(self, datapipe, count, buffer_size, copy):
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method `{copy}`: None, 'shallow' and 'deep' are there")
        super().__init__(datapipe, count, buffer_size, "fork")
        self.copy = {None: None, "shallow": copying.copy, "deep": copying.deepcopy}[copy]

    def restart(self):
        super().restart()
        self._waiting, self._begin, self._places = collections.deque(), 0, [0] * self.num_instances

    def read(self, number):
        while True:
            place = self._places[number]
            if place - self._begin == len(self._waiting):
                there, example = self._next()
                if not there:
                    return
                if 0 <= self.buffer_size <= len(self._waiting):
                    self._full()
                self._waiting.append(example)
            example = self._waiting[place - self._begin]
            self._places[number] += 1
            if min(self._places) > self._begin:
                self._waiting.popleft()
                self._begin += 1
            yield self.copy(example) if self.copy else example

    def is_read(self):
        return self._ended and not self._waiting

    def length(self):
        return len(self.main_datapipe)


class _Sorted(_Source):
    def __init__(self, datapipe, count, classifier_fn, drop_none, buffer_size):
        if buffer_size == 0:
            raise ValueError("demux: buffer_size is 0, at least 1 is wanted; -1 means without limit")
        super().__init__(datapipe, count, buffer_size, "demux")
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def restart(self):
        super().restart()
        self._waiting = [collections.deque() for _ in range(self.num_instances)]

    def read(self, number):
        while True:
            if self._waiting[number]:
                yield self._waiting[number].popleft()
                continue
            there, example = self._next()
            if not there:
                return
            kind = self.classifier_fn(example)
            if kind is None and self.drop_none:
                continue
            if kind is None or not 0 <= kind < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {kind} is returned"
                )
            if kind == number:
                yield example
                continue
            if 0 <= self.buffer_size <= sum(map(len, self._waiting)):
                self._full()
            self._waiting[kind].append(example)

    def is_read(self):
        return self._ended and not any(self._waiting)

    def length(self):
        raise TypeError("demux: how many examples go where is known after they were read")


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """``num_instances`` pipes that give the same examples (1: the pipe itself); ``copy`` is None, "shallow" or "deep".

    Between the first and the last reader there are at most ``buffer_size`` examples, -1: without limit.
    """

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        source = _Forked(datapipe, num_instances, buffer_size, copy)
        return [_Child(source, i) for i in range(num_instances)] if num_instances > 1 else datapipe


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """``num_instances`` pipes: an example goes to that of the number that ``classifier_fn`` gives, None is dropped with ``drop_none``."""

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        source = _Sorted(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_Child(source, i) for i in range(num_instances)]


@functional_datapipe("mux")
class Multiplexer(IterDataPipe):
    """An example of each pipe in turn, until one has no more."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __iter__(self):
        for examples in zip(*self.datapipes):
            yield from examples

    def __len__(self):
        return min(map(len, self.datapipes)) * len(self.datapipes)
