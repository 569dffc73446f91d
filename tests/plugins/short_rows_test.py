"""tests/plugins/short_rows_test.py: indexing, turns and order along lines of few elements, and around the sizes at which the
CPU takes another way: beside the reference backend and NumPy, all dtypes, tensors that are dense or not."""

import adjoin
import numpy as np
import pytest

RNG = np.random.default_rng(11)
NUMBERS = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
FLOATS = {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}
# the input's shape and the index's: whole lines, parts of them, fewer lines, none
SHAPES = [
    ((), ()),
    ((), (3,)),
    ((4,), ()),
    ((5,), (9,)),
    ((300, 8), (300, 8)),
    ((300, 8), (300, 3)),
    ((300, 8), (123, 8)),
    ((40, 3, 7), (40, 3, 20)),
    ((40, 3, 7), (40, 2, 20)),
    ((3, 4100), (3, 4100)),
    ((6, 1, 5), (6, 1, 5)),
    ((4, 0), (4, 0)),
    ((0, 4), (0, 2)),
    ((4, 5), (4, 0)),
]


def tensor(values, dtype, layout):
    """Dense, every other element of a wider tensor, or transposed."""
    values = np.asarray(values)
    if layout == "strided" and values.ndim:
        wide = np.repeat(values, 2, -1)
        return adjoin.tensor(wide, dtype=dtype)[..., ::2]
    if layout == "turned" and values.ndim > 1:
        return adjoin.tensor(np.ascontiguousarray(values.swapaxes(0, -1)), dtype=dtype).transpose(0, -1)
    return adjoin.tensor(values, dtype=dtype)


def some(shape, dtype):
    x = RNG.integers(1, 4, shape)
    return np.asarray(x).astype("float32" if dtype == "bfloat16" else dtype)


def same(call, *tensors):
    """On both backends the same; whole numbers, so that no sum is rounded."""
    got = call(*tensors)
    want = call(*[t.to("reference") if isinstance(t, adjoin.Tensor) else t for t in tensors]).cpu()
    assert got.dtype == want.dtype and got.shape == want.shape
    a, b = (t.to(adjoin.complex128).numpy() for t in (got, want))
    np.testing.assert_array_equal(a, b)


def forms():
    """Each shape, shape of an index, dimension and its size that an index can be made for."""
    for shape, index_shape in SHAPES:
        for dim in range(max(1, len(shape))):
            if any(i > n for d, (i, n) in enumerate(zip(index_shape, shape)) if d != dim):
                continue
            size = shape[dim] if shape else 1
            if size or 0 in index_shape:
                yield shape, index_shape, dim, size


@pytest.mark.parametrize("layout", ["dense", "strided", "turned"])
@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16", "bool"])
def test_gather_and_scatter(dtype, layout):
    kind = getattr(adjoin, dtype)
    for shape, index_shape, dim, size in forms():
        named = RNG.integers(0, max(size, 1), index_shape)
        x, y = (tensor(some(s, dtype), kind, layout) for s in (shape, index_shape))
        for index in (tensor(named, adjoin.int64, layout), tensor(named, adjoin.int32, layout)):
            same(lambda x, i: adjoin.gather(x, dim, i), x, index)
            if dtype != "bool":
                same(lambda x, i, y: adjoin.scatter_add(x, dim, i, y), x, index, y)
            same(lambda x, i: adjoin.scatter(x, dim, i, 1), x, index)
        # Of elements that share a place, any may be the one that stays: here they are equal.
        one = tensor(np.ones(index_shape, y.numpy().dtype if dtype != "bfloat16" else "float32"), kind, layout)
        same(lambda x, i, y: adjoin.scatter(x, dim, i, y), x, index, one)
        got = x.clone()
        assert np.array_equal(
            got.scatter_(dim, index, one).to(adjoin.complex128).numpy(),
            adjoin.scatter(x, dim, index, one).to(adjoin.complex128).numpy(),
        )


@pytest.mark.parametrize("layout", ["dense", "strided", "turned"])
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_scatter_reduce(dtype, how, layout):
    if dtype.startswith("complex") and how in ("amax", "amin"):
        return
    kind = getattr(adjoin, dtype)
    for shape, index_shape, dim, size in forms():
        index = tensor(RNG.integers(0, max(size, 1), index_shape), adjoin.int64, layout)
        x, y = (tensor(some(s, dtype), kind, layout) for s in (shape, index_shape))
        for self in (True, False):
            same(lambda x, i, y: adjoin.scatter_reduce(x, dim, i, y, how, include_self=self), x, index, y)
        if dtype == "float32":
            put = x.contiguous().clone()
            put.scatter_reduce_(dim, index, y, how)
            assert put.tolist() == adjoin.scatter_reduce(x, dim, index, y, how).tolist()


def test_mean_of_what_is_no_number():
    x = adjoin.tensor([[float("nan"), 1.0, float("inf"), -0.0]] * 3)
    index, y = adjoin.tensor([[1, 1, 2, 2]] * 3), adjoin.tensor([[2.0, 3.0, 1.0, 1.0]] * 3)
    for self, want in ((True, [np.nan, 2.0, np.inf, -0.0]), (False, [np.nan, 2.5, 1.0, -0.0])):
        got = adjoin.scatter_reduce(x, 1, index, y, "mean", include_self=self).numpy()
        np.testing.assert_array_equal(got, [want] * 3)
        assert np.signbit(got[:, 3]).all()


@pytest.mark.parametrize("shape", [(300, 8), (3, 700), (9,), (5, 4, 3)])
@pytest.mark.parametrize("wrong", [-1, "size"])
def test_an_index_outside_is_refused(shape, wrong):
    x = adjoin.ones(shape)
    for dim in range(len(shape)):
        bad = shape[dim] if wrong == "size" else wrong
        for place in (0, int(np.prod(shape)) // 2, int(np.prod(shape)) - 1):
            named = np.zeros(shape, np.int64)
            named.reshape(-1)[place] = bad
            index = adjoin.tensor(named)
            said = f"index {bad} is out of range for dimension {dim} with size {shape[dim]}"
            for call in (
                lambda: adjoin.gather(x, dim, index),
                lambda: adjoin.scatter(x, dim, index, x),
                lambda: adjoin.scatter_add(x, dim, index, x),
                lambda: adjoin.scatter_reduce(x, dim, index, x, "mean"),
                lambda: adjoin.scatter_reduce(x, dim, index, x, "sum"),
            ):
                with pytest.raises(IndexError, match=said):
                    call()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "int64", "complex128", "float32"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 9, 15, 16, 17, 33, 1000, 40_000])
def test_flip_and_roll(n, dtype):
    for lines in (1, 3, 50) if n < 1001 else (2,):
        x = RNG.integers(0, 99, (lines, n)).astype(dtype)
        for t in (adjoin.tensor(x), adjoin.tensor(np.ascontiguousarray(x.T)).t()):
            assert np.array_equal(adjoin.flip(t, (1,)).numpy(), x[:, ::-1])
            assert np.array_equal(adjoin.flip(t, (0, 1)).numpy(), x[::-1, ::-1])
            for by in (1, 3, 17, -3):  # the parts of long lines lie so few elements apart, page for page
                assert np.array_equal(adjoin.roll(t, by, 1).numpy(), np.roll(x, by, 1))


def test_rows_copied_a_little_ahead_of_where_they_are():
    x = adjoin.arange(3 * 4096, dtype=adjoin.int32).reshape(3, 4096)
    want = x.numpy().copy()
    for by in (1, 2, 7, 15, 16, 17):
        moved = adjoin.zeros_like(x)
        moved[:, by:] = x[:, :-by]
        assert np.array_equal(moved.numpy()[:, by:], want[:, :-by]) and not moved[:, :by].any()


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 33, 63, 64, 65])
@pytest.mark.parametrize("kind", ["float32", "float64", "few", "wide", "nan", "uint8", "bool", "float16"])
def test_order_of_short_lines(kind, n):
    shape = (37, n)
    x = {
        "few": lambda: RNG.integers(0, 3, shape),
        "wide": lambda: RNG.integers(-(2**63), 2**63 - 1, shape),
        "nan": lambda: np.where(RNG.random(shape) < 0.3, np.nan, np.round(RNG.standard_normal(shape))).astype(
            "float32"
        ),
        "bool": lambda: RNG.random(shape) < 0.5,
    }.get(kind, lambda: (RNG.standard_normal(shape) * 50 + 100).astype(kind))()
    ranks = np.unique(x, return_inverse=True)[1].reshape(shape)
    for descending in (False, True):
        order = np.argsort(-ranks if descending else ranks, axis=1, kind="stable")
        want = np.take_along_axis(x, order, 1)
        for t in (adjoin.tensor(x), adjoin.tensor(np.ascontiguousarray(x.T)).t()):
            values, places = adjoin.sort(t, 1, descending=descending, stable=True)
            assert np.array_equal(places.numpy(), order)
            np.testing.assert_array_equal(values.numpy(), want)
            for k in {1, (n + 1) // 2, n}:
                values, places = adjoin.topk(t, k, 1, largest=descending)
                assert np.array_equal(places.numpy(), order[:, :k])
                np.testing.assert_array_equal(values.numpy(), want[:, :k])
                if not descending:
                    values, places = adjoin.kthvalue(t, k, 1)
                    assert np.array_equal(places.numpy(), order[:, k - 1])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
def test_flip_of_several_dimensions_and_views(dtype):
    whole = RNG.integers(0, 99, (5, 6, 7, 40)).astype(dtype)
    t = adjoin.tensor(whole)
    views = [
        (t, whole),
        (t.permute(3, 1, 0, 2), whole.transpose(3, 1, 0, 2)),
        (t[::2, 1:5, :, 3:39:3], whole[::2, 1:5, :, 3:39:3]),
        (t[:, :1].expand(5, 4, 7, 40), np.broadcast_to(whole[:, :1], (5, 4, 7, 40))),
        (t[:0], whole[:0]),
    ]
    for view, want in views:
        for dims in ((0,), (3,), (-1, 0), (1, 2), (0, 1, 2, 3), ()):
            assert np.array_equal(adjoin.flip(view, dims).numpy(), np.flip(want, dims))
    out = adjoin.zeros((40, 7, 6, 5), dtype=t.dtype).permute(3, 2, 1, 0)
    adjoin.flip(t, (1, 3), out=out)
    assert np.array_equal(out.numpy(), np.flip(whole, (1, 3)))
    assert adjoin.flip(adjoin.tensor(3.0), (0,)).item() == 3.0
    with pytest.raises(RuntimeError, match="a dimension is named twice"):
        adjoin.flip(t, (0, -4))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "complex128"])
def test_rows_of_any_few_bytes(dtype):
    for n in [*range(1, 70), 255, 256, 257, 1023, 1024, 1025, 5000]:
        x = RNG.integers(0, 99, (3, n + 3)).astype(dtype)
        for first in (0, 1, 3):
            got = adjoin.full((3, n + 5), 7, dtype=getattr(adjoin, dtype))
            got[:, 2 : n + 2] = adjoin.tensor(x)[:, first : first + n]
            assert np.array_equal(got.numpy()[:, 2 : n + 2], x[:, first : first + n])
            assert (got.numpy()[:, [0, 1, -3, -2, -1]] == 7).all()


@pytest.mark.parametrize("shape, dim", [((4000, 8), 1), ((8, 4000), 0), ((40, 50, 16), 1), ((60000,), 0)])
def test_sums_at_shared_places_do_not_depend_on_threads(shape, dim):
    index = adjoin.tensor(RNG.integers(0, shape[dim] // 2, shape))
    x, y = (adjoin.tensor(RNG.standard_normal(shape).astype("float32")) for _ in range(2))
    had = adjoin.get_num_threads()
    calls = [lambda: adjoin.scatter_add(x, dim, index, y)]
    calls += [
        lambda how=how, own=own: adjoin.scatter_reduce(x, dim, index, y, how, include_self=own)
        for how in ("sum", "prod", "mean", "amax")
        for own in (True, False)
    ]
    try:
        for call in calls:
            found = []
            for threads in (1, 2, 3):
                adjoin.set_num_threads(threads)
                found.append(call().numpy().tobytes())
            assert found[0] == found[1] == found[2]
    finally:
        adjoin.set_num_threads(had)


def test_sources_that_repeat_or_skip_elements():
    x = adjoin.zeros((6, 8))
    index = adjoin.tensor(RNG.integers(0, 8, (6, 8)))
    one = adjoin.tensor(RNG.standard_normal((6, 1)).astype("float32"))
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):
            a = adjoin.scatter_reduce(x, 1, index, one.expand(6, 8), how, include_self=own)
            b = adjoin.scatter_reduce(x, 1, index, one.expand(6, 8).contiguous(), how, include_self=own)
            assert a.tolist() == b.tolist()
    wide = adjoin.zeros((6, 16))
    wide[:, ::2].scatter_add_(1, index, one.expand(6, 8))
    want = np.zeros((6, 8), "float32")
    np.add.at(want, (np.arange(6)[:, None], index.numpy()), one.numpy())
    np.testing.assert_allclose(wide.numpy()[:, ::2], want, rtol=1e-6)
    assert not wide.numpy()[:, 1::2].any()


def test_no_dimension_beside_one():
    line, one = adjoin.arange(5).to(adjoin.float32), adjoin.tensor(5.0)
    assert adjoin.gather(line, 0, adjoin.tensor(3)).tolist() == 3.0
    assert adjoin.gather(one, 0, adjoin.tensor([0, 0])).tolist() == [5.0, 5.0]
    assert adjoin.scatter(line, 0, adjoin.tensor(3), one).tolist() == [0.0, 1.0, 2.0, 5.0, 4.0]
    two = adjoin.tensor([1.0, 2.0])
    assert adjoin.scatter_add(one, 0, adjoin.tensor([0, 0]), two).tolist() == 8.0
    assert adjoin.scatter_reduce(one, 0, adjoin.tensor([0, 0]), two, "prod", include_self=False).tolist() == 2.0
    for index in ([1], [-1]):
        with pytest.raises(IndexError, match="out of range for dimension 0 with size 1"):
            adjoin.gather(one, 0, adjoin.tensor(index))
