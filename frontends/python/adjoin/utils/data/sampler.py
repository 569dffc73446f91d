"""adjoin.utils.data.sampler: in which order examples are taken."""

import bisect
import itertools

import adjoin


class Sampler:
    """An iterable of keys into a data set; a subclass defines ``__iter__`` and, if it can,
    ``__len__``."""

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, …"""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


def _private_generator(generator):
    """The given generator, or one seeded from the global one, so that an epoch draws from it
    only once."""
    if generator is not None:
        return generator
    own = adjoin.Generator()
    own.manual_seed(int(adjoin.randint(0, 2**62, (), dtype=adjoin.int64).item()))
    return own


class RandomSampler(Sampler):
    """A fresh permutation each time, or draws with replacement; ``num_samples`` may exceed the
    data's size."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self):
        """How many keys one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        count = len(self.data_source)
        generator = _private_generator(self.generator)
        left = self.num_samples
        if self.replacement:
            while left > 0:  # in pieces, so that a long pass needs no long list
                size = min(left, 4096)
                yield from adjoin.randint(count, (size,), generator=generator).tolist()
                left -= size
            return
        while left > 0 and count > 0:
            yield from adjoin.randperm(count, generator=generator).tolist()[:left]
            left -= count

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in a fresh random order each time."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in adjoin.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn in proportion to ``weights``, which need not sum to 1."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(  # noqa: TRY004  (PyTorch's class)
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = adjoin.as_tensor(weights, dtype=adjoin.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        weights = self.weights.tolist()
        draws = adjoin.rand(self.num_samples, dtype=adjoin.float64, generator=self.generator).tolist()
        yield from _weighted(weights, draws, self.replacement)  # drawn when the first is asked for

    def __len__(self):
        return self.num_samples


def _weighted(weights, draws, replacement):
    """One index per uniform draw in [0, 1), by inverting the cumulative weights."""
    available = sum(1 for weight in weights if weight > 0)
    if min(weights) < 0 or available == 0 or (not replacement and available < len(draws)):
        raise RuntimeError(
            f"weighted sampling: {available} of {len(weights)} weights are positive and "
            f"{len(draws)} samples are wanted; weights have to be >= 0, one of them above"
        )
    chosen, ends = [], None
    for draw in draws:
        if ends is None or not replacement:
            ends = list(itertools.accumulate(weights))
            # A draw times the total may round up to the last end: no index beyond the last positive
            # weight.
            last = max(i for i, weight in enumerate(weights) if weight > 0)
        index = min(bisect.bisect_right(ends, draw * ends[-1]), last)
        chosen.append(index)
        if not replacement:
            weights[index] = 0.0
    return chosen


class BatchSampler(Sampler):
    """Lists of ``batch_size`` keys of another sampler; the last may be shorter, or dropped."""

    def __init__(self, sampler, batch_size, drop_last):
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")  # noqa: TRY004  (PyTorch's class)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)
