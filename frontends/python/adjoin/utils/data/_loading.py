"""adjoin.utils.data._loading: batches from worker processes, in order; what became of a worker that died."""

import collections
import contextlib
import copy
import itertools
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from multiprocessing import connection

from ... import _shared
from ... import multiprocessing as _sharing  # noqa: F401  (teaches pipes to share tensors)
from . import _worker
from ._iterators import _BaseDataLoaderIter

_GRACE = 5.0  # seconds that a worker has to finish its batch and end by itself
_SHORT_GRACE = 0.5  # the same after a failure


def _killed_for_memory():
    """How many processes of this control group the system has killed for memory, or None."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        group = "/"
        with open("/proc/self/cgroup") as file:
            for line in file:
                if line.startswith("0::"):
                    group = line.strip()[3:]
        for path in (f"/sys/fs/cgroup{group}/memory.events", "/sys/fs/cgroup/memory.events",
                     "/sys/fs/cgroup/memory/memory.oom_control"):  # fmt: skip
            if os.path.exists(path):
                with open(path) as file:
                    return int(dict(line.split() for line in file)["oom_kill"])
    return None


class Worker:
    """A worker process as its loader sees it."""

    def __init__(self, context, work):
        self.number = work.number
        tasks, self.tasks = context.Pipe(duplex=False)
        self.results, results = context.Pipe(duplex=False)
        _worker.ends.update((self.tasks, self.results))
        process = context.Process(target=_worker.run, args=(work, tasks, results, os.getpid()), daemon=True)
        process.name = f"adjoin loader {work.number}"
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the worker ignores it
        try:
            process.start()
        except BaseException:
            _worker.ends.difference_update((self.tasks, self.results))
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            tasks.close()
            results.close()
        self.process = process
        self.pid = process.pid
        self.sentinel = process.sentinel
        self.own_sentinel = False
        with contextlib.suppress(OSError):  # not fooled by processes that the worker leaves behind
            self.sentinel, self.own_sentinel = os.pidfd_open(process.pid), True
        self.outstanding = 0
        self.active = True

    def send(self, message):
        with contextlib.suppress(BrokenPipeError):  # its death is noticed where its results are awaited
            self.tasks.send_bytes(pickle.dumps(message, -1))

    def close(self):
        _worker.ends.difference_update((self.tasks, self.results))
        self.tasks.close()
        self.results.close()
        if self.own_sentinel:
            os.close(self.sentinel)
            self.own_sentinel = False
        with contextlib.suppress(ValueError):  # it goes on, killed though it was
            self.process.close()

    def cause_of_death(self, killed_before):
        """A sentence for people."""
        self.process.join(_GRACE)
        code = self.process.exitcode
        who = f"DataLoader worker {self.number} (pid {self.pid})"
        if code is None:
            return f"{who} closed its pipe and goes on: the data set or worker_init_fn closed files that are not theirs"
        if code >= 0:
            return f"{who} exited unexpectedly with code {code}: the data set, collate_fn or worker_init_fn called exit"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
        text = f"{who} was killed by signal {-code} ({name})"
        if code == -signal.SIGKILL:
            killed = _killed_for_memory()
            if killed is None or killed_before is None:
                return (
                    text
                    + ": a person, or the system for want of memory (see dmesg); lower num_workers or prefetch_factor"
                )
            if killed > killed_before:
                return (
                    text
                    + ": the system was short of memory and chose it; lower num_workers, prefetch_factor or batch_size"
                )
            return text + ": not for want of memory in this control group, so a person or a program sent it"
        if code in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE, -signal.SIGILL):
            return (
                text
                + ": native code that the data set calls crashed; try num_workers=0 under faulthandler to see where"
            )
        return text


class Batches(_BaseDataLoaderIter):
    """An iterator over the batches that workers make."""

    def __init__(self, loader, seed):
        self.loader = loader
        if loader.persistent_workers:  # it keeps this object: who drops it ends the workers at once
            self.loader = copy.copy(loader)
            self.loader._batches = None
        self.pid = os.getpid()
        self.workers = []
        self.closed = False
        self.failed = ""
        self.epoch = 0
        self.finish = _shared.trim
        self.killed_before = _killed_for_memory()
        context = loader.multiprocessing_context or multiprocessing.get_context()
        forked = context.get_start_method() == "fork"
        try:
            for number in range(loader.num_workers):
                work = _worker.Work(
                    loader.dataset, loader._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last,
                    seed + number, number, loader.num_workers, loader.worker_init_fn, forked,
                )  # fmt: skip
                self.workers.append(Worker(context, work))
        except BaseException:
            self.close()
            raise
        self._begin()

    def restart(self):
        """A new pass with the same workers; what the last one left comes back marked as old."""
        self.epoch += 1
        for worker in self.workers:
            worker.active, worker.outstanding = True, 0
            worker.send((self.epoch, None, None))
        self._begin()

    def _begin(self):
        self.keys = iter(self.loader._key_sampler)
        self.sent = self.given = 0  # numbers of tasks
        self.who = {}  # task -> worker, of those not given
        self.ready = {}  # task -> (ended, data)
        self.order = collections.deque()  # tasks that are ready, as they came
        self.turn = itertools.cycle(self.workers)
        self.batches = 0
        for _ in range(self.loader.prefetch_factor * len(self.workers)):
            self._send()

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader)

    def _send(self):
        """Gives the next keys to a worker that takes part."""
        worker = self._next_worker()
        if worker is None:
            return
        try:
            keys = next(self.keys)
        except StopIteration:
            return
        self.who[self.sent] = worker
        worker.outstanding += 1
        worker.send((self.epoch, self.sent, keys))
        self.sent += 1

    def _next_worker(self):
        active = [worker for worker in self.workers if worker.active]
        if not active:
            return None
        if not self.loader.in_order:
            return min(active, key=lambda worker: worker.outstanding)
        return next(worker for worker in self.turn if worker.active)

    def __next__(self):
        if self.failed:
            raise RuntimeError(f"{self.failed}; start a new pass")
        while self.who:
            number = self._next_ready()
            if number is None:
                continue
            ended, data = self.ready.pop(number)
            worker = self.who.pop(number)
            if ended:
                worker.active = False
                self._send()
                continue
            self._send()
            if isinstance(data, _worker.Failure):
                data.reraise()
            self._count()
            return data
        if not self.loader.persistent_workers:
            self.close()
        raise StopIteration

    def _next_ready(self):
        """The number of the task whose turn it is, once its result is there."""
        self._receive(0)
        end = time.monotonic() + self.loader.timeout if self.loader.timeout > 0 else None
        while True:
            if self.loader.in_order:
                first = next(iter(self.who))
                if first in self.ready:
                    return first
            elif self.order:
                return self.order.popleft()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                self._fail(
                    f"DataLoader timed out after {self.loader.timeout} seconds: a worker is slow or waits for something; "
                    "raise timeout, or look with num_workers=0"
                )
            self._receive(left)

    def _receive(self, timeout):
        """Takes what has come; raises if a worker has died whose results are not all here."""
        by_end = {}
        for worker in self.workers:
            by_end[worker.results] = by_end[worker.sentinel] = worker
        found = connection.wait(list(by_end), timeout)
        dead = []
        for end in found:
            worker = by_end[end]
            if end is not worker.results:
                dead.append(worker)
                continue
            try:
                self._take(worker, worker.results.recv_bytes())
            except (EOFError, OSError, _shared.SenderEndedError):
                dead.append(worker)
        for worker in dead:
            with contextlib.suppress(EOFError, OSError, _shared.SenderEndedError):
                while worker.results.poll():
                    self._take(worker, worker.results.recv_bytes())
            self._fail(worker.cause_of_death(self.killed_before))

    def _fail(self, why):
        self.failed = why
        self.close(_SHORT_GRACE)
        raise RuntimeError(why)

    def _take(self, worker, text):
        epoch, number, ended, data = pickle.loads(text)
        if epoch != self.epoch:
            return  # of a pass that was left early
        worker.outstanding -= 1
        self.ready[number] = ended, data
        self.order.append(number)

    def _count(self):
        self.batches += 1
        loader = self.loader
        if loader._iterable and self.batches > (told := loader._told_length()) >= 0:
            warnings.warn(
                f"Length of IterableDataset {loader.dataset} was reported to be {told} by len() of the loader, but {self.batches} samples "
                "have been fetched. For multiprocessing data-loading, this says that each worker gives all: let it give its own part, by "
                "get_worker_info()",
                stacklevel=4,
            )

    def close(self, grace=_GRACE):
        """Ends the workers: kindly, then firmly."""
        if self.closed or self.pid != os.getpid():  # a fork has this object too, but not the workers
            return
        self.closed = True
        for worker in self.workers:
            worker.send(None)
        end = time.monotonic() + grace
        for worker in self.workers:
            worker.process.join(max(0, end - time.monotonic()))
            for stop in (worker.process.terminate, worker.process.kill):
                if worker.process.is_alive():
                    stop()
                    worker.process.join(1)
            worker.close()
        self.ready, self.who = {}, {}
        self.finish()

    _shutdown_workers = close  # as libraries call it

    def __del__(self):
        with contextlib.suppress(Exception):
            self.close()
