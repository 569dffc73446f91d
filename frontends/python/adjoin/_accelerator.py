"""adjoin._accelerator: streams, events and graphs of any device that a plugin provides.

`adjoin.cuda`, `adjoin.hip`, `adjoin.cpu` and what `adjoin.get_device_module` makes for other devices are
these with a name filled in, and `_device_modules`. Nothing here knows a vendor: what a device lacks, its plugin says.
"""

import contextlib
import importlib
import os
import sys
import threading
import time
import types

from . import _C

_HOST_MEMORY = 1 << 0
_POOL = 32  # streams of a device and priority; they live as long as the process, as blocks remember them


class Stream:
    """An order of work on a device. As a context manager: the current stream of its device."""

    _kind = None  # the device's name in a device's own module
    _pool = {}  # noqa: RUF012  (shared on purpose)

    def __init__(self, device=None, priority=0, *, stream_ptr=None, **_):
        self.device = _device(self._kind, device)
        self.priority = priority
        self._before = []
        self._handle = self._pooled() if stream_ptr is None else stream_ptr

    def _pooled(self):
        key = (self.device.type, self.device.index or 0, self.priority)
        made = Stream._pool.setdefault(key, [0])  # how many were given out, and the handles
        if len(made) <= _POOL:
            made.append(_C.stream_new(self.device, self.priority))
        made[0] += 1
        return made[1 + (made[0] - 1) % (len(made) - 1)]

    @property
    def device_index(self):
        """Which device of its kind."""
        return self.device.index or 0

    @property
    def native_handle(self):
        """The vendor's handle as a number; 0 is the default stream."""
        return self._handle

    cuda_stream = stream_id = native_handle

    def query(self):
        """Whether everything on it has finished."""
        return _C.stream_query(self.device, self._handle)

    def synchronize(self):
        """Waits until everything on it has finished."""
        _C.stream_sync(self.device, self._handle)

    def wait_event(self, event):
        """What comes later on this stream waits for an event."""
        event.wait(self)

    def wait_stream(self, stream):
        """What comes later on this stream waits for what is on another one now."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """An event that passes when everything so far has finished."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        self._before.append(_C.stream_current(self.device))
        _C.stream_set(self.device, self._handle)
        return self

    def __exit__(self, *_):
        _C.stream_set(self.device, self._before.pop())

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device, self._handle) == (other.device, other._handle)

    def __hash__(self):
        return hash((self.device, self._handle))

    def __repr__(self):
        return f"<adjoin.Stream device={self.device} native_handle={self._handle:#x}>"


class Event:
    """A mark on a stream that passes when the work before it has finished."""

    _kind = None

    def __init__(self, device=None, enable_timing=False, blocking=False, interprocess=False, **_):
        if interprocess:
            raise NotImplementedError("Event: events between processes are not offered; interprocess=False is")
        self.device = None if device is None else _device(self._kind, device)
        self._timed, self._handle, self._host_time = enable_timing, 0, None

    def record(self, stream=None):
        """Puts the mark behind what is on the stream now."""
        stream = _current_stream(self._kind, self.device) if stream is None else stream
        if self._handle == 0:
            self.device = stream.device
            self._handle = _C.event_new(self.device)
        elif stream.device != self.device:
            raise RuntimeError(f"Event.record: the event belongs to {self.device}, the stream to {stream.device}")
        if self._handle == 0:
            _C.stream_sync(self.device, stream._handle)
            self._host_time = time.perf_counter()
        else:
            _C.event_record(self.device, self._handle, stream._handle)

    def wait(self, stream=None):
        """What comes later on the stream waits for the mark."""
        stream = _current_stream(self._kind, self.device) if stream is None else stream
        if self._handle:
            _C.stream_wait(stream.device, stream._handle, self._handle)

    def query(self):
        """Whether the mark has passed."""
        return self._handle == 0 or _C.event_query(self.device, self._handle)

    def synchronize(self):
        """Waits until the mark has passed."""
        if self._handle:
            _C.event_sync(self.device, self._handle)

    def elapsed_time(self, end_event):
        """Milliseconds from this mark to another one."""
        if not (self._timed and end_event._timed):
            raise ValueError("Event.elapsed_time: both events must be made with enable_timing=True")
        if self._handle and end_event._handle:
            return _C.event_elapsed(self.device, self._handle, end_event._handle)
        if self._host_time is None or end_event._host_time is None:
            raise ValueError("Event.elapsed_time: both events must be recorded first")
        return (end_event._host_time - self._host_time) * 1e3

    def __del__(self):
        if getattr(self, "_handle", 0) and not sys.is_finalizing():
            with contextlib.suppress(RuntimeError):
                _C.event_free(self.device, self._handle)

    def __repr__(self):
        return f"<adjoin.Event device={self.device} native_handle={self._handle:#x}>"


captures = []  # (thread, device) of each that has begun and not ended


def kind_of_an_index():
    """The kind of devices that a bare index means, as in ``x.to(0)``: the accelerator that is there, or cuda."""
    from . import accelerator

    return accelerator.current_accelerator().type if accelerator.is_available() else "cuda"


def is_captured(device):
    """Whether this thread captures a graph on the device."""
    return (threading.get_ident(), device) in captures


_streams = []  # (device, handle) of the streams that capture now


def is_stream_captured(stream):
    """Whether a capture has begun on the stream and not ended."""
    return (stream.device, stream._handle) in _streams


class GraphPool:
    """Memory for several graphs; the first that is captured with it makes it."""

    def __init__(self):
        self._graph = None


class Graph:
    """Work that was captured once and is replayed as one piece, on the same memory.

    What it takes while it is captured comes from memory of its own, which lives as long as the graph; another
    graph that never runs at the same time may share it: capture_begin(pool=first.pool()). Random numbers are
    drawn anew at each replay, as the same calls would draw them without a graph.
    """

    _kind = None

    def __init__(self, keep_graph=False):
        self._stream = self._handle = self._inside = self._mark = self._pool = None

    def capture_begin(self, pool=None, capture_error_mode=None, device=None):
        """What follows on this thread is recorded instead of run."""
        device = _device(self._kind, device)
        if self._stream is None:
            handle = _C.stream_new(device)
            self._stream = _stream_class(self._kind)(device, stream_ptr=handle)
        self.reset()
        self._pool = pool if isinstance(pool, GraphPool) else None
        _C.capture_begin(device, self._stream._handle, self._pool._graph if self._pool else pool)
        self._mark = threading.get_ident(), device
        captures.append(self._mark)
        _streams.append((device, self._stream._handle))
        self._inside = self._stream.__enter__()

    def capture_end(self):
        """Ends the recording and makes the graph ready to be replayed."""
        self._inside = self._stream.__exit__()
        if self._mark in captures:
            captures.remove(self._mark)
        if (place := (self._stream.device, self._stream._handle)) in _streams:
            _streams.remove(place)
        self._handle = _C.capture_end(self._stream.device, self._stream._handle)
        if self._pool and self._pool._graph is None:
            self._pool._graph = self._handle

    def pool(self):
        """The graph's memory, for capture_begin(pool=) of another one."""
        if not self._handle:
            raise RuntimeError("Graph.pool: nothing was captured yet")
        return self._handle

    def replay(self):
        """Runs it on the current stream."""
        if not self._handle:
            raise RuntimeError("Graph.replay: nothing was captured yet")
        _C.graph_launch(self._handle, _C.stream_current(self._stream.device))

    def register_generator_state(self, generator):
        """Nothing: a generator is the graph's as soon as it draws for it."""

    def reset(self):
        """Forgets what was captured."""
        self._handle = None


@contextlib.contextmanager
def _capture(graph, pool=None, stream=None, capture_error_mode=None):
    """What the with statement does on the device becomes the graph."""
    graph.capture_begin(pool, capture_error_mode, None if stream is None else stream.device)
    try:
        yield graph
    finally:
        graph.capture_end()


def _device(kind, device):
    """The device that a caller means: with an index, of this kind unless it says another one."""
    if isinstance(device, int):
        if device < 0:
            device = None
        else:
            return _C.device(kind or _accelerator(), device)
    device = _C.device(kind or _accelerator()) if device is None else _C.device(device)
    if kind and device.type != kind:
        raise ValueError(f"{kind}: wanted a {kind} device, not {device}")
    return device if device.index is not None else _C.device(device.type, _C.current_index(device))


def _stream_class(kind):
    return sys.modules[_module_name(kind)].Stream if kind and _module_name(kind) in sys.modules else Stream


def _current_stream(kind, device=None):
    device = _device(kind, device)
    return _stream_class(kind)(device, stream_ptr=_C.stream_current(device))


def _module_name(kind):
    return f"{__package__}.{kind}"


def _flags(kind):
    return _C.device_props(kind)["flags"]


_asked = []  # the accelerator, once it is known


def _accelerator():
    """The name of the first device of a plugin that is not the host, if there is one."""
    if not _asked:
        for name in _candidates():
            with contextlib.suppress(RuntimeError):
                if _C.device_count(name) > 0 and not _flags(name) & _HOST_MEMORY:
                    _asked.append(name)
                    break
    if not _asked:
        raise RuntimeError("accelerator: there is none; `adjoin plugins list` says what was found and why not")
    return _asked[0]


def _candidates():
    """ADJOIN_ACCELERATOR, else the devices of the plugins that do not only imitate one."""
    if wish := os.environ.get("ADJOIN_ACCELERATOR"):
        return [wish]
    found = []
    for plugin in _C.plugin_list():
        offers = plugin["provides"].split(";")
        if not any(offer.startswith("imitates:") for offer in offers):
            found += [offer[7:] for offer in offers if offer.startswith("device:")]
    return sorted(set(found))


def get_device_module(device=None):
    """The module of a device: `adjoin.cuda` for "cuda:1"; made if the package has no file for it."""
    kind = _C.device(device).type if device is not None else _accelerator()
    full = _module_name(kind)
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError:
        from ._device_modules import make

        module = types.ModuleType(full, f"{full}: streams, events and memory of the device {kind}.")
        module.__dict__.update(make(kind))
        return sys.modules.setdefault(full, module)
