"""adjoin.utils.benchmark.timer: times of statements, and what was measured."""

import dataclasses
import math
import statistics
import timeit

from ... import _C

_UNITS = (
    (1.0, "seconds", "s"),
    (1e-3, "milliseconds", "ms"),
    (1e-6, "microseconds", "us"),
    (1e-9, "nanoseconds", "ns"),
)


def unit_of(seconds):
    """(its name, its seconds) of the unit in which a time is a number of few digits."""
    for scale, name, _ in _UNITS:
        if seconds >= scale:
            return name, scale
    return _UNITS[-1][1], _UNITS[-1][0]


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What was measured: the statement, its place in a table, and the number of threads."""

    stmt: str
    setup: str
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """Its label, or the statement."""
        if self.label is None:
            return self.stmt
        return self.label + (f": {self.sub_label}" if self.sub_label else "")


class Measurement:
    """Seconds of one run of a statement, measured in blocks of ``number_per_run``."""

    def __init__(self, number_per_run, raw_times, task_spec):
        self.number_per_run, self.raw_times, self.task_spec = number_per_run, list(raw_times), task_spec

    stmt = property(lambda self: self.task_spec.stmt)
    label = property(lambda self: self.task_spec.label)
    sub_label = property(lambda self: self.task_spec.sub_label)
    description = property(lambda self: self.task_spec.description)
    num_threads = property(lambda self: self.task_spec.num_threads)
    title = property(lambda self: self.task_spec.title)

    @property
    def as_row_name(self):
        """How it is called in a table: by its sub-label, or its statement."""
        return self.sub_label or self.stmt

    @property
    def times(self):
        """Seconds of one run, block by block."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        """The mean of times."""
        return statistics.fmean(self.times)

    @property
    def median(self):
        """The median of times."""
        return statistics.median(self.times)

    @property
    def iqr(self):
        """The distance between the quartiles of times."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, method="inclusive")
        return high - low

    @property
    def significant_figures(self):
        """How many digits of the median the spread leaves certain: of a normal distribution's middle 95 percent."""
        spread = 1.96 * self.iqr / 1.349 / math.sqrt(len(self.raw_times))
        if spread == 0 or self.median == 0:
            return 4
        return max(1, min(4, math.floor(math.log10(self.median / spread)) + 1))

    @property
    def has_warnings(self):
        """Do the runs differ by more than a tenth?"""
        return bool(self.median) and self.iqr / self.median > 0.1

    @staticmethod
    def merge(measurements):
        """Those of one task and one number of runs as one each."""
        found = {}
        for m in measurements:
            found.setdefault((m.task_spec, m.number_per_run), []).extend(m.raw_times)
        return [Measurement(number, times, task) for (task, number), times in found.items()]

    def __repr__(self):
        name, scale = unit_of(self.median)
        short = next(short for _, long, short in _UNITS if long == name)
        told = [self.title] + ([self.description] if self.description else [])
        told += [f"setup: {self.task_spec.setup}"] if self.task_spec.setup not in ("", "pass") else []
        blocks = f"{len(self.raw_times)} measurement{'s' if len(self.raw_times) > 1 else ''}"
        runs = f"{self.number_per_run} runs{' per measurement' if len(self.raw_times) > 1 else ''}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        value = f"{self.median / scale:.2f} {short}"
        if len(self.raw_times) > 1:
            value = f"Median: {value}\n  IQR:    {self.iqr / scale:.2f} {short}"
        return "\n".join(told) + f"\n  {value}\n  {blocks}, {runs}, {threads}"


class Timer:
    """Times a statement as timeit.Timer does; on one thread unless told."""

    def __init__(
        self, stmt="pass", setup="pass", timer=timeit.default_timer, globals=None, label=None, sub_label=None,
        description=None, num_threads=1,
    ):  # fmt: skip
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._task = TaskSpec(str(stmt), str(setup), label, sub_label, description, num_threads)

    def _run(self, number):
        before = _C.get_num_threads()
        _C.set_num_threads(self._task.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            _C.set_num_threads(before)

    def _measured(self, number, times):
        return Measurement(number, times, self._task)

    def timeit(self, number=1000000):
        """One block of that many runs, after a warm-up."""
        self._run(max(number // 100, 2))
        return self._measured(number, [self._run(number)])

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Blocks, each of about a thousandth of the time, until the time has passed."""
        number = self._block(min_run_time / 1000)
        times = []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Blocks until their quartiles are within threshold of the median."""
        number, times = self._block(min_run_time), []
        while True:
            times.append(self._run(number))
            now = self._measured(number, times)
            if sum(times) >= max_run_time or len(times) > 3 and now.iqr < threshold * now.median:
                return now

    def _block(self, seconds):
        number = 1
        self._run(2)
        while self._run(number) < seconds:
            number *= 10
        return number
