"""tests/python/tensor/indexing_test.py: x[...] and x[...] = v, beside NumPy where both mean the same."""

import adjoin as aj
import pytest

np = pytest.importorskip("numpy")
A = np.arange(24.0).reshape(2, 3, 4)
MASK = A % 3 == 0


def fresh():
    return aj.tensor(A)


BASIC = [
    0, -1, (0, 1), (1, 2, 3), slice(1, None), (slice(None), 1), (slice(None), slice(0, 3, 2)), Ellipsis, (Ellipsis, 0),
    (0, Ellipsis), (0, Ellipsis, 1), None, (None, 0), (slice(None), None, 1), (Ellipsis, None), (1, None, slice(1, 3)),
    (slice(5, 9),), (slice(2, 1),), (slice(-1, None), slice(-2, -1)), (),
]  # fmt: skip
ADVANCED = [
    [0, 1], ([0, 1], [1, 2]), (slice(None), [0, 2]), (Ellipsis, [0, 3]), ([1], slice(None), [2]),
    ([[0, 1], [1, 0]],), (slice(None), np.array([2, 0])), MASK, (slice(None), np.array([True, False, True])),
    MASK[:, :, 0], (np.array([0, 1]), slice(1, 2)), np.array([-1, 0]),
]  # fmt: skip


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_get(key):
    want = A[key]
    got = fresh()[key]
    assert got.shape == want.shape and got.tolist() == want.tolist()


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_keys_give_views(key):
    t = fresh()
    t[key].add_(100)
    want = A.copy()
    want[key] += 100
    assert t.tolist() == want.tolist()


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_set_number(key):
    t, want = fresh(), A.copy()
    t[key] = -1.5
    want[key] = -1.5
    assert t.tolist() == want.tolist()


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_set_tensor(key):
    t, want = fresh(), A.copy()
    value = -np.arange(float(A[key].size)).reshape(A[key].shape) - 1
    t[key] = aj.tensor(value)
    want[key] = value
    assert t.tolist() == want.tolist()


def test_set_casts_and_broadcasts():
    t = fresh()
    t[0] = aj.tensor([1, 2, 3, 4])
    assert t[0].tolist() == [[1.0, 2.0, 3.0, 4.0]] * 3
    t[:, 0] = aj.ones(1, 1, 4)
    assert t[:, 0].tolist() == [[1.0] * 4] * 2
    t[t > 5] = aj.tensor(0)
    assert float(t.max()) <= 5
    t[0, 0] = [9, 8, 7, 6]
    assert t[0, 0].tolist() == [9.0, 8.0, 7.0, 6.0]
    t[0, 0] = np.zeros(4)
    assert t[0, 0].tolist() == [0.0] * 4


def test_index_tensors():
    t = fresh()
    i = aj.tensor([1, 0])
    assert t[i].tolist() == A[[1, 0]].tolist() and t[i, i].tolist() == A[[1, 0], [1, 0]].tolist()
    assert t[aj.tensor(1)].tolist() == A[1].tolist() and t[i.int()].tolist() == A[[1, 0]].tolist()
    assert t[t > 20].tolist() == A[A > 20].tolist()
    assert t[aj.tensor([True, False])].tolist() == A[[True, False]].tolist()


def test_bools():
    t = aj.arange(3)
    assert t[True].tolist() == [[0, 1, 2]] and t[False].shape == (0, 3)


@pytest.mark.parametrize(
    "key, error, words",
    [
        (2, IndexError, "out of bounds"),
        ((0, 3), IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
        ((slice(None), 0, 9), IndexError, "index 9 is out of bounds for dimension 2 with size 4"),
        ((None, 0, 9), IndexError, "index 9 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices: 4 for a tensor of 3 dimensions"),
        (slice(None, None, -1), ValueError, "step of a slice must be positive, not -1"),
        ((Ellipsis, Ellipsis), IndexError, "only one ..."),
        (1.5, IndexError, "1.5 is a float; ints, slices"),
        ("a", (IndexError, TypeError), "not str"),
        ([2], IndexError, "2"),
        (np.array([True, False, True]), IndexError, "mask's size 3 at dimension 0 does not match"),
        (np.array([0.5]), IndexError, "must be of an integer dtype or bool"),
    ],
    ids=str,
)
def test_bad_keys(key, error, words):
    with pytest.raises(error, match=words):
        fresh()[key]


def test_items_cannot_be_deleted():
    with pytest.raises(TypeError, match="does not support deleting"):
        del fresh()[0]


def test_random_keys_agree_with_numpy():
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        array = rng.standard_normal(shape)
        key = tuple(_random_part(rng, n) for n in shape[: rng.integers(0, len(shape) + 1)])
        got, want = aj.tensor(array)[key], array[key]
        assert got.shape == want.shape and got.tolist() == want.tolist(), (shape, key)


def _random_part(rng, n):
    kind = rng.integers(0, 3)
    if kind == 0:
        return int(rng.integers(-n, n))
    if kind == 1:
        low, high = sorted(int(x) for x in rng.integers(-n - 1, n + 2, 2))
        return slice(low, high, int(rng.integers(1, 3)))
    return slice(None)


def test_as_strided_stays_inside_the_memory():
    x = aj.arange(6.0)
    assert x.as_strided((2, 2), (3, 1), 1).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert x[2:4].as_strided((6,), (1,), 0).tolist() == x.tolist()  # the memory is the base's
    assert x[2:4].detach().as_strided((6,), (1,), 0).tolist() == x.tolist()
    for size, stride, offset in (((7,), (1,), 0), ((2, 2), (4, 2), 0), ((1,), (1,), 6), ((3,), (2**62,), 0)):
        with pytest.raises(RuntimeError, match="as_strided: .* reach outside the memory of 6 elements"):
            x.as_strided(size, stride, offset)
    with pytest.raises(RuntimeError, match="reach outside the memory of 0 elements"):
        aj.empty(0).as_strided((2, 2), (2, 1))
    assert aj.empty(0).as_strided((0, 3), (3, 1)).shape == (0, 3)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_scatter_with_an_empty_index_of_fewer_dimensions(device):
    """Nothing is written, and nothing of the index is read: the sanitizer build watches."""
    nothing = aj.zeros(0, dtype=aj.int64, device=device)
    for shape in ((3, 4), (3, 0, 2), (2, 3, 4)):
        x = aj.rand(*shape, device=device)
        for dim in (0, -1):
            assert aj.equal(x.scatter(dim, nothing, 7.0), x)
            assert aj.equal(x.scatter_add(dim, nothing, aj.zeros(0, device=device)), x)
