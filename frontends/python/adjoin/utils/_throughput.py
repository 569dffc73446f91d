"""adjoin.utils._throughput: how many calls of a module in a second, from several threads."""

import dataclasses
import itertools
import threading
import time


@dataclasses.dataclass
class ExecutionStats:
    """What a benchmark has measured."""

    latency_avg_ms: float
    num_iters: int
    total_time_seconds: float

    @property
    def iters_per_second(self):
        """Calls in a second, of all threads together."""
        return self.num_iters / self.total_time_seconds

    def __str__(self):
        return (
            f"Average latency per example: {self.latency_avg_ms:.3f}ms\nTotal number of iterations: {self.num_iters}\n"
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}\n"
            f"Total time: {self.total_time_seconds:.3f}s"
        )

    __repr__ = __str__


class ThroughputBenchmark:
    """Calls a module, or a function, with inputs in turn, from several threads that each wait for its answer."""

    def __init__(self, module):
        self.module, self._inputs = module, []

    def add_input(self, *args, **kwargs):
        """Adds what a call is made with."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args, **kwargs):
        """One call; what it gives."""
        return self.module(*args, **kwargs)

    def benchmark(self, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""):
        """Calls the module ``num_warmup_iters`` times in each thread, then ``num_iters`` times in all, and gives ExecutionStats."""
        if not self._inputs:
            raise RuntimeError("ThroughputBenchmark: there are no inputs; add_input(...) adds some")
        if profiler_output_path:
            raise NotImplementedError(
                "ThroughputBenchmark: no trace is written; run benchmark() inside adjoin.profiler.profile()"
            )
        numbers, spent, errors = itertools.count(), [], []
        ready = threading.Barrier(num_calling_threads + 1)

        def call(number):
            args, kwargs = self._inputs[number % len(self._inputs)]
            self.module(*args, **kwargs)

        def work():
            try:
                for number in range(num_warmup_iters):
                    call(number)
            except Exception as error:
                errors.append(error)
            ready.wait()
            try:
                while not errors and (number := next(numbers)) < num_iters:
                    begin = time.perf_counter()
                    call(number)
                    spent.append(time.perf_counter() - begin)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        ready.wait()
        begin = time.perf_counter()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return ExecutionStats(1000 * sum(spent) / len(spent), len(spent), time.perf_counter() - begin)
