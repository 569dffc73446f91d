"""tests/python/data/datapipes_test.py: steps over streams: one stream for several readers, orders, groups, files, readers in several processes."""

import json
import pickle
import warnings

import adjoin
import pytest
from adjoin.utils.data import DataLoader
from adjoin.utils.data.datapipes import map as map_pipes
from adjoin.utils.data.datapipes.iter import (
    FileLister,
    FileOpener,
    IterableWrapper,
    Sampler,
    Shuffler,
)
from adjoin.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from adjoin.utils.data.datapipes.utils.decoder import basichandlers
from adjoin.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration
from adjoin.utils.data.graph import traverse_dps
from adjoin.utils.data.graph_settings import apply_sharding, get_all_graph_pipes
from adjoin.utils.data.sampler import RandomSampler


def numbers(n=10):
    return IterableWrapper(range(n))


def test_forked_readers_get_the_same_examples_and_begin_together():
    a, b = numbers().fork(num_instances=2)
    assert list(zip(a, b, strict=True)) == [(i, i) for i in range(10)] and len(a) == 10
    first = iter(a)
    assert [next(first) for _ in range(3)] == [0, 1, 2]
    with pytest.warns(UserWarning, match="not exhausted"):
        again = iter(a)
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)
    assert list(again) == list(b) == list(range(10))
    c, d = IterableWrapper([[1]]).fork(num_instances=2, copy="deep")
    assert list(c)[0] is not list(d)[0]
    e, f = numbers().fork(num_instances=2, buffer_size=3)
    with pytest.raises(BufferError, match="insufficient"):
        list(e)
    with pytest.raises(ValueError, match="num_instances"):
        numbers().fork(num_instances=0)


def test_demux_sorts_and_mux_takes_in_turn():
    even, odd = numbers().demux(num_instances=2, classifier_fn=lambda x: x % 2)
    assert list(odd) == [1, 3, 5, 7, 9] and list(even) == [0, 2, 4, 6, 8]
    some, _ = numbers(4).demux(2, lambda x: None if x == 2 else 0, drop_none=True)
    assert list(some) == [0, 1, 3]
    late, _ = numbers().demux(num_instances=2, classifier_fn=lambda x: int(x < 5), buffer_size=4)
    with pytest.raises(BufferError):
        next(iter(late))
    with pytest.raises(ValueError, match="between 0 and 0. 1 is returned"):
        list(numbers().demux(1, lambda x: x % 2)[0])
    with pytest.warns(UserWarning, match="Unlimited buffer"):
        numbers().demux(2, lambda x: 0, buffer_size=-1)
    mixed = numbers(3).mux(numbers(2))
    assert list(mixed) == [0, 0, 1, 1] and len(mixed) == 4


def test_shuffles_follow_the_seed_and_lose_nothing():
    pipe = numbers().shuffle(buffer_size=4)
    adjoin.manual_seed(3)
    first = list(pipe)
    adjoin.manual_seed(3)
    assert list(pipe) == first != list(range(10)) and sorted(first) == list(range(10))
    assert list(pipe.set_seed(1)) == list(pipe.set_seed(1))
    assert list(pipe.set_shuffle(False)) == list(range(10))
    assert sorted(numbers().batch(3).shuffle(unbatch_level=1)) == list(range(10))
    keyed = map_pipes.SequenceWrapper({"a": 1, "b": 2}).shuffle(indices=["a", "b"])
    assert sorted(keyed) == [1, 2]
    with pytest.raises(AssertionError, match="buffer_size"):
        numbers().shuffle(buffer_size=0)
    assert sorted(Sampler(numbers(), RandomSampler)) == list(range(10))


def test_groups_go_out_full_and_the_largest_when_too_many_wait():
    pipe = IterableWrapper(["a1", "b1", "c1", "a2", "c2", "a3"]).groupby(lambda x: x[0], group_size=2)
    assert [list(g) for g in pipe] == [["a1", "a2"], ["c1", "c2"], ["b1"], ["a3"]]
    words = IterableWrapper(["a1", "b1", "a2", "c1"])
    kept = words.groupby(lambda x: x[0], buffer_size=3, keep_key=True)
    assert [(k, list(g)) for k, g in kept] == [("a", ["a1", "a2"]), ("b", ["b1"]), ("c", ["c1"])]
    with pytest.raises(RuntimeError, match="Failed to group"):
        list(numbers().groupby(lambda x: x, buffer_size=3, group_size=2, guaranteed_group_size=2))


def test_files_are_listed_opened_and_decoded(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.json").write_text(json.dumps({"x": 1}))
    (tmp_path / "c.bin").write_bytes(b"123456")
    listed = FileLister(str(tmp_path), recursive=True)
    assert [p.rpartition("/")[2] for p in listed] == ["a.txt", "c.bin", "b.json"]
    assert [p.rpartition("/")[2] for p in FileLister(str(tmp_path), ["*.bin", "*.txt"])] == ["a.txt", "c.bin"]
    opened = list(FileOpener(listed, mode="b"))
    decoded = dict(IterableWrapper(opened, deepcopy=False).routed_decode(basichandlers))
    assert [v for _, v in sorted(decoded.items())] == ["words", {"x": 1}, b"123456"]
    assert all(stream.closed for _, stream in opened)
    parts = FileLister(str(tmp_path), "*.bin").open_files(mode="b").read_from_stream(chunk=4)
    assert [part for _, part in parts] == [b"1234", b"56"]
    with pytest.raises(ValueError, match="Invalid mode"):
        FileOpener(listed, mode="w")


def test_readers_divide_the_data_and_a_pipe_knows_what_it_is_made_of():
    pipe = numbers().map(str).sharding_filter()
    graph = traverse_dps(pipe)
    assert [type(p).__name__ for p in get_all_graph_pipes(graph)] == ["ShardingFilter", "Mapper", "IterableWrapper"]
    apply_sharding(pipe, 3, 1)
    assert list(pipe) == ["1", "4", "7"] and len(pipe) == 3
    two = numbers().sharding_filter()
    two.apply_sharding(2, 1, SHARDING_PRIORITIES.DISTRIBUTED)
    two.apply_sharding(2, 0, SHARDING_PRIORITIES.MULTIPROCESSING)
    assert list(two) == [1, 5, 9]
    with pytest.raises(RuntimeError, match="cannot mix"):
        two.apply_sharding(2, 0)
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(numbers().sharding_filter().sharding_filter(), 2, 0)


def test_workers_divide_and_shuffle_alike_in_every_pass():
    pipe = numbers(20).shuffle().sharding_filter()
    loader = DataLoader(pipe, batch_size=None, num_workers=2, persistent_workers=True)
    passes = [list(loader) for _ in range(3)]
    assert all(sorted(one) == list(range(20)) for one in passes)
    assert passes[0] != passes[1] or passes[1] != passes[2]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(numbers(), shuffle=True, batch_size=None)
    assert isinstance(loader.dataset, Shuffler) and sorted(loader) == list(range(10))
    assert list(DataLoader(numbers().shuffle(), shuffle=False, batch_size=None)) == list(range(10))


def test_wrong_steps_are_refused():
    for wrong, error in (
        (lambda: numbers().batch(0), AssertionError),
        (lambda: list(numbers().filter(lambda x: 1)), ValueError),
        (lambda: numbers().zip([1]), TypeError),
        (lambda: map_pipes.SequenceWrapper([1]).concat([2]), TypeError),
        (lambda: numbers().map(lambda a, b: a, input_col=0), ValueError),
        (lambda: numbers().map(lambda a: a, input_col=[0, 1]), ValueError),
        (lambda: numbers().map(lambda a, *, b: a, input_col=0), ValueError),
        (lambda: numbers().map(abs, output_col=1), ValueError),
    ):
        with pytest.raises(error):
            wrong()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(IterableWrapper([(1, 2)]).map(lambda a, b=1, *c: a + b, [0, 1])) == [(3,)]
        assert list(IterableWrapper([(1, 2)]).filter(lambda a, b: a < b, input_col=[0, 1])) == [(1, 2)]


def test_a_pipe_goes_on_where_another_has_stopped():
    def chain():
        return numbers().map(lambda n: 10 * n).shuffle().batch(2)

    def seeded(pipe, n):
        return _simple_graph_snapshot_restoration(pipe, n, rng=adjoin.Generator().manual_seed(3))

    whole = chain()
    seeded(whole, 0)
    batches = list(whole)
    assert sorted(sum(batches, [])) == list(range(0, 100, 10))
    again = chain()
    seeded(again, 3)
    going = iter(again)
    assert list(going) == batches[3:] and again._number_of_samples_yielded == len(batches)
    assert len(list(again)) == len(batches)  # the next loop begins anew
    seeded(again, 2)
    with pytest.raises(RuntimeError, match="has not been restored"):
        seeded(again, 2)
    with pytest.raises(RuntimeError, match="exceeds the number of samples available, 5"):
        seeded(chain(), 6)
    a, b = chain().fork(2)
    pairs = a.zip(b)
    seeded(pairs, 4)
    assert list(pairs) == [(batches[4], batches[4])]


def test_a_pipe_that_travels_knows_how_many_examples_it_gave():
    pipe = numbers()
    reading = iter(pipe)
    assert [next(reading), next(reading)] == [0, 1]
    other = pickle.loads(pickle.dumps(pipe))
    _simple_graph_snapshot_restoration(other, other._number_of_samples_yielded, rng=adjoin.Generator())
    once_more = pickle.loads(pickle.dumps(other))  # what it would have gone on with stays behind
    assert list(other) == list(reading) == list(range(2, 10))
    assert list(once_more) == list(range(10))
