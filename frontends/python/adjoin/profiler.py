"""adjoin.profiler: how often each op ran inside a with statement, how long and with how much memory, in PyTorch's manner."""

import enum
import functools
import json
import os
import time
from operator import itemgetter
from types import SimpleNamespace

from . import _C

_CALL, _MEMORY, _LABEL = 1, 4, 8  # AJ_EVENT_... of <adjoin/abi/profile.h>
_MEMORIES = ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage")
_SUMS = ("cpu_time_total", "self_cpu_time_total", *_MEMORIES)


class ProfilerActivity(enum.Enum):
    """What is watched: ops of every device are."""

    CPU = 0
    XPU = 1
    CUDA = 2


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


class Events(list):
    """Rows of key, count, cpu_time_total, self_cpu_time_total and cpu_time (microseconds), cpu_memory_usage, device_memory_usage
    and their self_ forms (bytes given out less those taken back), the longest first."""

    def table(self, sort_by=None, row_limit=100, max_name_column_width=55, **_):
        """The rows as text."""
        rows = list(self)
        if sort_by:
            field = sort_by if sort_by in ("count", "cpu_time", *_SUMS) else "cpu_time_total"
            rows.sort(key=lambda row: -getattr(row, field))
        all_of_it = sum(row.self_cpu_time_total for row in self if not row.is_user_annotation) or 1
        shown = [name for name in _MEMORIES if any(getattr(row, name) for row in self)]
        wide = max_name_column_width
        lines = [
            f"{'Name':<{wide}} {'CPU %':>7} {'Self CPU':>12} {'CPU total':>12} {'CPU time avg':>12} {'# of Calls':>10}"
        ]
        lines[0] += "".join(f" {name.removesuffix('_usage').replace('_', ' '):>18}" for name in shown)
        for row in rows[: row_limit if row_limit > 0 else None]:
            lines.append(
                f"{row.key[:wide]:<{wide}} {row.cpu_time_total / all_of_it:>7.1%} {row.self_cpu_time_total:>10.1f}us "
                f"{row.cpu_time_total:>10.1f}us {row.cpu_time:>10.1f}us {row.count:>10}"
                + "".join(f" {getattr(row, name):>18}" for name in shown)
            )
        rule = "-" * len(lines[0])
        return "\n".join([rule, lines[0], rule, *lines[1:], rule, f"CPU time total: {all_of_it:.1f}us"])

    __str__ = table


class profile:
    """Inside, calls of ops are written down; afterwards ``key_averages().table()`` tells. With ``profile_memory`` also who took
    and gave back how many bytes."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, profile_memory=False, **_):
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.profile_memory, self.step_num = profile_memory, 0
        self._running, self._events = None, []

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
            self._running = _C.profile_start(_CALL | _LABEL | (_MEMORY if self.profile_memory else 0))
        elif not wanted and self._running is not None:
            self._events = _tree(_C.profile_stop(self._running))
            self._running = None

    def events(self):
        """Every call, label and change of memory by itself, in the order in which they began."""
        return Events(self._events)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Sums over the calls of each op, and over record_function's names; with a stack also by the user's line."""
        rows = {}
        for event in self._events:
            if event.kind == _MEMORY and event.cpu_parent is not None:
                continue  # its parent has it
            place = event.stack if group_by_stack_n else []
            key = "[memory]" if event.kind == _MEMORY else event.key
            row = rows.setdefault(
                (key, event.kind, *place), SimpleNamespace(key=key, count=0, stack=place, **dict.fromkeys(_SUMS, 0))
            )
            row.is_user_annotation = event.is_user_annotation
            row.count += 1
            for field in _SUMS:
                setattr(row, field, getattr(row, field) + getattr(event, field))
            row.cpu_time = row.cpu_time_total / row.count
        return Events(sorted(rows.values(), key=lambda row: -row.cpu_time_total))

    def export_chrome_trace(self, path):
        """Writes the events as JSON for chrome://tracing or ui.perfetto.dev."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": [_chrome(event) for event in self._events]}, file)


def _tree(told):
    """Events as objects that know their parents, with what is their own and what is their children's."""
    by_id = {}
    for kind, number, parent, name, provider, device, index, _, thread, line, begin, end, size, in_use in sorted(
        told, key=itemgetter(1)
    ):
        outer = by_id.get(parent)
        event = by_id[number] = SimpleNamespace(
            id=number, kind=kind, key=name, name=name, provider=provider, device=f"{device}:{index}" if index else device, thread=thread,
            stack=[line] if line else [], time_range=SimpleNamespace(start=begin / 1000, end=end / 1000), in_use=in_use,
            cpu_time_total=(end - begin) / 1000, self_cpu_time_total=(end - begin) / 1000, cpu_parent=outer, cpu_children=[],
            is_user_annotation=kind == _LABEL, **dict.fromkeys(_MEMORIES, 0),
        )  # fmt: skip
        if outer is not None:
            outer.cpu_children.append(event)
            if outer.thread == thread:
                outer.self_cpu_time_total -= event.cpu_time_total
        if kind == _MEMORY:
            field = "cpu_memory_usage" if device == "cpu" else "device_memory_usage"
            for at in (event, outer) if outer else (event,):
                setattr(at, "self_" + field, getattr(at, "self_" + field) + size)
            while event is not None:
                setattr(event, field, getattr(event, field) + size)
                event = event.cpu_parent
    return list(by_id.values())


def _chrome(event):
    common = {"pid": os.getpid(), "tid": event.thread, "ts": event.time_range.start}
    if event.kind == _MEMORY:
        arguments = {
            "Bytes": event.cpu_memory_usage + event.device_memory_usage,
            "Total Allocated": event.in_use,
            "Device": event.device,
        }
        return {"name": "[memory]", "ph": "i", "s": "t", "args": arguments, **common}
    arguments = {"provider": event.provider or "libadjoin", "device": event.device, "line": "".join(event.stack)}
    category = "user_annotation" if event.is_user_annotation else "cpu_op"
    return {"name": event.name, "ph": "X", "cat": category, "dur": event.cpu_time_total, "args": arguments, **common}


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for on_trace_ready: writes the table to a file of the folder."""

    def write(prof):
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or 'worker'}.{time.time_ns()}.txt"
        with open(os.path.join(dir_name, name), "w") as file:
            print(prof.key_averages().table(), file=file)

    return write
