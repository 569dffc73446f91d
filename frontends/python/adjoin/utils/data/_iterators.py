"""adjoin.utils.data._iterators: what ``iter(DataLoader)`` gives, by the names that programs test for."""


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
        self._made = loader._here()

    def __next__(self):
        return next(self._made)

    def __len__(self):
        return len(self._loader)
