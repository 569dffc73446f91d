"""bench/gpu/timing.py: seconds of a call on the card, by its own events, and on the host."""

import statistics
import time

import adjoin
from pieces import DEVICE

gpus = getattr(adjoin, DEVICE)
ROUNDS = 5
SAMPLE = 5.0  # milliseconds that a sample shall take at least, so that the events' own time is nothing


def once(f, count):
    begin, end = gpus.Event(enable_timing=True), gpus.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        f()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def milliseconds(f):
    """The median of samples after a warm-up; a sample repeats the call until it takes a while."""
    once(f, 1)
    count = max(1, min(1000, int(SAMPLE / max(once(f, 1), 1e-3))))
    return statistics.median(once(f, count) for _ in range(ROUNDS)) / count


def median(f):
    """Seconds on the host's clock."""
    f()
    samples = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        f()
        samples.append(time.perf_counter() - begun)
    return statistics.median(samples)
