"""tests/python/tensor/tolist_test.py: lists of floats are made again of what nobody holds any more, and of nothing else."""

import adjoin
import pytest


@pytest.fixture(params=[adjoin.float32, adjoin.float64], ids=str)
def dtype(request):
    return request.param


def test_what_is_held_stays(dtype):
    first = adjoin.arange(5).to(dtype).tolist()
    second = adjoin.arange(5, 10).to(dtype).tolist()
    assert first is not second
    assert first == [0, 1, 2, 3, 4]
    assert second == [5, 6, 7, 8, 9]


def test_a_number_that_is_held_stays(dtype):
    a, b = adjoin.arange(4).to(dtype), adjoin.full((4,), 7.0).to(dtype)
    held = [a.tolist()[i] for i in (0, 3)]
    for _ in range(3):
        assert b.tolist() == [7, 7, 7, 7]
    assert held == [0, 3]


def test_strangers_in_a_dropped_list_are_let_go(dtype):
    class Noisy(float):
        def __del__(self):
            again.append(adjoin.ones(3, dtype=dtype).tolist())

    again = []
    for stranger in (1, "a", None, [2], True, Noisy(3)):
        made = adjoin.zeros(3, dtype=dtype).tolist()
        made[1] = stranger
        del made, stranger
        made = adjoin.tensor([4.0, 5.0, 6.0], dtype=dtype).tolist()
        assert made == [4, 5, 6]
        assert all(type(x) is float for x in made)
    assert again == [[1, 1, 1]]


def test_a_list_of_another_length(dtype):
    made = adjoin.zeros(3, dtype=dtype).tolist()
    made.append(9.0)
    del made
    assert adjoin.ones(3, dtype=dtype).tolist() == [1, 1, 1]
    assert adjoin.ones(4, dtype=dtype).tolist() == [1, 1, 1, 1]
    assert adjoin.ones(0, dtype=dtype).tolist() == []
    made = adjoin.ones(0, dtype=dtype).tolist()
    made.append(1)
    del made
    assert adjoin.ones(0, dtype=dtype).tolist() == []


def test_strided_and_long(dtype):
    x = adjoin.arange(2000).to(dtype)
    for view in (x[::3], x[:200].flip(0), x[:256], x[:257], x[5:6].expand(9)):
        for _ in range(2):
            assert view.tolist() == [view[i].item() for i in range(len(view))]


def test_an_iterator_keeps_its_list(dtype):
    walk = iter(adjoin.arange(3).to(dtype).tolist())
    assert next(walk) == 0
    assert adjoin.full((3,), 8.0).to(dtype).tolist() == [8, 8, 8]
    assert list(walk) == [1, 2]


def test_nested_lists_and_their_parts(dtype):
    x = adjoin.arange(12).to(dtype).reshape(3, 2, 2)
    first = x.tolist()
    assert first == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    row, number = first[1], first[2][0][1]
    del first
    for _ in range(2):
        assert (x + 1).tolist()[1] == [[5, 6], [7, 8]]
    assert row == [[4, 5], [6, 7]]
    assert number == 9
    assert x.reshape(2, 6).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert x.permute(2, 0, 1)[:, :2].tolist() == [[[0, 2], [4, 6]], [[1, 3], [5, 7]]]
    assert adjoin.zeros(2, 0, dtype=dtype).tolist() == [[], []]
    assert adjoin.zeros(0, 2, dtype=dtype).tolist() == []
    spoiled = x.tolist()
    spoiled[0] = 5.0
    spoiled[1][0].append(spoiled)
    del spoiled
    assert x.tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
