"""tests/python/data/data_test.py: data sets, samplers, collation and the loader."""

import pickle
import typing
from collections import namedtuple

import adjoin
import numpy as np
import pytest
from adjoin.utils import data
from adjoin.utils.data.datapipes import iter as streams
from adjoin.utils.data.datapipes import map as keyed

Pair = namedtuple("Pair", "a b")


def rows(count=10):
    return data.TensorDataset(adjoin.arange(count).view(count, 1), adjoin.arange(count))


def test_batches_in_order():
    loader = data.DataLoader(rows(), batch_size=4)
    assert len(loader) == 3
    assert [batch[1].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [x.shape[0] for x, _ in data.DataLoader(rows(), batch_size=4, drop_last=True)] == [4, 4]
    single = list(data.DataLoader(rows(3), batch_size=None))
    assert single[2][1].item() == 2 and single[0][0].shape == (1,)


def test_shuffling_is_seeded_and_differs_by_pass():
    def passes():
        adjoin.manual_seed(3)
        loader = data.DataLoader(rows(50), batch_size=50, shuffle=True)
        return [next(iter(loader))[1].tolist() for _ in range(2)]

    first, again = passes(), passes()
    assert first == again and first[0] != first[1] and sorted(first[0]) == list(range(50))
    generator = adjoin.Generator()
    generator.manual_seed(1)
    own = data.RandomSampler(range(20), generator=generator)
    assert sorted(own) == list(range(20))


def test_iterable_data():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(7))

    assert [b.tolist() for b in data.DataLoader(Stream(), batch_size=3)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
    assert len(list(data.DataLoader(Stream(), batch_size=3, drop_last=True))) == 2
    assert list(data.DataLoader(Stream(), batch_size=None)) == list(range(7))
    assert list(Stream() + Stream()) == [*range(7), *range(7)]
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        data.DataLoader(Stream(), shuffle=True)


def test_own_collation_and_fetching_at_once():
    class Squares(data.Dataset):
        def __len__(self):
            return 5

        def __getitems__(self, keys):
            return [key * key for key in keys]

    assert list(data.DataLoader(Squares(), batch_size=3, collate_fn=list)) == [[0, 1, 4], [9, 16]]


@pytest.mark.parametrize(
    "settings, error",
    [
        ({"num_workers": -1}, "should be non-negative"),
        ({"batch_size": 0}, "positive integer value"),
        ({"sampler": [0], "shuffle": True}, "mutually exclusive with shuffle"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
        ({"batch_sampler": [[0]], "batch_size": 3}, "mutually exclusive with batch_size"),
    ],
)
def test_settings_that_contradict(settings, error):
    with pytest.raises(ValueError, match=error):
        data.DataLoader(rows(), **settings)


def test_collation():
    collate = data.default_collate
    assert collate([1, 2]).dtype == adjoin.int64
    assert collate([1.5, 2.0]).dtype == adjoin.float64
    assert collate([np.float32(1), np.float32(2)]).dtype == adjoin.float32
    assert collate([np.ones(2), np.zeros(2)]).shape == (2, 2)
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([{"x": 1}, {"x": 2}])["x"].tolist() == [1, 2]
    assert [part.tolist() for part in collate([(1, 2.0), (3, 4.0)])] == [[1, 3], [2.0, 4.0]]
    assert collate([Pair(1, 2), Pair(3, 4)]).b.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="should be of equal size"):
        collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="found <class 'object'>"):
        collate([object()])


def test_conversion():
    convert = data.default_convert
    assert isinstance(convert(np.ones(2)), adjoin.Tensor)
    assert convert({"a": [1, "x"]}) == {"a": [1, "x"]}
    assert isinstance(convert(Pair(np.ones(1), 2)).a, adjoin.Tensor)


def test_joined_and_cut_data():
    joined = data.ConcatDataset([range(3), range(5)])
    assert (len(joined), joined[3], joined[-1]) == (8, 0, 4)
    with pytest.raises(IndexError):
        joined[8]
    assert list(data.Subset(range(10), [3, 1])) == [3, 1]
    parts = data.random_split(range(10), [0.5, 0.25, 0.25])
    assert [len(part) for part in parts] == [6, 2, 2]
    assert sorted(x for part in parts for x in part) == list(range(10))
    with pytest.raises(ValueError, match="does not equal the length"):
        data.random_split(range(10), [3, 3])
    assert data.StackDataset(range(3), range(3))[1] == (1, 1)
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(adjoin.ones(2), adjoin.ones(3))


def test_samplers():
    adjoin.manual_seed(0)
    assert len(list(data.RandomSampler(range(5), num_samples=12))) == 12
    assert set(data.RandomSampler(range(3), replacement=True, num_samples=100)) == {0, 1, 2}
    assert sorted(data.SubsetRandomSampler([7, 8, 9])) == [7, 8, 9]
    drawn = list(data.WeightedRandomSampler([1, 0, 3.0], 4000))
    assert drawn.count(1) == 0 and drawn.count(2) / 4000 == pytest.approx(0.75, abs=0.03)
    assert sorted(data.WeightedRandomSampler([1, 5, 3.0], 3, replacement=False)) == [0, 1, 2]
    batches = data.BatchSampler(data.SequentialSampler(range(7)), 3, drop_last=False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]] and len(batches) == 3
    with pytest.raises(RuntimeError, match="weighted sampling: 1 of 2 weights are positive"):
        list(data.WeightedRandomSampler([1.0, 0.0], 2, replacement=False))


def test_parts_for_processes():
    samplers = [data.distributed.DistributedSampler(range(10), 3, rank) for rank in range(3)]
    for sampler in samplers:
        sampler.set_epoch(4)
    keys = [list(sampler) for sampler in samplers]
    assert [len(part) for part in keys] == [4, 4, 4]
    assert set().union(*keys) == set(range(10))


# Chains of steps


def numbers(count=6):
    return streams.IterableWrapper(range(count))


def test_steps_of_streams():
    pipe = numbers().map(lambda x: x * x).filter(lambda x: x % 2 == 0).batch(2)
    assert list(pipe) == [[0, 4], [16]] and isinstance(next(iter(pipe)), data.DataChunk)
    assert list(pipe) == [[0, 4], [16]]  # again from the beginning
    assert list(numbers().batch(4, drop_last=True)) == [[0, 1, 2, 3]] and len(numbers().batch(4)) == 2
    assert list(numbers(3).concat(numbers(2))) == [0, 1, 2, 0, 1] and len(numbers(3).concat(numbers(2))) == 5
    assert list(numbers(3).zip(numbers(2))) == [(0, 0), (1, 1)] and len(numbers(3).zip(numbers(2))) == 2
    nested = streams.IterableWrapper([[[0, 1], [2]], [[3]]])
    assert list(nested.unbatch()) == [[0, 1], [2], [3]] and list(nested.unbatch(-1)) == [0, 1, 2, 3]
    with pytest.raises(IndexError, match="not that deep"):
        list(numbers().unbatch())
    assert next(iter(numbers(4).batch(4).collate())).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "input_col, output_col, wanted",
    [(0, None, (2, 2)), (1, 0, (4, 2)), (0, -1, (1, 2, 2)), ([0, 1], None, (3,)), ([0, 1], -1, (1, 2, 3))],
)
def test_steps_of_columns(input_col, output_col, wanted):
    function = (lambda a, b: a + b) if isinstance(input_col, list) else (lambda a: a * 2)
    assert list(streams.IterableWrapper([(1, 2)]).map(function, input_col, output_col)) == [wanted]


def test_columns_of_dicts():
    pipe = streams.IterableWrapper([{"a": 1, "b": 2}])
    assert list(pipe.map(lambda a, b: a + b, ["a", "b"])) == [{"a": 3}]
    assert list(pipe.filter(lambda b: b > 2, input_col="b")) == []
    with pytest.raises(ValueError, match="output_col is given and input_col is not"):
        pipe.map(len, output_col=1)


def test_steps_of_what_has_keys():
    pipe = keyed.SequenceWrapper([1, 2, 3]).map(lambda x: x * 10)
    assert [pipe[i] for i in range(len(pipe))] == [10, 20, 30]
    assert list(pipe.batch(2)) == [[10, 20], [30]] and len(pipe.batch(2, drop_last=True)) == 1
    both = pipe.concat(keyed.SequenceWrapper(["a"]))
    assert both[3] == "a" and both[1] == 20 and len(both) == 4
    with pytest.raises(IndexError, match="index 4 is out of bounds, there are 4"):
        both[4]
    assert pipe.zip(keyed.SequenceWrapper("xyz"))[2] == (30, "z")
    assert keyed.SequenceWrapper({"k": 5})["k"] == 5
    with pytest.raises(AttributeError, match="no attribute 'nope'; functional forms: batch, concat, map, shuffle, zip"):
        pipe.nope  # noqa: B018


def test_through_the_loader():
    assert [b.tolist() for b in data.DataLoader(numbers().map(float), batch_size=4)] == [[0, 1, 2, 3], [4, 5]]
    pipe = keyed.SequenceWrapper(range(4)).map(float)
    assert [b.tolist() for b in data.DataLoader(pipe, batch_size=2)] == [[0, 1], [2, 3]]


def test_one_iterator_at_a_time():
    pipe, resets = numbers(), []

    class Counting(data.IterDataPipe):
        def __iter__(self):
            yield from pipe

        def reset(self):
            resets.append(0)

    own = Counting()
    first = iter(own)
    assert next(first) == 0
    assert list(own) == [0, 1, 2, 3, 4, 5] and len(resets) == 2
    with pytest.raises(RuntimeError, match="invalidated because another iterator has been created.*Counting"):
        next(first)


class _Own(data.IterDataPipe):
    def __init__(self, source, by=2):
        self.source, self.by = source, by

    def __iter__(self):
        for x in self.source:
            yield x * self.by


@pytest.fixture
def forms():
    before = dict(data.IterDataPipe.functions), dict(data.MapDataPipe.functions)
    yield
    for cls, functions in zip((data.IterDataPipe, data.MapDataPipe), before, strict=True):
        cls.functions.clear()
        cls.functions.update(functions)


def test_own_forms(forms):
    assert data.functional_datapipe("times")(_Own) is _Own
    assert list(numbers(3).times(by=5)) == [0, 5, 10] and "times" in dir(numbers())
    with pytest.raises(Exception, match="times as it is already taken"):
        data.functional_datapipe("times")(_Own)
    with pytest.raises(TypeError, match="no class of IterDataPipe or MapDataPipe"):
        data.functional_datapipe("other")(int)
    data.MapDataPipe.register_function("first", lambda pipe: pipe[0])
    assert keyed.SequenceWrapper("abc").first() == "a"
    assert list(pickle.loads(pickle.dumps(_Own(numbers(3))))) == [0, 2, 4] and str(_Own(1)) == repr(_Own(1)) == "_Own"


def test_hooks_of_pickle():
    data.IterDataPipe.set_getstate_hook(lambda state: {**state, "by": 7})
    try:
        assert list(pickle.loads(pickle.dumps(_Own([1])))) == [7]
        with pytest.raises(RuntimeError, match="override existing getstate_hook"):
            data.IterDataPipe.set_getstate_hook(len)
    finally:
        data.IterDataPipe.set_getstate_hook(None)
    assert "getstate_hook" not in vars(data.IterDataPipe)  # the class is as it was
    data.IterDataPipe.set_getstate_hook(None)
    data.IterDataPipe.set_reduce_ex_hook(lambda pipe: (list, ([1, 2],)))
    try:
        assert pickle.loads(pickle.dumps(_Own([1]))) == [1, 2]
    finally:
        data.IterDataPipe.set_reduce_ex_hook(None)


def test_chance_is_refused_where_it_is_not_wanted(forms):
    chance = data.functional_datapipe("by_chance")(data.non_deterministic(_Own))
    some = data.non_deterministic(lambda source, by=2: by > 5)(_Own)
    assert list(numbers(2).by_chance()) == list(chance(range(2))) == list(some(range(2))) == [0, 2]
    with data.guaranteed_datapipes_determinism():
        for make in (lambda: chance([1]), lambda: numbers().by_chance(), lambda: some([1], by=6)):
            with pytest.raises(TypeError, match="_Own is non-deterministic.*guaranteed_datapipes_determinism"):
                make()
        assert list(some([1])) == [2]
    assert list(some([1], by=6)) == [6]
    with pytest.raises(TypeError, match="Only `IterDataPipe` can be decorated with `non_deterministic`, but int"):
        data.non_deterministic(int)
    with pytest.raises(TypeError, match="has to give a bool"):
        data.non_deterministic(lambda source: 1)(_Own)([1])


def typed(hint, values):
    class Typed(data.IterDataPipe[hint]):
        @data.runtime_validation
        def __iter__(self):
            yield from values

    return Typed()


@pytest.mark.parametrize(
    "hint, good, bad",
    [
        (int, [1, 2], [1, "2"]), (tuple[int, str], [(1, "a")], [("a", 1)]), (tuple[int, ...], [(), (1, 2)], [(1, "a")]),
        (list[int | None], [[1, None]], [[1.5]]), (dict[str, list[int]], [{"a": [1]}], [{"a": ["b"]}]),
        (adjoin.Tensor | None, [None, adjoin.ones(1)], [3]), (typing.Literal["a"], ["a"], ["b"]),
    ],
)  # fmt: skip
def test_examples_are_as_hinted(hint, good, bad):
    assert len(list(typed(hint, good))) == len(good)
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
        list(typed(hint, bad))
    with data.runtime_validation_disabled():
        assert len(list(typed(hint, bad))) == len(bad)
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
        list(typed(hint, bad))
    with pytest.raises(TypeError, match="Can not decorate function len"):
        data.runtime_validation(len)


def test_arguments_are_as_hinted():
    @data.argument_validation
    def take(pipe: data.IterDataPipe[int | str], other: int = 0):
        return list(pipe)

    assert take(typed(int, [1])) == [1] and take(typed(str | int, ["a"])) == ["a"]
    with pytest.raises(TypeError, match="Expected argument 'pipe' as a IterDataPipe, but found"):
        take([1])
    for wrong in (float, int | None, typing.Any):
        with pytest.raises(TypeError, match="Expected type of argument 'pipe' as a subtype of hint"):
            take(typed(wrong, []))
    nested = typed(tuple[bool, list[int]], [])

    @data.argument_validation
    def deeper(pipe: data.IterDataPipe[tuple[int, list]]):
        return True

    assert deeper(nested)
    with pytest.raises(TypeError, match="hint tuple"):
        deeper(typed(tuple[int], []))


def test_chunks_and_frames():
    chunk = data.DataChunk(x for x in (1, 2))
    assert chunk == [1, 2] and chunk.as_str("  ") == "  [1, 2]" and list(chunk.raw_iterator()) == [1, 2]

    class Frames(data.DFIterDataPipe):
        def __iter__(self):
            yield from ([1, 2], [3])

    assert list(Frames().map(sum)) == [3, 3] and Frames()._is_dfpipe()
    with pytest.raises(NotImplementedError, match="data frames are not traced"):
        data.functional_datapipe("frames", enable_df_api_tracing=True)(_Own)


class Faulty(data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 2:
            raise NotImplementedError(index)
        return index


def test_a_pass_goes_on_after_an_example_that_raised():
    batches, found = iter(data.DataLoader(Faulty(), 2)), []
    for _ in range(3):
        try:
            found.append(next(batches).tolist())
        except NotImplementedError as error:
            found.append(str(error))
    assert found == [[0, 1], "2", [4, 5]]
    with pytest.raises(StopIteration):
        next(batches)


class Told(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))

    def __len__(self):
        return 3


def test_more_examples_than_told_are_warned_of_once_the_length_was_asked(recwarn):
    loader = data.DataLoader(Told(), batch_size=1)
    assert len([x for x in loader]) == 5 and not recwarn.list  # noqa: C416  (list() asks for the length)
    assert len(loader) == 3
    batches = iter(loader)
    assert len([next(batches) for _ in range(3)]) == 3 and not recwarn.list
    for count in (4, 5):
        with pytest.warns(UserWarning, match=f"was reported to be 3 .*but {count} samples have been fetched"):
            next(batches)
    loader = data.DataLoader(Told(), batch_size=1, num_workers=2)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="but 10 samples have been fetched.*each worker"):
        assert len(list(loader)) == 10


class AtOnce(data.Dataset):
    def __init__(self, short=0):
        self.rows, self.short = adjoin.arange(4) * 10, short

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.rows[index]

    def __getitems__(self, indices):
        return self.rows[indices][: len(indices) - self.short]


def test_stacked_data_sets_give_several_at_once():
    assert data.StackDataset(AtOnce(), [1, 2, 3, 4]).__getitems__([0, 3]) == [(0, 1), (30, 4)]
    assert data.StackDataset(a=AtOnce(), b="abcd").__getitems__([2]) == [{"a": 20, "b": "c"}]
    with pytest.raises(ValueError, match="Nested dataset's output size mismatch. Expected 2, got 1"):
        data.StackDataset(AtOnce(1), [1, 2, 3, 4]).__getitems__([0, 3])
    with pytest.raises(ValueError, match="At least one dataset should be passed"):
        data.StackDataset()
    with pytest.raises(ValueError, match="Supported either"):
        data.StackDataset(AtOnce(), b="abcd")


def test_loaders_are_named_by_what_they_give():
    def make() -> data.DataLoader[list[int]]:
        return data.DataLoader(rows(2))

    assert len(make()) == 2
    with pytest.warns(UserWarning, match="excessive worker creation might get DataLoader running slow or even freeze"):
        data.DataLoader(rows(2), num_workers=1000)
    with pytest.raises(ValueError, match=r"multi-process loading \(num_workers > 0\), but got"):
        data.DataLoader(rows(2), multiprocessing_context="fork")


def test_weighted_samples_are_drawn_when_the_first_is_asked_for():
    sampler = data.WeightedRandomSampler([1, 2, 3.0], 5)
    passes, found = (iter(sampler), iter(sampler)), []
    for draws in passes:
        adjoin.manual_seed(3)
        found.append(list(draws))
    assert found[0] == found[1] and len(found[0]) == 5


def test_a_pass_over_a_loader_that_is_no_dataloader():
    from adjoin.utils.data.dataloader import _DatasetKind, _SingleProcessDataLoaderIter

    class Loader:
        _auto_collation, drop_last, collate_fn = False, False, staticmethod(lambda batch: batch)

        def __init__(self, dataset, kind, keys):
            self.dataset, self._dataset_kind, self._index_sampler = dataset, kind, keys

    rows = iter([adjoin.ones(2), adjoin.zeros(2)])
    streamed = _SingleProcessDataLoaderIter(Loader(rows, _DatasetKind.Iterable, range(9)))
    assert [batch.tolist() for batch in streamed] == [[1.0, 1.0], [0.0, 0.0]]
    keyed = _SingleProcessDataLoaderIter(Loader([5, 6, 7], _DatasetKind.Map, [2, 0]))
    assert list(keyed) == [7, 5]


def test_the_function_that_pins_a_batch_is_where_programs_look_for_it():
    from adjoin.utils.data._utils.pin_memory import pin_memory

    class Batch:
        def pin_memory(self):
            return "pinned"

    assert pin_memory({"a": [Batch(), 3], "b": (Batch(),)}, "cpu") == {"a": ["pinned", 3], "b": ("pinned",)}
