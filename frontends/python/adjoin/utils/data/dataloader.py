"""adjoin.utils.data.dataloader: batches of a data set, in the order of a sampler."""

import multiprocessing
import multiprocessing.context
import os
import warnings
from collections.abc import Callable
from typing import Any

import adjoin

from ..._hints import Hinting, absent
from ._iterators import _BaseDataLoaderIter, _DatasetKind, _SingleProcessDataLoaderIter  # noqa: F401
from .collate import default_collate, default_convert
from .datapipes.datapipe import IterDataPipe
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

_collate_fn_t = Callable[[list], Any]  # for annotations, as the next one
_worker_init_fn_t = Callable[[int], None]


def __getattr__(name):
    if name == "_MultiProcessingDataLoaderIter":
        from ._loading import Batches

        return Batches
    raise absent(__name__, name)


class _InfiniteSampler(Sampler):
    """The keys of a data set that has none."""

    def __iter__(self):
        while True:
            yield None


class DataLoader(Hinting):
    """Iterates over a data set in batches; every ``iter()`` starts a new pass.

    Give ``batch_size`` with ``shuffle`` or a ``sampler``, or a ``batch_sampler``;
    ``batch_size=None`` gives single examples. ``collate_fn`` makes a batch of a list of examples.
    Examples are loaded in the calling process, or by ``num_workers`` processes that have up to
    ``prefetch_factor`` batches ready each, in memory that this process sees; they are kept from
    pass to pass if ``persistent_workers``. Batches come in order unless ``in_order=False``.
    """

    def __class_getitem__(cls, item):
        return cls

    _settled = False  # until made: what batches are made of does not change afterwards

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None,
                 num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, timeout=0,
                 worker_init_fn=None, multiprocessing_context=None, generator=None, *,
                 prefetch_factor=None, persistent_workers=False, pin_memory_device="",
                 in_order=True):  # fmt: skip
        if num_workers < 0:
            raise ValueError(
                f"num_workers option should be non-negative, not {num_workers}; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0:
            if prefetch_factor is not None:
                raise ValueError(
                    "prefetch_factor option could only be specified in multiprocessing; let num_workers > 0 to enable it"
                )
            if persistent_workers:
                raise ValueError("persistent_workers option needs num_workers > 0")
        elif prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor < 1:
            raise ValueError("prefetch_factor option should be positive")
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if processors is not None and num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {num_workers} worker processes in total. This system has {processors} "
                "processors; excessive worker creation might get DataLoader running slow or even freeze, lower the number.",
                stacklevel=2,
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = self._context(multiprocessing_context)
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.generator = generator
        self._batches = None
        self._iterable = isinstance(dataset, IterableDataset)
        self._choose_samplers(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self._settled = True

    def __setattr__(self, name, value):
        if self._settled and name in (
            "dataset",
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "persistent_workers",
        ):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def _context(self, wanted):
        if wanted is None:
            return None
        if self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0"
            )
        if isinstance(wanted, str):
            known = multiprocessing.get_all_start_methods()
            if wanted not in known:
                raise ValueError(f"multiprocessing_context option should be one of {known}, but got {wanted!r}")
            return multiprocessing.get_context(wanted)
        if not isinstance(wanted, multiprocessing.context.BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or the name of a start method, but got "
                f"{wanted!r}"
            )
        return wanted

    def _choose_samplers(self, batch_size, shuffle, sampler, batch_sampler, drop_last):
        if isinstance(self.dataset, IterDataPipe):  # its own steps shuffle
            from .graph_settings import apply_shuffle_settings

            self.dataset, shuffle = apply_shuffle_settings(self.dataset, shuffle), None
        if self._iterable:
            for name, value in (
                ("shuffle", shuffle),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value not in (None, False):
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError(
                "DataLoader: sampler option is mutually exclusive with shuffle; leave one: RandomSampler shuffles too"
            )
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._iterable:
                sampler = _InfiniteSampler()
            elif shuffle:
                sampler = RandomSampler(self.dataset, generator=self.generator)
            else:
                sampler = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler

    @property
    def _iterator(self):
        """The pass whose workers are kept, or None."""
        return self._batches

    @_iterator.setter
    def _iterator(self, batches):
        self._batches = batches

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _key_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        # Drawn without workers too: the numbers that follow are the same with and without them.
        seed = int(adjoin.empty((), dtype=adjoin.int64).random_(generator=self.generator).item())
        if self.num_workers == 0:
            batches = _SingleProcessDataLoaderIter(self)
        elif self.persistent_workers and self._batches is not None and not self._batches.closed:
            batches = self._batches
            batches.restart()
        else:
            from ._loading import Batches

            batches = Batches(self, seed)
            if self.persistent_workers:
                self._batches = batches
        return map(pin, batches) if self.pin_memory and _can_pin() else batches

    def _told_length(self):
        """The number of batches that ``len()`` has told of a data set that is iterated over, or -2."""
        return self._told if self._iterable else -2

    _told = -2

    def __len__(self):
        if not self._iterable:
            return len(self.batch_sampler if self._auto_collation else self.sampler)
        self._told = self._batches_of(len(self.dataset))
        return self._told

    def _batches_of(self, length):
        if self.batch_size is None:
            return length
        full, rest = divmod(length, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)


def _can_pin():
    return adjoin.accelerator.is_available()


def pin(data):
    """Tensors, at any depth of mappings and sequences, copied to page-locked memory."""
    if isinstance(data, adjoin.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: pin(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin(value) for value in data))
    if isinstance(data, (list, tuple)):
        return type(data)(pin(value) for value in data)
    return data
