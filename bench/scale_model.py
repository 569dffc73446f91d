"""bench/scale_model.py: how long a step takes on many processes, by events: what each computes, and when its collectives go.

A collective of n processes is a ring, a tree or a ring of hosts, whichever is soonest, of messages that take `latency` and their bytes
over `rate`. Processes have one wire: collectives go one after the other, each as soon as its last process has come. Compute and
wire go at once, unless processors move the bytes and none is free. What a process computes
differs from step to step by `jitter`, so a collective waits for the slowest.
"""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Wire:
    """Between neighbours: seconds a message, bytes a second; hosts of `per_host` devices have a faster one inside."""

    latency: float
    rate: float
    per_host: int = 1
    inner_latency: float = 0.0
    inner_rate: float = math.inf

    def _ring(self, n, size, latency, rate, passes):
        return passes * (n - 1) * (latency + size / n / rate) if n > 1 else 0.0

    def _ways(self, n, size, passes):
        """Seconds of each way; passes 2: all_reduce; 1: all_gather or reduce_scatter of `size` bytes in all."""
        inner = min(n, self.per_host)
        hosts = max(1, n // inner)
        yield self._ring(inner, size, self.inner_latency, self.inner_rate, passes) + self._ring(
            hosts, size / inner, self.latency, self.rate, passes
        )
        if hosts > 1 and inner == 1:
            yield self._ring(n, size, self.latency, self.rate, passes)
        steps = math.log2(hosts) if hosts > 1 else 0.0  # a tree each way, in pieces that follow each other
        yield self._ring(inner, size, self.inner_latency, self.inner_rate, passes) + passes * (
            steps * self.latency + (size / inner / self.rate if hosts > 1 else 0.0)
        )

    def all_reduce(self, n, size):
        """Seconds for `size` bytes on each of n processes."""
        return min(self._ways(n, size, 2)) if n > 1 else 0.0

    def all_gather(self, n, size):
        """Seconds until each of n processes has `size` bytes, of which each had a part; as long as reduce_scatter."""
        return min(self._ways(n, size, 1)) if n > 1 else 0.0


class Run:
    """A step of n processes: `compute` makes each busy, `start` gives a collective to the wire, `wait` waits for it."""

    def __init__(self, n, jitter=0.0, seed=0):
        self.at, self.wire = np.zeros(n), np.zeros(n)  # until when a process, and its wire, are busy
        self.exposed, self.jitter, self.rng = 0.0, jitter, np.random.default_rng(seed)

    def compute(self, seconds):
        """All processes compute, each a little longer than it should."""
        late = np.abs(self.rng.normal(0, self.jitter, len(self.at))) if self.jitter else 0.0
        self.at = self.at + seconds * (1 + late)

    def start(self, seconds, group=None):
        """A collective of groups of `group` neighbours (of all); when it is done, for each process."""
        size = len(self.at) if group is None else group
        ready = np.maximum(self.at, self.wire).reshape(-1, size)
        done = np.repeat(ready.max(axis=1) + seconds, size)
        self.wire = done
        return done

    def wait(self, done):
        """Nobody goes on before."""
        later = np.maximum(self.at, done)
        self.exposed += float((later - self.at).mean())
        self.at = later

    def seconds(self):
        """When the last one has ended."""
        return float(self.at.max())


def data_parallel(n, wire, forward, pieces, jitter=0.0, seed=0, at_once=True):
    """Seconds of a step whose backward pass has `pieces`: (seconds, bytes of the bucket that is full then, or 0).

    at_once: compute and wire go at the same time. Where processors move the bytes and none is free, each waits for the other.
    """
    run = Run(n, jitter, seed)
    run.compute(forward)
    works = []
    for seconds, size in pieces:
        run.compute(seconds)
        if size:
            works.append(run.start(wire.all_reduce(n, size)))
            if not at_once:
                run.wait(works[-1])
    for done in works:
        run.wait(done)
    return run


def sharded(n, wire, layers, forward, backward, size, jitter=0.0, seed=0):
    """fully_shard: each layer of `size` bytes is gathered for forward and again for backward, one ahead of its use."""
    run = Run(n, jitter, seed)
    gather = wire.all_gather(n, size)
    for seconds, scatters in ((forward, False), (backward, True)):
        coming = run.start(gather)
        last = None
        for layer in range(layers):
            run.wait(coming)
            if layer + 1 < layers:
                coming = run.start(gather)
            run.compute(seconds)
            if scatters:
                last = run.start(gather)
        if last is not None:
            run.wait(last)
    return run


def tensor_parallel(n, wire, degree, layers, forward, backward, activations, gradient, jitter=0.0, seed=0):
    """Layers in `degree` parts: two sums of `activations` bytes each way in each; gradients are reduced over the copies."""
    run = Run(n, jitter, seed)
    within = wire.all_reduce(degree, activations)
    across = dataclasses.replace(wire, per_host=1)  # the same part of each copy lies on another host
    copies, works = n // degree, []
    for seconds, back in ((forward, False), (backward, True)):
        for _ in range(layers):
            for _ in range(2):
                run.compute(seconds / 2)
                run.wait(run.start(within, degree))
            if back and copies > 1:
                works.append(run.start(across.all_reduce(copies, gradient / layers)))
    for done in works:
        run.wait(done)
    return run


def fitted(points, n=2):
    """A wire of measured (bytes, seconds of an all_reduce of n processes): the least relative squares."""
    size = np.array([p[0] for p in points], float)
    took = np.array([p[1] for p in points], float)
    # 2 (n - 1) (latency + size / n / rate)
    a = np.stack([np.full_like(size, 2 * (n - 1)), 2 * (n - 1) / n * size], 1) / took[:, None]
    (latency, per_byte), *_ = np.linalg.lstsq(a, np.ones_like(took), rcond=None)
    return Wire(max(float(latency), 1e-7), 1 / max(float(per_byte), 1e-13))
