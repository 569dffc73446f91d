"""adjoin.utils.data.datapipes.map: steps over data with keys; each is also a method of every MapDataPipe."""

import copy
import random

from ._decorator import functional_datapipe
from ._order import _seed
from .datapipe import DataChunk, IterDataPipe, MapDataPipe


def _all_are_pipes(name, datapipes):
    if not datapipes:
        raise ValueError(f"{name}: no pipe is given")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError(f"{name}: Expected all inputs to be `MapDataPipe`; SequenceWrapper makes one of a list")
    if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
        raise TypeError(f"{name}: Expected all inputs to be `Sized`: each must have a length")


def _itself(example):
    return example


class SequenceWrapper(MapDataPipe):
    """The examples of a list or a dict, copied first unless ``deepcopy=False``."""

    def __init__(self, sequence, deepcopy=True):
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """``fn`` of each example."""

    def __init__(self, datapipe, fn=_itself):
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """So many examples at a time, as a DataChunk, of keys from 0."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size < 1:
            raise AssertionError(
                f"batch: Batch size is required to be larger than 0! batch_size is {batch_size}, at least 1 is wanted"
            )
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"batch: index {index} is out of bounds, there are {len(self)} batches")
        begin = index * self.batch_size
        keys = range(begin, min(begin + self.batch_size, len(self.datapipe)))
        return self.wrapper_class([self.datapipe[key] for key in keys])

    def __len__(self):
        return (len(self.datapipe) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The examples of one pipe after those of another."""

    def __init__(self, *datapipes):
        _all_are_pipes("concat", datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        if index < 0:
            raise IndexError(f"concat: index {index} is out of bounds, keys begin at 0")
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f"concat: index {index} is out of bounds, there are {len(self)} examples")

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of examples, one of each pipe."""

    def __init__(self, *datapipes):
        _all_are_pipes("zip", datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))


class Shuffler(IterDataPipe):
    """The examples as a stream in an order that is drawn anew at each start; ``indices`` are the keys, by default 0, 1, ..."""

    def __init__(self, datapipe, *, indices=None):
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle=True):
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        self._seed = seed
        return self

    def reset(self):
        if self._enabled:
            self._rng.seed(_seed() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self):
        keys = self._rng.sample(self.indices, len(self.indices)) if self._enabled else self.indices
        for key in keys:
            yield self.datapipe[key]

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
