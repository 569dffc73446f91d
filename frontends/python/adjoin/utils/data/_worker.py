"""adjoin.utils.data._worker: what runs in a process that loads batches for another one."""

import contextlib
import dataclasses
import gc
import io
import os
import queue
import random
import signal
import sys
import threading
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler

import adjoin

from ... import _shared, _tracebacks
from . import collate as _collate
from ._fetch import Exhausted, fetcher
from .datapipes.datapipe import IterDataPipe

_info = None
ends = set()  # of pipes to workers, on the side of the loaders; a forked worker must not keep those of others open


class WorkerInfo:
    """id, num_workers, seed and dataset of a worker."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        return f"WorkerInfo({', '.join(f'{key}={value}' for key, value in self.__dict__.items())})"


def get_worker_info():
    """What a worker process knows of itself; None in the main process."""
    return _info


@dataclasses.dataclass
class Work:
    """All that a worker is given when it starts."""

    dataset: object
    is_iterable: bool
    batched: bool
    collate: object
    drop_last: bool
    seed: int
    number: int
    workers: int
    init: object
    forked: bool


class _KeyText(str):
    """The text of a KeyError, which is shown by its repr."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class Failure:
    """What was raised in a worker: raised again, with the worker's traceback in its text, where the batch was wanted."""

    def __init__(self, where):
        kind, _, _ = sys.exc_info()
        self.kind = kind
        self.text = f"Caught {kind.__name__} {where}.\nOriginal {_tracebacks.shown_as_text()}"

    def __reduce__(self):
        try:
            ForkingPickler.dumps(self.kind)
        except Exception:  # a class that the other side cannot find
            self.kind = RuntimeError
        return _failure, (self.kind, self.text)

    def reraise(self):
        """Raises an exception of the same class, or a RuntimeError where one cannot be made of a text."""
        if issubclass(self.kind, KeyError):
            raise KeyError(_KeyText(self.text))
        if not issubclass(self.kind, Exception) or issubclass(self.kind, StopIteration):
            raise RuntimeError(self.text)
        try:
            error = self.kind(self.text)
        except Exception:
            raise RuntimeError(self.text) from None
        try:
            raise error
        finally:
            del error  # its traceback knows this frame, and the loader and its workers would stay with them


def _failure(kind, text):
    made = Failure.__new__(Failure)
    made.kind, made.text = kind, text
    return made


def run(work, tasks, results, parent):
    """The worker's whole life. Messages: (epoch, number, keys) for a batch, (epoch, None, None) for a pass, None at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loader's to answer
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if work.forked:
        for end in ends:
            end.close()
        ends.clear()
        gc.freeze()  # the collector's marks would make pages differ from the parent's
    waiting, newest = queue.SimpleQueue(), [0]
    threading.Thread(target=_listen, args=(tasks, waiting, newest, parent), daemon=True).start()
    _shared.leave_at_once()
    with contextlib.suppress(BrokenPipeError):  # nobody wants the results any more
        _serve(work, waiting, newest, results)


def _listen(tasks, waiting, newest, parent):
    """Takes messages at once, so that the loader never waits to send one, and ends the process when the loader is gone."""
    sources = [tasks]
    with contextlib.suppress(OSError):
        sources.append(os.pidfd_open(parent))
    try:
        while True:
            if tasks not in connection.wait(sources):
                break
            message = ForkingPickler.loads(tasks.recv_bytes())
            waiting.put(message)
            if message is None:
                return
            newest[0] = message[0]
    except (EOFError, OSError):
        pass
    os._exit(1)


def _seed(work):
    """Python's generator and NumPy's are of one kind: of one key they would draw the same numbers, so NumPy's is longer."""
    random.seed(work.seed)
    adjoin.manual_seed(work.seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed([work.seed & 0xFFFFFFFF, work.seed >> 32 & 0xFFFFFFFF, 1])


def _divide(work, epoch=None):
    """Pipes that divide the data are told which reader this is; those that draw get seeds that all workers have, for each pass others."""
    if not isinstance(work.dataset, IterDataPipe):
        return
    from .graph_settings import SHARDING_PRIORITIES, apply_random_seed, apply_sharding

    if epoch is None:
        apply_sharding(work.dataset, work.workers, work.number, SHARDING_PRIORITIES.MULTIPROCESSING)
    else:
        shared = adjoin.Generator().manual_seed((work.seed - work.number + epoch) % 2**63)
        apply_random_seed(work.dataset, shared)


def _serve(work, waiting, newest, results):
    global _info
    where = f"in DataLoader worker process {work.number}"
    fetch = failure = None
    try:
        adjoin.set_num_threads(1)
        _seed(work)
        _info = WorkerInfo(id=work.number, num_workers=work.workers, seed=work.seed, dataset=work.dataset)
        _divide(work)
        if work.init is not None:
            work.init(work.number)
    except Exception:
        failure = Failure(where)
    while True:
        message = waiting.get()
        if message is None:
            return
        epoch, number, keys = message
        if epoch < newest[0]:
            continue  # of a pass that was left early
        if number is None or fetch is None:
            fetch, ended = None, False
            try:
                if not failure:
                    _divide(work, epoch)
                fetch = (
                    None
                    if failure
                    else fetcher(work.dataset, work.is_iterable, work.batched, work.collate, work.drop_last)
                )
            except Exception:
                failure = Failure(where)
            if number is None:
                continue
        data = failure
        if failure is None and not ended:
            try:
                with _collate.into_shared_memory():
                    data = fetch(keys)
            except Exhausted:
                ended = True
            except Exception:
                data = Failure(where)
        _answer(results, epoch, number, ended, data, where)
        data = None  # the memory of a batch is the loader's now


def _answer(results, epoch, number, ended, data, where):
    try:
        text = _pickled((epoch, number, ended, None if ended else data))
    except Exception:
        text = _pickled((epoch, number, False, Failure(where)))
    results.send_bytes(text)


def _pickled(message):
    file = io.BytesIO()
    ForkingPickler(file, -1).dump(message)
    return file.getbuffer()
