"""adjoin.utils.data._iterators: what ``iter(DataLoader)`` gives, by the names that programs test for."""

import warnings

from ._fetch import Exhausted, fetcher


class _DatasetKind:
    """How a data set is read: by keys, or from its beginning on."""

    Map, Iterable = 0, 1


class _BaseDataLoaderIter:
    """One pass over a loader's batches."""

    def __iter__(self):
        return self


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass whose batches are made in the process that asks for them."""

    _num_workers = 0

    def __init__(self, loader):
        self._loader, self._dataset = loader, loader.dataset
        self._dataset_kind = _DatasetKind.Iterable if loader._iterable else _DatasetKind.Map
        self._fetch = fetcher(
            self._dataset, loader._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
        self._keys, self._batches = iter(loader._key_sampler), 0

    def __next__(self):
        # What an example raises ends no pass: the next call goes on with the next batch.
        keys = next(self._keys)
        try:
            batch = self._fetch(keys)
        except Exhausted:
            self._keys = iter(())
            raise StopIteration from None
        self._batches += 1
        if self._batches > (told := self._loader._told_length()) >= 0:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {told} by len() of the loader, but {self._batches} samples "
                "have been fetched.",
                stacklevel=2,
            )
        return batch

    def __len__(self):
        return len(self._loader)
