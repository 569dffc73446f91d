"""adjoin.profiler: how often each op ran inside a with statement, how long and with how much memory, in PyTorch's manner."""

import enum
import functools
import os
import time
import warnings

from . import _C
from ._profiler_events import (  # noqa: F401
    CALL,
    LABEL,
    MEMORY,
    DeviceType,
    EventList,
    KinetoStepTracker,
    tree,
)

CARDS = ("cuda", "hip")


class ProfilerActivity(enum.Enum):
    """What is watched: ops of every device are; CUDA: when a card's kernels ran, too."""

    CPU = 0
    XPU = 1
    CUDA = 2


def supported_activities():
    """What a profile can watch here."""
    return {ProfilerActivity.CPU} | {ProfilerActivity.CUDA for kind in CARDS if _present(kind)}


def _present(kind):
    try:
        return _C.device_count(kind) > 0
    except RuntimeError:
        return False


def kineto_available():
    """True: profile() records, with a recorder of its own."""
    return True


class ProfilerAction(enum.Enum):
    """What a schedule asks of one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait, warmup, active, repeat=0, skip_first=0):
    """A function of the step: ``wait`` steps of nothing, ``warmup`` not counted, ``active`` counted; again and again."""

    def action(step):
        step -= skip_first
        length = wait + warmup + active
        if step < 0 or repeat and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class record_function:
    """Gives a block of a program a name in what a profile shows; also a decorator."""

    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        self._label = _C.label_begin(self.name)
        return self

    def __exit__(self, *error):
        try:
            _C.label_end(self._label)
        except RuntimeError:  # another thread ends it, as generators may: it is left out
            pass

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)

        return call


class _DeviceTimes:
    """What cards themselves say of when they worked, from the maker's tool, which is opened here."""

    def __init__(self):
        self._started = []
        for kind in CARDS:
            if not _present(kind):
                continue
            try:
                _C.device_times_start(kind)
                self._started.append(kind)
            except RuntimeError as error:
                warnings.warn(f"profile: {error}", stacklevel=6)

    def stop(self, used):
        """(kind of device, what it did), all that was queued on the devices that were used."""
        told = []
        for kind in self._started:
            for index in sorted(index for name, index in used if name == kind):
                _C.synchronize(_C.device(kind, index))
            told += [(kind, work) for work in _C.device_times_stop(kind)]
        return told


class profile:
    """Inside, calls of ops are written down; afterwards ``key_averages().table()`` tells. With ``ProfilerActivity.CUDA`` among the
    activities also when kernels ran on a card of any maker, with ``profile_memory`` who took and gave back how many bytes."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, profile_memory=False, **_):
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.profile_memory, self.step_num = profile_memory, 0
        self._on_device = ProfilerActivity.CUDA in (activities or ())
        self._running, self._events, self._times = None, [], None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        """Begins, if the schedule does."""
        self._turn(self._action())

    def stop(self):
        """Ends; what is counted is told if nobody was told yet."""
        told = self._running is not None
        self._turn(ProfilerAction.NONE)
        if told and self.on_trace_ready:
            self.on_trace_ready(self)

    def step(self):
        """A step of the program has passed."""
        KinetoStepTracker.increment_step("ProfilerStep")
        before = self._action()
        self.step_num += 1
        if before is ProfilerAction.RECORD_AND_SAVE and self.schedule:
            self._turn(ProfilerAction.NONE)
            if self.on_trace_ready:
                self.on_trace_ready(self)
        self._turn(self._action())

    def _action(self):
        return self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD

    def _turn(self, action):
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and self._running is None:
            self._running = _C.profile_start(CALL | LABEL | (MEMORY if self.profile_memory else 0))
            self._times = _DeviceTimes() if self._on_device else None
        elif not wanted and self._running is not None:
            told = _C.profile_stop(self._running)
            work = self._times.stop({(event[5], event[6]) for event in told}) if self._times else []
            self._events = tree(told, work)
            self._running = self._times = None

    def events(self):
        """Every call, label and change of memory by itself, in the order in which they began."""
        return EventList(
            self._events, use_device="cuda" if self._on_device else None, profile_memory=self.profile_memory
        )

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Sums over the calls of each op, and over record_function's names; with a stack also by the user's line."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self):
        """One sum over all events."""
        return self.events().total_average()

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes the user's lines with a number of each, as flame graphs are made of."""
        self.events().export_stacks(path, metric)

    def export_chrome_trace(self, path):
        """Writes the events as JSON for chrome://tracing or ui.perfetto.dev."""
        self.events().export_chrome_trace(path)


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for on_trace_ready: writes the table to a file of the folder."""

    def write(prof):
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or 'worker'}.{time.time_ns()}.txt"
        with open(os.path.join(dir_name, name), "w") as file:
            print(prof.key_averages().table(), file=file)

    return write
