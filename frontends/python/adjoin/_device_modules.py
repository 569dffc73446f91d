"""adjoin._device_modules: the functions of `adjoin.cuda` and its like, for a device of any name.

Each maker returns the functions of one subject; `kind` None is the accelerator, whatever it is.
"""

import contextlib
import types

from . import _C
from ._accelerator import Event, Graph, Stream, _accelerator, _capture, _current_stream, _device


def make(kind):
    """The functions and classes of a device's module."""
    return {**_choice(kind), **_queues(kind), **_memory(kind), **_seeds(kind)}


def _name(kind):
    return kind or _accelerator()


def _count(kind):
    try:
        return _C.device_count(_name(kind))
    except RuntimeError:
        return 0


def _choice(kind):
    """Which device, and what it is."""

    def device_count():
        """How many there are; 0 where the plugin or the driver is missing."""
        return _count(kind)

    def is_available():
        """Whether there is one."""
        return _count(kind) > 0

    def is_initialized():
        """Whether a device of the kind can be used."""
        return is_available()

    def is_bf16_supported(including_emulation=True):
        """Whether kernels take bfloat16."""
        return is_available()

    def init():
        """Nothing: devices start when they are first used."""

    def current_device():
        """The index that the name alone means in this thread."""
        return _C.current_index(_name(kind)) if kind or is_available() else 0

    def set_device(device):
        """Which one the name alone means in this thread."""
        if not (isinstance(device, int) and device < 0):
            _C.set_current_index(_device(kind, device))

    @contextlib.contextmanager
    def device_context(device):
        """The current device, within a with statement."""
        before = current_device()
        set_device(device)
        try:
            yield
        finally:
            set_device(before)

    def synchronize(device=None):
        """Waits until everything on the device has finished."""
        _C.synchronize(_device(kind, device))

    def get_device_properties(device=None):
        """Name, architecture and sizes."""
        said = _C.device_props(_device(kind, device))
        said["multi_processor_count"] = said["multiprocessors"]
        return types.SimpleNamespace(**said)

    def get_device_name(device=None):
        """The product's name."""
        return _C.device_props(_device(kind, device))["name"]

    names = {key: value for key, value in locals().items() if key != "kind"}
    names["device"] = names.pop("device_context")
    return names


def _queues(kind):
    """Streams, events and graphs."""
    class_of_streams = type("Stream", (Stream,), {"_kind": kind, "__doc__": Stream.__doc__})

    def current_stream(device=None):
        """The stream that ops of this thread go to."""
        return _current_stream(kind, device)

    def default_stream(device=None):
        """The device's own stream."""
        return class_of_streams(_device(kind, device), stream_ptr=0)

    def set_stream(stream):
        """Ops of this thread go to that stream."""
        if stream is not None:
            _C.stream_set(stream.device, stream._handle)

    def stream(stream):
        """Ops within the with statement go to that stream; None changes nothing."""
        return contextlib.nullcontext() if stream is None else stream

    return {
        "current_stream": current_stream, "default_stream": default_stream, "set_stream": set_stream, "stream": stream,
        "Stream": class_of_streams,
        "Event": type("Event", (Event,), {"_kind": kind, "__doc__": Event.__doc__}),
        "Graph": type("Graph", (Graph,), {"_kind": kind, "__doc__": Graph.__doc__}),
        "graph": _capture,
    }  # fmt: skip


def _memory(kind):
    """The memory of a device."""

    def memory_stats(device=None):
        """What the cache of memory counts, in bytes."""
        return _C.memory_stats(_device(kind, device)) if _count(kind) else {}

    def memory_allocated(device=None):
        """Bytes in use."""
        return memory_stats(device).get("in_use", 0)

    def max_memory_allocated(device=None):
        """The most bytes that were in use."""
        return memory_stats(device).get("peak_in_use", 0)

    def memory_reserved(device=None):
        """Bytes taken from the device, in use or kept for later."""
        stats = memory_stats(device)
        return stats.get("in_use", 0) + stats.get("cached", 0)

    def reset_peak_memory_stats(device=None):
        """Begins to count the peak anew."""
        if _count(kind):
            _C.memory_reset_peak(_device(kind, device))

    def empty_cache():
        """Gives memory that nobody uses back to the devices."""
        for index in range(_count(kind)):
            _C.memory_release(_C.device(_name(kind), index))

    def mem_get_info(device=None):
        """(free, total) bytes of the device, as its driver counts them."""
        return _C.memory_info(_device(kind, device))

    def set_per_process_memory_fraction(fraction, device=None):
        """At most this part of the device's memory is taken."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"set_per_process_memory_fraction: {fraction} is not between 0 and 1")
        device = _device(kind, device)
        _C.memory_limit(device, int(mem_get_info(device)[1] * fraction))

    names = {key: value for key, value in locals().items() if key != "kind"}
    return {**names, "max_memory_reserved": memory_reserved, "reset_max_memory_allocated": reset_peak_memory_stats}


def _seeds(kind):
    """The generators of a device."""

    def manual_seed(seed):
        """Seeds the generator of the current device; without one nothing happens."""
        if _count(kind):
            _C.default_generator(_device(kind, None)).manual_seed(int(seed))

    def manual_seed_all(seed):
        """Seeds the generators of all devices of the kind."""
        for index in range(_count(kind)):
            _C.default_generator(_C.device(_name(kind), index)).manual_seed(int(seed))

    def initial_seed():
        """The seed of the current device's generator."""
        return _C.default_generator(_device(kind, None)).initial_seed()

    def get_rng_state(device=None):
        """The state of a device's generator."""
        return _C.default_generator(_device(kind, device)).get_state()

    def set_rng_state(new_state, device=None):
        """Sets the state of a device's generator."""
        _C.default_generator(_device(kind, device)).set_state(new_state)

    return {key: value for key, value in locals().items() if key != "kind"}
