"""adjoin.utils.data.dataset: what can be indexed, or only iterated, to get examples."""

import bisect
import itertools
import math
import warnings

import adjoin


class Dataset:
    """Examples by key: a subclass defines ``__getitem__`` and, for most samplers, ``__len__``.

    ``__getitems__(list of keys)`` may be defined to fetch a batch at once.
    """

    def __class_getitem__(cls, item):
        return cls  # Dataset[T] documents what comes out

    def __getitem__(self, index):
        raise NotImplementedError(
            f"Subclasses of Dataset should implement __getitem__. {type(self).__name__} does not."
        )

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Examples one after the other: a subclass defines ``__iter__``."""

    def __iter__(self):
        raise NotImplementedError(
            f"Subclasses of IterableDataset should implement __iter__. {type(self).__name__} does not."
        )

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors that agree in their first size; an example is a tuple of rows."""

    def __init__(self, *tensors):
        for tensor in tensors:
            if isinstance(tensor, (list, tuple)):
                raise TypeError(
                    f"TensorDataset: tensors are wanted, not a {type(tensor).__name__}; use adjoin.tensor()"
                )
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            found = ", ".join(str(tensor.size(0)) for tensor in tensors)
            raise AssertionError(
                f"TensorDataset: Size mismatch between tensors: their first sizes are {found}; give as many rows of each"
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Data sets side by side: an example is a tuple, or a dictionary when they were given by
    name."""

    def __init__(self, *args, **kwargs):
        if not args and not kwargs:
            raise ValueError("StackDataset: At least one dataset should be passed")
        if args and kwargs:
            raise ValueError("StackDataset: Supported either by position or by name; pass data sets of one kind")
        self.datasets = args or kwargs
        parts = args or tuple(kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError(
                f"StackDataset: Size mismatch between datasets: {', '.join(str(len(part)) for part in parts)} examples"
            )

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices):
        """Several examples; a part that gives several at once is asked once."""
        named = isinstance(self.datasets, dict)
        columns = [self._column(part, indices) for part in (self.datasets.values() if named else self.datasets)]
        rows = zip(*columns, strict=True)
        return [dict(zip(self.datasets, row, strict=True)) for row in rows] if named else list(rows)

    @staticmethod
    def _column(part, indices):
        if not callable(getattr(part, "__getitems__", None)):
            return [part[index] for index in indices]
        items = part.__getitems__(indices)
        if len(items) != len(indices):
            raise ValueError(
                f"StackDataset: Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
            )
        return items

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Data sets one after the other, by index."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(part) for part in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"index {index} is out of range for {len(self)} examples")
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def _checked(self):
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")  # noqa: TRY004  (PyTorch's class)
            yield part

    def __iter__(self):
        for part in self._checked():
            yield from part

    def __len__(self):
        return sum(len(part) for part in self._checked())


class Subset(Dataset):
    """The examples of ``dataset`` at ``indices``."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        chosen = [self.indices[i] for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        return fetch(chosen) if callable(fetch) else [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Cuts a data set at random into parts of the given lengths, or of the given shares, which
    sum to 1."""
    lengths = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(len(dataset) * share) for share in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
        for i, size in enumerate(lengths):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.",
                    stacklevel=2,
                )
    if sum(lengths) != len(dataset):
        raise ValueError(
            "random_split: Sum of input lengths does not equal the length of the input dataset! "
            f"{sum(lengths)} is not {len(dataset)}; fractions that sum to 1 do as well"
        )
    order = adjoin.randperm(sum(lengths), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, lengths, strict=True)]
