"""tests/plugins/joined_columns_test.py: single elements of several tensors beside each other, products of inner size 1, and sums
that skip NaN, in the shapes that have loops of their own."""

import adjoin
import numpy as np
import pytest

DTYPES = ["float32", "float64", "int64", "int32", "int16", "uint8", "bool", "complex64", "complex128", "float16"]


def numbers(dtype, *shape):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 7 + 3) % 11
    return values.astype(dtype)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacked_last(dtype, count):
    for shape in ((), (1,), (17,), (5, 33), (3, 70, 2), (0, 4)):
        parts = [numbers(dtype, *shape) + np.array(i).astype(dtype) for i in range(count)]
        made = adjoin.stack([adjoin.from_numpy(p) for p in parts], -1)
        np.testing.assert_array_equal(made.numpy(), np.stack(parts, -1))


VIEWS = {
    "turned": lambda t: t.T,
    "expanded rows": lambda t: t[:, :1].expand(40, 40),
    "expanded columns": lambda t: t[:1].expand(40, 40),
    "every second": lambda t: t[::2, ::2],
    "one number": lambda t: t[3, 4].expand(6, 7),
    "moved": lambda t: t.reshape(4, 10, 40).permute(2, 0, 1),
    "flat strided": lambda t: t.reshape(-1)[::3],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "complex128"])
def test_views_are_joined_in_their_order(name, dtype):
    x = adjoin.from_numpy(numbers(dtype, 40, 40))
    view = VIEWS[name](x)
    plain = view.numpy()
    for dim in range(-1, view.ndim):
        made = adjoin.cat([view, view.contiguous(), view], dim)
        np.testing.assert_array_equal(made.numpy(), np.concatenate([plain] * 3, dim))
        made = adjoin.stack([view, view], dim)
        np.testing.assert_array_equal(made.numpy(), np.stack([plain] * 2, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "complex64"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 300), (300, 1), (37, 41), (2, 1000), (1000, 2)])
def test_inner_size_one(dtype, m, n):
    a, b = numbers(dtype, m, 1), numbers(dtype, 1, n) - np.array(4).astype(dtype)
    ours = [adjoin.from_numpy(x) for x in (a, b)]
    np.testing.assert_array_equal((ours[0] @ ours[1]).numpy(), a @ b)
    np.testing.assert_array_equal((ours[1].T @ ours[0].T).numpy(), (a @ b).T)
    wide = ours[1].expand(3, n)[:, ::1].T[:, 1:2].T  # a row within a larger tensor
    np.testing.assert_array_equal((ours[0] @ wide).numpy(), a @ b)
    stacked = adjoin.bmm(ours[0].expand(4, m, 1), ours[1].expand(4, 1, n))
    np.testing.assert_array_equal(stacked.numpy(), np.broadcast_to(a @ b, (4, m, n)))


def test_whole_numbers_wrap_in_products():
    rng = np.random.default_rng(1)
    for shape in ((33, 70, 41), (4, 300, 8), (64, 64, 64)):
        m, k, n = shape
        a = rng.integers(-(2**62), 2**62, (m, k))
        b = rng.integers(-(2**62), 2**62, (k, n))
        np.testing.assert_array_equal((adjoin.from_numpy(a) @ adjoin.from_numpy(b)).numpy(), a @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nansum_of_all_that_may_make_a_nan(dtype):
    x = numbers(dtype, 6, 50) - 5
    for spoil in ((), (np.nan,), (np.inf, -np.inf), (np.inf,), (np.nan, np.inf, -np.inf)):
        y = x.copy()
        y[2, 3 : 3 + len(spoil)] = spoil
        t = adjoin.from_numpy(y).requires_grad_()
        for dim in (None, 0, 1):
            made = adjoin.nansum(t) if dim is None else adjoin.nansum(t, dim)
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(made.detach().numpy(), np.nansum(y, dim), rtol=1e-6)
            (slope,) = adjoin.autograd.grad(made.sum(), [t])
            np.testing.assert_array_equal(slope.numpy(), (~np.isnan(y)).astype(dtype))


@pytest.mark.parametrize("dims", [None, 0, 1, (0, 1)])
def test_count_nonzero(dims):
    x = numbers("int64", 9, 13) % 3
    for dtype in ("bool", "int64", "float32", "complex64"):
        made = adjoin.count_nonzero(adjoin.from_numpy(x.astype(dtype)), dims)
        np.testing.assert_array_equal(made.numpy(), np.count_nonzero(x.astype(dtype), dims))


@pytest.mark.parametrize("shape", [(70, 90), (70, 90, 3), (64, 4000), (4000, 64), (5, 70, 90)])
def test_a_grid_of_places(shape):
    x = numbers("float64", *shape)
    t = adjoin.from_numpy(x)
    lead = len(shape) - 2 if shape[0] == 5 else 0
    rng = np.random.default_rng(2)
    i = rng.integers(-shape[lead], shape[lead], 64)
    j = rng.integers(-shape[lead + 1], shape[lead + 1], 65)
    places = (slice(None),) * lead + (i[:, None], j[None])
    ours = (slice(None),) * lead + (adjoin.from_numpy(i)[:, None], adjoin.from_numpy(j))
    np.testing.assert_array_equal(t[ours].numpy(), x[places])
    leaf = t.clone().requires_grad_()
    (slope,) = adjoin.autograd.grad(leaf[ours].sum(), [leaf])
    counts = np.zeros(shape)
    np.add.at(counts, places, 1)
    np.testing.assert_array_equal(slope.numpy(), counts)
    for far in (shape[lead + 1], -shape[lead + 1] - 1):
        with pytest.raises(IndexError, match="out of"):
            t[(*ours[:-1], adjoin.full((65,), far))]
