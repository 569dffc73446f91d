"""adjoin._device_modules: the functions of `adjoin.cuda` and its like, for a device of any name.

Each maker returns the functions of one subject; `kind` None is the accelerator, whatever it is.
"""

import collections
import contextlib
import os
import types

from . import _C, _memory_stats
from ._accelerator import (
    Event, Graph, GraphPool, Stream, _accelerator, _capture, _current_stream, _device, is_stream_captured,
)  # fmt: skip

_lent = {}  # address: the tensor that keeps what caching_allocator_alloc gave


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


def _there(kind, device):
    """A device that is there; what its plugin says is raised where there is none."""
    device = _device(kind, device)
    if not _count(device.type):
        _C.device_props(device)
    return device


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
        return _there(kind, None).index if kind or is_available() else 0

    def set_device(device):
        """Which one the name alone means in this thread."""
        if not (isinstance(device, int) and device < 0):
            _C.set_current_index(_device(kind, device))

    @contextlib.contextmanager
    def device_context(device):
        """The current device, within a with statement."""
        if device is None or (isinstance(device, int) and device < 0):  # nobody in particular is meant
            yield
            return
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

    def device_of(obj):
        """The device of a tensor is the current one within a with statement; of others on the host nothing changes."""
        there = getattr(obj, "device", None)
        return device_context(there) if there is not None and there.type == _name(kind) else contextlib.nullcontext()

    names = {key: value for key, value in locals().items() if key != "kind"}
    names["device"] = names.pop("device_context")
    return names


def _queues(kind):
    """Streams, events and graphs."""
    class_of_streams = type("Stream", (Stream,), {"_kind": kind, "__doc__": Stream.__doc__})
    class_of_graphs = type("Graph", (Graph,), {"_kind": kind, "__doc__": Graph.__doc__})

    def current_stream(device=None):
        """The stream that ops of this thread go to."""
        return _current_stream(kind, device)

    def default_stream(device=None):
        """The device's own stream."""
        return class_of_streams(_there(kind, device), stream_ptr=0)

    def set_stream(stream):
        """Ops of this thread go to that stream."""
        if stream is not None:
            _C.stream_set(stream.device, stream._handle)

    def stream(stream):
        """Ops within the with statement go to that stream; None changes nothing."""
        return contextlib.nullcontext() if stream is None else stream

    def get_stream_from_external(data_ptr, device=None):
        """A stream that something else has made, by the vendor's handle; it must outlive what is queued on it."""
        return class_of_streams(_device(kind, device), stream_ptr=data_ptr)

    def is_current_stream_capturing():
        """Whether what is queued on the current stream is kept for a graph; False where there is no device."""
        return bool(_count(kind)) and is_stream_captured(current_stream())

    def graph_pool_handle():
        """Memory for graphs that never run at the same time, for capture_begin(pool=); it lives as long as the handle."""
        return GraphPool()

    def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
        """Functions or modules that run as graphs, forward and backward, on inputs like the samples."""
        from ._graphed import graphed

        return graphed(class_of_graphs, callables, sample_args, num_warmup_iters, allow_unused_input, pool)

    class ExternalStream(class_of_streams):
        """A stream that something else has made, by the vendor's handle; it must outlive what is queued on it."""

        def __init__(self, stream_ptr, device=None, **_):
            super().__init__(device, stream_ptr=int(stream_ptr))

    class StreamContext:
        """Ops within the with statement go to that stream; None changes nothing."""

        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            if self.stream is not None:
                self.stream.__enter__()

        def __exit__(self, *what):
            if self.stream is not None:
                self.stream.__exit__(*what)

    return {
        "ExternalStream": ExternalStream, "StreamContext": StreamContext,
        "get_stream_from_external": get_stream_from_external, "is_current_stream_capturing": is_current_stream_capturing,
        "graph_pool_handle": graph_pool_handle, "make_graphed_callables": make_graphed_callables,
        "current_stream": current_stream, "default_stream": default_stream, "set_stream": set_stream, "stream": stream,
        "Stream": class_of_streams,
        "Event": type("Event", (Event,), {"_kind": kind, "__doc__": Event.__doc__}),
        "Graph": class_of_graphs,
        "graph": _capture,
    }  # fmt: skip


def _memory(kind):
    """The memory of a device."""

    def memory_stats(device=None):
        """What is counted of the memory, under PyTorch's names; what nobody counts has no key."""
        return _memory_stats.stats(_device(kind, device)) if _count(kind) else collections.OrderedDict()

    def memory_stats_as_nested_dict(device=None):
        """memory_stats as dicts in dicts."""
        return _memory_stats.nested(memory_stats(device))

    def memory_allocated(device=None):
        """Bytes that tensors have."""
        return memory_stats(device).get("allocated_bytes.all.current", 0)

    def max_memory_allocated(device=None):
        """The most bytes that tensors had."""
        return memory_stats(device).get("allocated_bytes.all.peak", 0)

    def memory_reserved(device=None):
        """Bytes taken from the device, in use or kept for later."""
        return memory_stats(device).get("reserved_bytes.all.current", 0)

    def max_memory_reserved(device=None):
        """The most bytes that were taken from the device."""
        found = memory_stats(device)
        if found and "reserved_bytes.all.peak" not in found:
            raise NotImplementedError(
                f"max_memory_reserved: the most that was reserved is not counted where memory is the host's, as on "
                f"{_device(kind, device)}; memory_reserved and max_memory_allocated are"
            )
        return found.get("reserved_bytes.all.peak", 0)

    def reset_peak_memory_stats(device=None):
        """Begins to count the peaks anew."""
        if _count(kind):
            _C.memory_reset_peak(_device(kind, device))

    def reset_accumulated_memory_stats(device=None):
        """Begins to count anew what came and went."""
        if _count(kind):
            _memory_stats.reset_accumulated(_device(kind, device))

    def memory_summary(device=None, abbreviated=False):
        """memory_stats as a table for people."""
        return _memory_stats.summary(_there(kind, device), memory_stats(device), abbreviated)

    def memory_snapshot(mempool_id=None, include_traces=True):
        """The pieces of all devices' memory: segments, their blocks, who asked for them as far as it was noted."""
        devices = [_C.device(_name(kind), index) for index in range(_count(kind))]
        found = [segment for device in devices for segment in _memory_stats.pieces(device)]
        return [s for s in found if mempool_id is None or s["segment_pool_id"] == tuple(mempool_id)]

    def empty_cache():
        """Gives memory that nobody uses back to the devices."""
        for index in range(_count(kind)):
            _C.memory_release(_C.device(_name(kind), index))

    def ipc_collect():
        """Memory that was lent to other processes is forgotten as soon as they have let it go, or have ended."""
        from ._lent import collect

        collect(dead=True)

    def mem_get_info(device=None):
        """(free, total) bytes of the device, as its driver counts them."""
        return _C.memory_info(_device(kind, device))

    def set_per_process_memory_fraction(fraction, device=None):
        """At most this part of the device's memory is taken."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"set_per_process_memory_fraction: {fraction} is not between 0 and 1")
        device = _device(kind, device)
        # A limit of 0 is none; nothing fits into one byte.
        _C.memory_limit(device, max(int(mem_get_info(device)[1] * fraction), 1) if fraction < 1 else 0)

    def get_per_process_memory_fraction(device=None):
        """The part of the device's memory that may be taken; 1 where nobody has set it."""
        device = _device(kind, device)
        limit = _C.memory_stats(device)["limit"]
        return limit / mem_get_info(device)[1] if limit else 1.0

    def caching_allocator_alloc(size, device=None, stream=None):
        """The address of memory from the cache, in the order of a stream, until caching_allocator_delete."""
        device = _device(kind, device)
        if isinstance(stream, int):
            stream = Stream(device, stream_ptr=stream)
        with stream or contextlib.nullcontext():
            block = _C.find_op("empty")((max(int(size), 1),), dtype=_C.uint8, device=device)
        _lent[block.data_ptr()] = block
        return block.data_ptr()

    def caching_allocator_delete(mem_ptr):
        """Gives memory of caching_allocator_alloc back to the cache."""
        if _lent.pop(mem_ptr, None) is None:
            raise ValueError(
                f"caching_allocator_delete: {mem_ptr:#x} is not of caching_allocator_alloc, or was given back"
            )

    def caching_allocator_enable(value=True):
        """The cache is on; ADJOIN_MEMORY_CACHE=off, set before the program begins, turns it off."""
        if bool(value) == (os.environ.get("ADJOIN_MEMORY_CACHE") == "off"):
            raise NotImplementedError(
                "caching_allocator_enable: the cache of memory is turned on or off before a program begins: "
                "ADJOIN_MEMORY_CACHE=off"
            )

    names = {key: value for key, value in locals().items() if key != "kind"}
    return {
        **names,
        "reset_max_memory_allocated": reset_peak_memory_stats,
        "reset_max_memory_cached": reset_peak_memory_stats,
    }


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

    def get_rng_state_all():
        """The states of the generators of all devices of the kind."""
        return [get_rng_state(index) for index in range(_count(kind))]

    def set_rng_state_all(new_states):
        """Sets the states of the generators of all devices of the kind, in order."""
        for index, state in enumerate(new_states):
            set_rng_state(state, index)

    def seed():
        """Seeds the current device's generator with a number that nobody knows; without a device nothing happens."""
        manual_seed(int.from_bytes(os.urandom(7), "little"))

    def seed_all():
        """Seeds the generators of all devices of the kind with one number that nobody knows."""
        manual_seed_all(int.from_bytes(os.urandom(7), "little"))

    return {key: value for key, value in locals().items() if key != "kind"}
