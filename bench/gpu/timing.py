"""bench/gpu/timing.py: what a call takes on the card, by the events of a library (`adjoin.cuda` or its like), and on the host."""

import statistics
import time

ROUNDS = 5
SAMPLE = 5.0  # milliseconds that a sample shall take at least, so that the events' own time is nothing


def once(f, gpus, count):
    """Milliseconds of so many calls."""
    begin, end = gpus.Event(enable_timing=True), gpus.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        f()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def repeats(f, gpus):
    """How many calls make a sample; the first one, which warms up, does not count."""
    once(f, gpus, 1)
    return max(1, min(1000, int(SAMPLE / max(once(f, gpus, 1), 1e-3))))


def milliseconds(f, gpus):
    """The median of samples."""
    count = repeats(f, gpus)
    return statistics.median(once(f, gpus, count) for _ in range(ROUNDS)) / count


def seconds(f):
    """The median on the host's clock."""
    f()
    samples = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        f()
        samples.append(time.perf_counter() - begun)
    return statistics.median(samples)
