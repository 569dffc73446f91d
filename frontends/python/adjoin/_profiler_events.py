"""adjoin._profiler_events: what a profile has seen: events, one for each call, label and change of memory, and sums over them."""

import bisect
import collections
import enum
import json
import os
from operator import itemgetter

CALL, MEMORY, LABEL = 1, 4, 8  # AJ_EVENT_... of <adjoin/abi/profile.h>
MEMORIES = ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage")
TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
SUMS = (*TIMES, *MEMORIES)


class DeviceType(enum.Enum):
    """Where an event is timed: calls are on the host, whatever device they are about."""

    CPU = 0
    CUDA = 1
    HIP = 6


class Interval:
    """From start to end, in microseconds."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """How long it is."""
        return self.end - self.start


Kernel = collections.namedtuple("Kernel", "name device duration")  # microseconds


class _Averaged:
    """What events and sums over them have."""

    @property
    def cpu_time(self):
        """The mean time of a call, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self):
        """The mean time of its work on a card, in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0

    # As PyTorch has called them.
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)


class FunctionEvent(_Averaged):
    """One call of an op, one block of record_function or one change of memory: when, on which thread, within what.

    Times are microseconds, device times those of the kernels and copies that it queued on a card; an event of the card itself has
    no time on the host. Memory is bytes given out less those taken back.
    """

    def __init__(self, id, name, thread, start_us, end_us, stack=None, cpu_memory_usage=0, device_memory_usage=0, is_user_annotation=False,
                 device_type=DeviceType.CPU, device_index=0, kind=CALL, provider="", device="cpu", in_use=0):  # fmt: skip
        self.id, self.name, self.thread, self.stack = id, name, thread, stack or []
        self.time_range, self.count = Interval(start_us, end_us), 1
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_user_annotation, self.device_type, self.device_index = is_user_annotation, device_type, device_index
        self.kind, self.provider, self.device, self.in_use = kind, provider, device, in_use
        self.cpu_children, self.cpu_parent, self.kernels = [], None, []

    key = property(lambda self: self.name)
    cpu_time_total = property(lambda self: 0.0 if self._of_card() else self.time_range.elapsed_us())
    self_cpu_memory_usage = property(lambda self: self._own("cpu_memory_usage"))
    self_device_memory_usage = property(lambda self: self._own("device_memory_usage"))

    @property
    def self_cpu_time_total(self):
        """The time less that of what it called on its own thread."""
        within = (child for child in self.cpu_children if child.thread == self.thread)
        return self.cpu_time_total - sum(child.cpu_time_total for child in within)

    @property
    def self_device_time_total(self):
        """Of what it queued itself; of an event of the card, the card's time."""
        return self.time_range.elapsed_us() if self._of_card() else sum(kernel.duration for kernel in self.kernels)

    @property
    def device_time_total(self):
        """Of what it queued, with what it called."""
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    def append_kernel(self, name, device, duration):
        """Adds what it queued on a card, in microseconds."""
        self.kernels.append(Kernel(name, device, duration))

    def _of_card(self):
        return self.device_type is not DeviceType.CPU

    def _own(self, field):
        of_others = (child for child in self.cpu_children if child.kind != MEMORY)
        return getattr(self, field) - sum(getattr(child, field) for child in of_others)

    def append_cpu_child(self, child):
        """Adds an event that began and ended within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        """Says within which event this one was."""
        self.cpu_parent = parent

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} "
            f"cpu_time={self.cpu_time_total:.1f}us self_cpu_time={self.self_cpu_time_total:.1f}us>"
        )


class FunctionEventAvg(_Averaged):
    """Sums over events of one key."""

    def __init__(self, key=None, stack=()):
        self.key, self.stack, self.count, self.is_user_annotation = key, list(stack), 0, False
        self.device_type = DeviceType.CPU
        for field in SUMS:
            setattr(self, field, 0)

    def add(self, other):
        """Adds an event, or another sum."""
        self.key = other.key if self.key is None else self.key
        self.is_user_annotation, self.device_type = other.is_user_annotation, other.device_type
        self.count += other.count
        for field in SUMS:
            setattr(self, field, getattr(self, field) + getattr(other, field))
        return self

    __iadd__ = add

    def __repr__(self):
        return f"<FunctionEventAvg key={self.key} count={self.count} cpu_time={self.cpu_time:.1f}us>"


class EventList(list):
    """Events in the order in which they began, or sums over them, the longest first: see FunctionEvent."""

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    @property
    def self_cpu_time_total(self):
        """The time of all of them, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self, sort_by=None, row_limit=100, max_name_column_width=55, header=None, top_level_events_only=False, **_
    ):
        """The rows as text."""
        rows = [row for row in self if not (top_level_events_only and getattr(row, "cpu_parent", None) is not None)]
        if sort_by:
            field = sort_by.replace("cuda_", "device_")
            field = field if field in ("count", "cpu_time", "device_time", *SUMS) else "cpu_time_total"
            rows.sort(key=lambda row: -getattr(row, field))
        all_of_it = sum(row.self_cpu_time_total for row in self if not row.is_user_annotation) or 1
        shown = [name for name in MEMORIES if any(getattr(row, name) for row in self)]
        of_card = sum(row.self_device_time_total for row in self if row.device_type is not DeviceType.CPU)
        wide = max_name_column_width
        lines = [
            f"{'Name':<{wide}} {'CPU %':>7} {'Self CPU':>12} {'CPU total':>12} {'CPU time avg':>12} {'# of Calls':>10}"
        ]
        if of_card:
            lines[0] += f" {'Self CUDA':>12} {'Self CUDA %':>11} {'CUDA total':>12} {'CUDA time avg':>13}"
        lines[0] += "".join(f" {name.removesuffix('_usage').replace('_', ' '):>18}" for name in shown)
        for row in rows[: row_limit if row_limit > 0 else None]:
            lines.append(
                f"{row.key[:wide]:<{wide}} {row.cpu_time_total / all_of_it:>7.1%} {row.self_cpu_time_total:>10.1f}us "
                f"{row.cpu_time_total:>10.1f}us {row.cpu_time:>10.1f}us {row.count:>10}"
                + (
                    f" {row.self_device_time_total:>10.1f}us {row.self_device_time_total / of_card:>11.1%} "
                    f"{row.device_time_total:>10.1f}us {row.device_time:>11.1f}us"
                    if of_card
                    else ""
                )
                + "".join(f" {getattr(row, name):>18}" for name in shown)
            )
        rule = "-" * len(lines[0])
        head = [header] if header else []
        totals = [f"CPU time total: {all_of_it:.1f}us"]
        if of_card:
            totals.append(f"CUDA time total: {of_card:.1f}us")
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, *totals])

    __str__ = table

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0):
        """Sums over the calls of each op, and over record_function's names; with a stack also by the user's line."""
        rows = {}
        for event in self:
            if event.kind == MEMORY and event.cpu_parent is not None:
                continue  # its parent has it
            place = event.stack if group_by_stack_n else []
            key = "[memory]" if event.kind == MEMORY else event.key
            rows.setdefault((key, event.kind, event.device_type, *place), FunctionEventAvg(key, place)).add(event)
        return EventList(sorted(rows.values(), key=lambda row: -row.cpu_time_total), use_device=self._use_device)

    def total_average(self):
        """One sum over all."""
        total = FunctionEventAvg()
        for event in self:
            total += event
        total.key = "Total"
        return total

    def export_chrome_trace(self, path):
        """Writes the events as JSON for chrome://tracing or ui.perfetto.dev."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": [_chrome(event) for event in self]}, file)

    def supported_export_stacks_metrics(self):
        """What export_stacks can write."""
        return [
            "self_cpu_time_total",
            "cpu_time_total",
            "self_cuda_time_total",
            "cuda_time_total",
            *TIMES[2:],
            *MEMORIES,
        ]

    def export_stacks(self, path, metric):
        """Writes the user's lines with a number of each, as flame graphs are made of; events without a line are left out."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                number = int(getattr(event, metric))
                if event.stack and number > 0:
                    frames = [line.strip().translate(str.maketrans(" ;\t\n", "____")) for line in event.stack]
                    file.write(f"{';'.join(reversed(frames))} {number}\n")

    def _build_tree(self):
        """Parents and children of events that know none, by their times."""
        by_thread = collections.defaultdict(list)
        for event in sorted(self, key=lambda event: (event.time_range.start, -event.time_range.end)):
            around = by_thread[event.thread]
            while around and around[-1].time_range.end < event.time_range.end:
                around.pop()
            if around:
                around[-1].append_cpu_child(event)
                event.set_cpu_parent(around[-1])
            around.append(event)


class MemRecordsAcc:
    """Finds records of memory, whose first item has ``start_ns()``, by their times."""

    def __init__(self, mem_records):
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns, end_ns):
        """Those from start to end, both included."""
        begin, end = bisect.bisect_left(self._starts, start_ns), bisect.bisect_right(self._starts, end_ns)
        yield from self._records[begin:end]


class EnforceUnique:
    """Raises when a key is seen twice."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Looks at a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps of a program that several say: the profiler, an optimizer. The program's step is the greatest count."""

    _current_step = 0
    _step_dict = collections.defaultdict(int)

    @classmethod
    def init_step_count(cls, requester):
        """Somebody begins to count, from the program's step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester):
        """Somebody counts no more; False if nobody of that name did."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        """Somebody has made a step; gives the program's."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls):
        """The program's step."""
        return cls._current_step


WORK = ("", "Memcpy", "Memset")  # AJ_WORK_... of <adjoin/abi/device_times.h>
TYPES = {"cuda": DeviceType.CUDA, "hip": DeviceType.HIP}


def work_events(told, by_id, first):
    """Events of cards, numbered from `first`; what a call queued is its own, too."""
    for number, (card, (kind, owner, name, begin, end, _, stream, index)) in enumerate(told, first):
        name = name or WORK[kind]
        if owner in by_id:
            by_id[owner].append_kernel(name, index, (end - begin) / 1000)
        yield FunctionEvent(
            number, name, stream, begin / 1000, end / 1000, device_type=TYPES[card], device_index=index, provider=card,
            device=f"{card}:{index}",
        )  # fmt: skip


def tree(told, work=()):
    """Events, as the core tells them, as objects that know their parents; then what cards did."""
    by_id = {}
    for kind, number, parent, name, provider, device, index, _, thread, line, begin, end, size, in_use in sorted(
        told, key=itemgetter(1)
    ):
        outer = by_id.get(parent)
        event = by_id[number] = FunctionEvent(
            number, name, thread, begin / 1000, end / 1000, [line] if line else [], is_user_annotation=kind == LABEL, kind=kind,
            provider=provider, device=f"{device}:{index}" if index else device, device_index=index, in_use=in_use,
        )  # fmt: skip
        if outer is not None:
            event.set_cpu_parent(outer)
            outer.append_cpu_child(event)
        if kind == MEMORY:
            field = "cpu_memory_usage" if device == "cpu" else "device_memory_usage"
            while event is not None:
                setattr(event, field, getattr(event, field) + size)
                event = event.cpu_parent
    return [*by_id.values(), *work_events(work, by_id, max(by_id, default=0) + 1)]


def _chrome(event):
    common = {"pid": os.getpid(), "tid": event.thread, "ts": event.time_range.start}
    if event.kind == MEMORY:
        arguments = {
            "Bytes": event.cpu_memory_usage + event.device_memory_usage,
            "Total Allocated": event.in_use,
            "Device": event.device,
        }
        return {"name": "[memory]", "ph": "i", "s": "t", "args": arguments, **common}
    arguments = {"provider": event.provider or "libadjoin", "device": event.device, "line": "".join(event.stack)}
    category = "user_annotation" if event.is_user_annotation else "cpu_op"
    if event.device_type is not DeviceType.CPU:
        category, common["tid"] = "kernel", f"{event.device} stream {event.thread}"
    return {
        "name": event.name,
        "ph": "X",
        "cat": category,
        "dur": event.time_range.elapsed_us(),
        "args": arguments,
        **common,
    }
