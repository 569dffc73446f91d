"""adjoin.utils.data.datapipes.iter: steps over streams; each is also a method of every IterDataPipe."""

import copy

from ...collate import default_collate
from .._decorator import functional_datapipe
from .._files import FileLister, FileOpener, RoutedDecoder, StreamReader  # noqa: F401
from .._order import SHARDING_PRIORITIES, Grouper, Sampler, ShardingFilter, Shuffler  # noqa: F401
from .._splitting import Demultiplexer, Forker, Multiplexer  # noqa: F401
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import validate_input_col


def _all_are_pipes(name, datapipes):
    if not datapipes:
        raise ValueError(f"{name}: no pipe is given")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError(f"{name}: Expected all inputs to be `IterDataPipe`; IterableWrapper makes one of a list")


class IterableWrapper(IterDataPipe):
    """The examples of something that can be iterated, copied first unless ``deepcopy=False``."""

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        yield from copy.deepcopy(self.iterable) if self.deepcopy else self.iterable

    def __len__(self):
        return len(self.iterable)


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """``fn`` of each example; with ``input_col`` of that item of it, which takes its place or goes to ``output_col``."""

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        if input_col is None and output_col is not None:
            raise ValueError(
                "map: output_col is given and input_col is not; `output_col` must be None when `input_col` is None"
            )
        if isinstance(output_col, list | tuple):
            if len(output_col) > 1:
                raise ValueError(f"map: `output_col` must be a single-element list or tuple, it has {len(output_col)}")
            output_col = output_col[0]
        if input_col is not None:
            validate_input_col(fn, input_col)
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def __iter__(self):
        for example in self.datapipe:
            yield self.fn(example) if self.input_col is None else self._within(example)

    def _within(self, example):
        columns, several = self.input_col, isinstance(self.input_col, (list, tuple))
        result = self.fn(*(example[c] for c in columns)) if several else self.fn(example[columns])
        made = dict(example) if isinstance(example, dict) else list(example)
        target = self.output_col if self.output_col is not None else columns
        if target == -1:
            made.append(result)
        elif isinstance(target, (list, tuple)):
            first, *others = target
            made[first] = result
            for column in sorted(others, reverse=True) if isinstance(made, list) else others:
                del made[column]
        else:
            made[target] = result
        return tuple(made) if isinstance(example, tuple) else made

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("collate")
class Collator(Mapper):
    """Each example, a batch, made one by ``collate_fn``."""

    def __init__(self, datapipe, collate_fn=default_collate):
        super().__init__(datapipe, collate_fn)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The examples of which ``filter_fn`` is true; with ``input_col`` of that item of them."""

    def __init__(self, datapipe, filter_fn, input_col=None):
        if input_col is not None:
            validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self):
        for example in self.datapipe:
            says = self._says(example)
            if not isinstance(says, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(says)}")
            if says:
                yield example

    def _says(self, example):
        columns = self.input_col
        if columns is None:
            return self.filter_fn(example)
        if isinstance(columns, list | tuple):
            return self.filter_fn(*(example[c] for c in columns))
        return self.filter_fn(example[columns])


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """So many examples at a time, as a DataChunk."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size < 1:
            raise AssertionError(
                f"batch: Batch size is required to be larger than 0! batch_size is {batch_size}, at least 1 is wanted"
            )
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self):
        waiting = []
        for example in self.datapipe:
            waiting.append(example)
            if len(waiting) == self.batch_size:
                yield self.wrapper_class(waiting)
                waiting = []
        if waiting and not self.drop_last:
            yield self.wrapper_class(waiting)

    def __len__(self):
        return (len(self.datapipe) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The items of examples, and so on for so many levels; -1: down to what is no list."""

    def __init__(self, datapipe, unbatch_level=1):
        if unbatch_level < -1:
            raise ValueError(f"unbatch: unbatch_level is {unbatch_level}, at least -1 is wanted")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for example in self.datapipe:
            yield from self._items(example, self.unbatch_level)

    def _items(self, example, level):
        if level == 0 or level == -1 and not isinstance(example, list):
            yield example
        elif not isinstance(example, list):
            raise IndexError(f"unbatch: unbatch_level is {self.unbatch_level}, and the data are not that deep")
        else:
            for item in example:
                yield from self._items(item, level if level == -1 else level - 1)


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """The examples of one pipe after those of another."""

    def __init__(self, *datapipes):
        _all_are_pipes("concat", datapipes)
        self.datapipes = datapipes

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of examples, one of each pipe, as long as all have some."""

    def __init__(self, *datapipes):
        _all_are_pipes("zip", datapipes)
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))
