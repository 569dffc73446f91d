"""adjoin.utils.benchmark: times of statements: warmed up, on a given number of threads, as medians of several runs."""

import statistics
import timeit

from .. import _C


class Measurement:
    """Seconds of one run of a statement, measured in blocks of ``number_per_run``."""

    def __init__(self, number_per_run, raw_times, label, num_threads):
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.label, self.num_threads = label, num_threads

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

    def __repr__(self):
        power = next((p for p in (0, 3, 6) if self.median >= 10**-p), 9)
        value = f"{self.median * 10**power:.2f} {({0: 's', 3: 'ms', 6: 'us', 9: 'ns'})[power]}"
        blocks = f"{len(self.raw_times)} measurement{'s' if len(self.raw_times) > 1 else ''}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        return f"{self.label}\n  {value}\n  {blocks}, {self.number_per_run} runs per measurement, {threads}"


class Timer:
    """Times a statement as timeit.Timer does; on one thread unless told."""

    def __init__(
        self, stmt="pass", setup="pass", timer=timeit.default_timer, globals=None, label=None, sub_label=None,
        description=None, num_threads=1,
    ):  # fmt: skip
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._label, self._threads = label or str(stmt), num_threads

    def _run(self, number):
        before = _C.get_num_threads()
        _C.set_num_threads(self._threads)
        try:
            return self._timer.timeit(number)
        finally:
            _C.set_num_threads(before)

    def _measured(self, number, times):
        return Measurement(number, times, self._label, self._threads)

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
