"""adjoin.monitor: numbers that a program gathers on its way, and those who want to hear of them."""

import contextlib
import dataclasses
import datetime
import enum
import threading
import time

__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "log_event", "register_event_handler",
    "unregister_event_handler",
]  # fmt: skip


class Aggregation(enum.Enum):
    """What becomes of the numbers that a Stat was given."""

    VALUE, MEAN, COUNT, SUM, MAX, MIN = range(6)


@dataclasses.dataclass
class Event:
    """Something that happened: its name, when, and a dictionary of texts and numbers."""

    name: str
    timestamp: datetime.datetime
    data: dict


class EventHandlerHandle:
    """What register_event_handler() gives."""

    def __init__(self, handler):
        self.handler = handler


_handlers, _lock = [], threading.RLock()


def register_event_handler(callback):
    """From now on ``callback(event)`` is called for each event."""
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler):
    """The handler of the handle is called no more."""
    with _lock:
        _handlers.remove(handler)


def log_event(event):
    """Gives the event to all who are registered."""
    with _lock:
        handles = list(_handlers)
    for handle in handles:
        handle.handler(event)


_AGGREGATES = {
    Aggregation.VALUE: lambda values: values[-1],
    Aggregation.MEAN: lambda values: sum(values) / len(values),
    Aggregation.COUNT: len,
    Aggregation.SUM: sum,
    Aggregation.MAX: max,
    Aggregation.MIN: min,
}


class Stat:
    """Gathers numbers: after ``window_size`` (a timedelta), or ``max_samples`` of them, an event tells the aggregates, and a new window
    begins. More than ``max_samples`` in a window are left out of it."""

    def __init__(self, name, aggregations, window_size, max_samples=None):
        if not aggregations:
            raise ValueError("Stat: no aggregation is given; name some of Aggregation")
        self.name, self.aggregations = name, tuple(Aggregation(one) for one in aggregations)
        self._window, self._most = window_size.total_seconds(), max_samples
        self._values, self._last, self._lock, self._begin = [], {}, threading.Lock(), time.monotonic()

    def add(self, v):
        """Takes a number."""
        event = self._ended()
        with self._lock:
            self._values.append(float(v))
        for one in (event, self._ended()):
            if one is not None:
                log_event(one)

    @property
    def count(self):
        """How many numbers are in the window."""
        self._tell()
        return len(self._values)

    def get(self):
        """The aggregates of the window that ended last, by Aggregation."""
        self._tell()
        return dict(self._last)

    def _tell(self):
        event = self._ended()
        if event is not None:
            log_event(event)

    def _ended(self):
        """The event of a window that is over, or None."""
        with self._lock:
            full = self._most is not None and len(self._values) >= self._most
            if not full and time.monotonic() - self._begin < self._window:
                return None
            values, self._values, self._begin = self._values, [], time.monotonic()
            self._last = {one: float(_AGGREGATES[one](values)) for one in self.aggregations} if values else {}
            data = {f"{self.name}.{one.name.lower()}": value for one, value in self._last.items()}
        return Event("torch.monitor.Stat", datetime.datetime.now(), data) if data else None


class TensorboardEventHandler:
    """A handler that writes the numbers of Stats as scalars of a SummaryWriter."""

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == "torch.monitor.Stat":
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """Counts how often and how long a program waits within ``with counter.guard():``."""

    def __init__(self, key):
        self.key, self.calls, self.seconds, self._lock = key, 0, 0.0, threading.Lock()

    @contextlib.contextmanager
    def guard(self):
        begin = time.monotonic()
        try:
            yield self
        finally:
            with self._lock:
                self.calls, self.seconds = self.calls + 1, self.seconds + time.monotonic() - begin
