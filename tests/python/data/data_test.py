"""tests/python/data/data_test.py: data sets, samplers, collation and the loader."""

from collections import namedtuple

import adjoin
import numpy as np
import pytest
from adjoin.utils import data

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
