"""adjoin.utils.data.dataloader: batches of a data set, in the order of a sampler."""

import warnings

import adjoin

from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler


class _InfiniteSampler(Sampler):
    """The keys of a data set that has none."""

    def __iter__(self):
        while True:
            yield None


def get_worker_info():
    """What a worker process knows of itself; None in the main process."""
    return


class DataLoader:
    """Iterates over a data set in batches; every ``iter()`` starts a new pass.

    Give ``batch_size`` with ``shuffle`` or a ``sampler``, or a ``batch_sampler``;
    ``batch_size=None`` gives single examples. ``collate_fn`` makes a batch of a list of examples.
    Examples are loaded in the calling process.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None,
                 num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, timeout=0,
                 worker_init_fn=None, multiprocessing_context=None, generator=None, *,
                 prefetch_factor=None, persistent_workers=False, pin_memory_device="",
                 in_order=True):  # fmt: skip
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if num_workers > 0:
            raise NotImplementedError(
                f"DataLoader: num_workers is {num_workers}, but worker processes are not part "
                "of this "
                "version; pass num_workers=0 to load in the calling process"
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if prefetch_factor is not None or persistent_workers:
            raise ValueError(
                "DataLoader: prefetch_factor and persistent_workers need num_workers > 0; "
                "leave them out"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.generator = generator
        self._iterable = isinstance(dataset, IterableDataset)
        self._choose_samplers(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn

    def _choose_samplers(self, batch_size, shuffle, sampler, batch_sampler, drop_last):
        if self._iterable:
            for name, value in (
                ("shuffle", shuffle),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value not in (None, False):
                    raise ValueError(
                        "DataLoader with IterableDataset: expected unspecified "
                        f"{name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
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
    def _auto_collation(self):
        return self.batch_sampler is not None

    def __iter__(self):
        fetch = self._iterable_batches if self._iterable else self._indexed_batches
        for data in fetch():
            data = self.collate_fn(data)
            yield pin(data) if self.pin_memory and _can_pin() else data

    def _indexed_batches(self):
        dataset = self.dataset
        if not self._auto_collation:
            for key in self.sampler:
                yield dataset[key]
            return
        fetch = getattr(dataset, "__getitems__", None)
        for keys in self.batch_sampler:
            yield fetch(keys) if callable(fetch) else [dataset[key] for key in keys]

    def _iterable_batches(self):
        examples = iter(self.dataset)
        if not self._auto_collation:
            yield from examples
            return
        for count, keys in enumerate(self.batch_sampler, 1):
            batch = [example for _, example in zip(keys, examples, strict=False)]
            if not batch or (len(batch) < len(keys) and self.drop_last):
                return
            if self.batch_size and hasattr(self.dataset, "__len__") and count == len(self) + 1:
                warnings.warn(
                    f"Length of IterableDataset {self.dataset} was reported to be "
                    f"{len(self.dataset)}, "
                    "but more samples have been fetched.",
                    stacklevel=3,
                )
            yield batch
            if len(batch) < len(keys):
                return

    def __len__(self):
        if not self._iterable:
            return len(self.batch_sampler if self._auto_collation else self.sampler)
        length = len(self.dataset)
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
