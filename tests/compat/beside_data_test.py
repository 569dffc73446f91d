"""tests/compat/beside_data_test.py: DataLoader, samplers and collation beside PyTorch's."""

import collections

import adjoin
import numpy as np
import pytest

torch = pytest.importorskip("torch")

Pair = collections.namedtuple("Pair", "a b")
EXAMPLES = [
    lambda T: [1, 2], lambda T: [1.5, 2.0], lambda T: [True, False], lambda T: ["a", "b"], lambda T: [b"a", b"b"],
    lambda T: [T.ones(2), T.zeros(2)], lambda T: [T.tensor(3), T.tensor(4)], lambda T: [np.float32(1), np.float32(2)],
    lambda T: [np.arange(3), np.arange(3)], lambda T: [(1, "x"), (2, "y")], lambda T: [[1, 2.0], [3, 4.0]],
    lambda T: [{"a": 1, "b": [T.ones(1)]}, {"a": 2, "b": [T.ones(1)]}], lambda T: [Pair(1, 2.0), Pair(3, 4.0)],
    lambda T: [collections.OrderedDict(k=1), collections.OrderedDict(k=2)],
    lambda T: [collections.defaultdict(int, k=1), collections.defaultdict(int, k=2)],
    lambda T: [collections.UserList([1, 2]), collections.UserList([3, 4])], lambda T: [range(2), range(2)],
]  # fmt: skip


def shown(x):
    if isinstance(x, (adjoin.Tensor, torch.Tensor)):
        return str(x.dtype).split(".")[-1], tuple(x.shape), x.tolist()
    if isinstance(x, collections.abc.Mapping):
        return type(x).__name__, {key: shown(value) for key, value in x.items()}
    if isinstance(x, (tuple, list, collections.UserList)):
        return type(x).__name__, [shown(value) for value in x]
    return x


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", ["default_collate", "default_convert"])
def test_collation(example, name):
    ours = getattr(adjoin.utils.data, name)(example(adjoin))
    assert shown(ours) == shown(getattr(torch.utils.data, name)(example(torch)))


class Stream:
    def __iter__(self):
        info = self.T.utils.data.get_worker_info()
        return iter(range(info.id if info else 0, 11, info.num_workers if info else 1))


def streams(T):
    return type("S", (Stream, T.utils.data.IterableDataset), {"T": T})()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("settings", [
    {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}, {"batch_size": 3, "persistent_workers": True},
])  # fmt: skip
@pytest.mark.parametrize("kind", ["map", "stream"])
def test_batches(kind, settings, workers):
    if workers == 0 and settings.get("persistent_workers"):
        pytest.skip("needs workers")

    def batches(T):
        data = streams(T) if kind == "stream" else T.utils.data.TensorDataset(T.arange(10), T.arange(20.0).view(10, 2))
        loader = T.utils.data.DataLoader(data, num_workers=workers, **settings)
        return [[shown(batch) for batch in loader] for _ in range(2)]

    assert batches(adjoin) == batches(torch)


@pytest.mark.parametrize("settings", [
    {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True}, {"batch_size": 0},
    {"num_workers": 1, "prefetch_factor": -1}, {"multiprocessing_context": "fork"}, {"batch_size": None, "drop_last": True},
    {"num_workers": 1, "multiprocessing_context": "none"}, {"num_workers": 1, "multiprocessing_context": 3},
    {"shuffle": True, "sampler": [1]}, {"batch_sampler": [[1]], "shuffle": True},
])  # fmt: skip
def test_the_same_settings_are_refused(settings):
    def kind(T):
        with pytest.raises(Exception) as caught:
            T.utils.data.DataLoader(list(range(4)), **settings)
        return type(caught.value)

    assert kind(adjoin) is kind(torch)


def test_distributed_sampler():
    def parts(T, **settings):
        return [len(list(T.utils.data.DistributedSampler(range(10), 3, rank, **settings))) for rank in range(3)]

    for settings in ({}, {"drop_last": True}, {"shuffle": False}):
        assert parts(adjoin, **settings) == parts(torch, **settings)
    plain = [list(adjoin.utils.data.DistributedSampler(range(10), 3, rank, shuffle=False)) for rank in range(3)]
    assert plain == [list(torch.utils.data.DistributedSampler(range(10), 3, rank, shuffle=False)) for rank in range(3)]
