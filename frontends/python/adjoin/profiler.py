"""adjoin.profiler: how often each op ran inside a with statement and how long, in PyTorch's manner."""

import enum
import os
import time
from types import SimpleNamespace


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


_labels = None  # of the profile that is running: {name: [calls, ns]}


class record_function:
    """Counts a block of a program under a name; also a decorator."""

    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *error):
        if _labels is not None:
            row = _labels.setdefault(self.name, [0, 0])
            row[0] += 1
            row[1] += time.perf_counter_ns() - self.start

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def call(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)

        return call


class Events(list):
    """Rows of key, count, cpu_time_total, self_cpu_time_total and cpu_time (microseconds), the longest first."""

    def table(self, sort_by=None, row_limit=100, max_name_column_width=55, **_):
        """The rows as text."""
        if sort_by:
            field = sort_by if sort_by in ("count", "cpu_time") else "cpu_time_total"
            rows = sorted(self, key=lambda row: -getattr(row, field))
        else:
            rows = list(self)
        all_of_it = sum(row.cpu_time_total for row in self if not row.is_user_annotation) or 1
        lines = [f"{'Name':<{max_name_column_width}} {'CPU %':>7} {'CPU total':>12} {'CPU time avg':>12} {'# of Calls':>10}"]
        for row in rows[: row_limit if row_limit > 0 else None]:
            lines.append(
                f"{row.key[:max_name_column_width]:<{max_name_column_width}} {row.cpu_time_total / all_of_it:>7.1%} "
                f"{row.cpu_time_total:>10.1f}us {row.cpu_time:>10.1f}us {row.count:>10}"
            )
        rule = "-" * len(lines[0])
        return "\n".join([rule, lines[0], rule, *lines[1:], rule, f"CPU time total: {all_of_it:.1f}us"])

    __str__ = table


class profile:
    """Inside, ops are counted and timed; afterwards ``key_averages().table()`` tells."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, **_):
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num, self._served, self._rows = 0, None, {}

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
        told = self._served is not None
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
        global _labels
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and self._served is None:
            from .plugin import explain

            self._rows, _labels = {}, {}
            self._served = explain().__enter__()
        elif not wanted and self._served is not None:
            self._served.__exit__()
            for row in self._served.rows:
                self._add(row["op"], row["calls"], row["ns"], False)
            for name, (calls, ns) in _labels.items():
                self._add(name, calls, ns, True)
            self._served = _labels = None

    def _add(self, key, calls, ns, label):
        row = self._rows.setdefault(
            (key, label), SimpleNamespace(key=key, count=0, cpu_time_total=0.0, is_user_annotation=label)
        )
        row.count += calls
        row.cpu_time_total += ns / 1000
        row.self_cpu_time_total = row.cpu_time_total
        row.cpu_time = row.cpu_time_total / row.count

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """The counts, by op and by record_function's names."""
        return Events(sorted(self._rows.values(), key=lambda row: -row.cpu_time_total))

    events = key_averages

    def export_chrome_trace(self, path):
        """Raises: ops are counted, no order of theirs is kept."""
        raise NotImplementedError("profile.export_chrome_trace: ops are counted, not put in order; use key_averages()")


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for on_trace_ready: writes the table to a file of the folder."""

    def write(prof):
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or 'worker'}.{time.time_ns()}.txt"
        with open(os.path.join(dir_name, name), "w") as file:
            print(prof.key_averages().table(), file=file)

    return write
