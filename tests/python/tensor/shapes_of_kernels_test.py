"""tests/python/tensor/shapes_of_kernels_test.py: shapes that kernels have a way of their own for, beside the definitions in NumPy."""

import numpy as np
import pytest

import adjoin
import adjoin.nn.functional as F


def close(got, wanted, tolerance=1e-5):
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=tolerance, atol=tolerance)


def arrays(*shapes):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def convolved(x, w, stride, pad, dilation):
    """Cross-correlation of [batch, channels, d, h, w], a tap at a time."""
    x = np.pad(x, ((0, 0), (0, 0)) + ((pad, pad),) * 3)
    size = [(x.shape[2 + i] - dilation * (w.shape[2 + i] - 1) - 1) // stride + 1 for i in range(3)]
    out = np.zeros((x.shape[0], w.shape[0], *size), np.float64)
    for tap in np.ndindex(*w.shape[2:]):
        at = tuple(slice(t * dilation, t * dilation + stride * (n - 1) + 1, stride) for t, n in zip(tap, size))
        out += np.einsum("ncdhw,oc->nodhw", x[(slice(None), slice(None), *at)], w[(slice(None), slice(None), *tap)])
    return out


@pytest.mark.parametrize("stride, pad, dilation", [(1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 0, 1)])
@pytest.mark.parametrize("last", [False, True])
def test_conv3d(stride, pad, dilation, last):
    a, b = arrays((2, 5, 6, 7, 8), (16, 5, 3, 3, 3))
    x, w = adjoin.tensor(a, requires_grad=True), adjoin.tensor(b, requires_grad=True)
    given = x.to(memory_format=adjoin.channels_last_3d) if last else x
    y = F.conv3d(given, w, stride=stride, padding=pad, dilation=dilation)
    wanted = convolved(a, b, stride, pad, dilation)
    close(y, wanted, 1e-4)
    (g,) = arrays(wanted.shape)
    y.backward(adjoin.tensor(g))
    # The convolution is linear in each: <g, conv(v, w)> = <gradient, v>.
    u, v = arrays(a.shape, b.shape)
    assert np.isclose((x.grad.numpy() * u).sum(), (g * convolved(u, b, stride, pad, dilation)).sum(), rtol=1e-3)
    assert np.isclose((w.grad.numpy() * v).sum(), (g * convolved(a, v, stride, pad, dilation)).sum(), rtol=1e-3)


@pytest.mark.parametrize("groups", [2, 32])
def test_conv3d_groups(groups):
    a, b = arrays((2, 32, 4, 5, 6), (32, 32 // groups, 3, 3, 3))
    y = F.conv3d(adjoin.tensor(a), adjoin.tensor(b), padding=1, groups=groups)
    each = 32 // groups
    parts = [convolved(a[:, i : i + each], b[i : i + each], 1, 1, 1) for i in range(0, 32, each)]
    close(y, np.concatenate(parts, 1), 1e-4)


def test_few_lines_woven():
    for few in (2, 3, 4):
        (a,) = arrays((3, few * few, 9, 11))
        woven = a.reshape(3, few, few, 9, 11).transpose(0, 3, 1, 4, 2).reshape(3, 1, 9 * few, 11 * few)
        x = adjoin.tensor(a)
        assert np.array_equal(F.pixel_shuffle(x, few).numpy(), woven)
        assert np.array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, few), few).numpy(), a)
        for dtype in (np.uint8, np.int16, np.float64, np.complex128):
            b = np.arange(few * 7 * 5).reshape(few, 7, 5).astype(dtype)
            assert np.array_equal(adjoin.tensor(b).permute(1, 2, 0).contiguous().numpy(), b.transpose(1, 2, 0))
            assert np.array_equal(adjoin.tensor(b).permute(2, 1, 0).contiguous().numpy(), b.transpose(2, 1, 0))


@pytest.mark.parametrize("shape, dim", [((7, 40, 9), 1), ((50, 33), 0), ((6, 70), 1), ((5, 6, 7, 8), 2), ((300,), 0)])
def test_lines_of_scatter_and_gather(shape, dim):
    (a,), rng = arrays(shape), np.random.default_rng(5)
    index = rng.integers(0, shape[dim], shape)
    x, i = adjoin.tensor(a), adjoin.tensor(index)
    assert np.array_equal(adjoin.gather(x, dim, i).numpy(), np.take_along_axis(a, index, dim))
    where = list(np.indices(shape))
    where[dim] = index
    added, most = np.zeros(shape), np.full(shape, -np.inf, np.float32)
    np.add.at(added, tuple(where), a)
    np.maximum.at(most, tuple(where), a)
    close(adjoin.zeros(shape).scatter_add(dim, i, x), added)
    start = adjoin.full(shape, -float("inf"))
    assert np.array_equal(start.scatter_reduce(dim, i, x, "amax").numpy(), most)
    # A smaller index, of which lines begin elsewhere than those of the tensors.
    small = tuple(slice(0, max(1, n - 2)) for n in shape)
    part = np.zeros(shape)
    np.add.at(part, tuple(w[small] for w in where), a[small])
    close(adjoin.zeros(shape).scatter_add(dim, adjoin.tensor(index[small].copy()), x), part)
    with pytest.raises(IndexError):
        adjoin.gather(x, dim, i + shape[dim])


def test_rows_reduced_at_an_index():
    a, b = arrays((20, 33), (50, 33))
    index = np.random.default_rng(1).integers(0, 19, 50)
    b[3, 4] = np.nan
    for how, join in (("amax", np.maximum), ("amin", np.minimum), ("prod", np.multiply)):
        for keep in (True, False):
            wanted = a.copy()
            if not keep:
                wanted[index] = {"amax": -np.inf, "amin": np.inf, "prod": 1}[how]
            join.at(wanted, index, b)
            got = adjoin.tensor(a).index_reduce(0, adjoin.tensor(index), adjoin.tensor(b), how, include_self=keep)
            close(got, wanted, 1e-4)


@pytest.mark.parametrize("spread", [1 << 20, 1 << 40, 1 << 62, 5])
def test_long_sorts(spread):
    rng = np.random.default_rng(2)
    values = rng.integers(-spread, spread, 70_000)
    values[:30_000] = (values[0] & ~0xFFFF) + rng.integers(0, 1 << 16, 30_000)  # the high digits are equal
    got, where = adjoin.sort(adjoin.tensor(values), stable=True)
    order = np.argsort(values, kind="stable")
    assert np.array_equal(got.numpy(), values[order]) and np.array_equal(where.numpy(), order)
    real = rng.standard_normal(70_000)
    real[::7] = np.round(real[::7], 1)
    down, where = adjoin.sort(adjoin.tensor(real), descending=True, stable=True)
    order = np.argsort(-real, kind="stable")
    assert np.array_equal(down.numpy(), real[order]) and np.array_equal(where.numpy(), order)


def test_averages_of_windows():
    (a,) = arrays((2, 3, 12, 15))
    x = adjoin.tensor(a, requires_grad=True)
    y = F.avg_pool2d(x, (3, 2), stride=(2, 1), padding=(1, 1), count_include_pad=False)
    padded, ones = (np.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1))) for v in (a, np.ones_like(a)))
    at = lambda v, h, w: v[:, :, 2 * h : 2 * h + 3, w : w + 2].sum((2, 3))
    for h, w in np.ndindex(*y.shape[2:]):
        close(y[:, :, h, w], at(padded, h, w) / at(ones, h, w))
    y.sum().backward()
    share = np.zeros((14, 17))
    for h, w in np.ndindex(*y.shape[2:]):
        share[2 * h : 2 * h + 3, w : w + 2] += 1 / at(ones, h, w)[0, 0]
    close(x.grad, np.broadcast_to(share[1:-1, 1:-1], a.shape))


@pytest.mark.parametrize("shape", [(200, 37), (3, 5000), (70, 64), (1, 1)])
def test_short_rows_reduced(shape):
    (a,) = arrays(shape)
    x = adjoin.tensor(a)
    close(x.sum(1), a.astype(np.float64).sum(1), 1e-4)
    close(x.var(1, correction=0), a.astype(np.float64).var(1), 1e-4)
    best = adjoin.max(x, 1)
    assert np.array_equal(best[0].numpy(), a.max(1)) and np.array_equal(best[1].numpy(), a.argmax(1))
    assert np.array_equal(x.argmin(1).numpy(), a.argmin(1))
    assert np.array_equal(x.max(0)[1].numpy(), a.argmax(0))


def test_reversed_rows():
    (a,) = arrays((5, 100_001))
    x = adjoin.tensor(a)
    assert np.array_equal(x.flip(1).numpy(), a[:, ::-1])
    assert np.array_equal(x.flip(0, 1).numpy(), a[::-1, ::-1])
    assert np.array_equal(x[:, :9].contiguous().flip(1).numpy(), a[:, 8::-1])


def test_bags():
    (table,) = arrays((30, 6))
    index = np.random.default_rng(4).integers(0, 30, (8, 5))
    w = adjoin.tensor(table, requires_grad=True)
    for mode, join in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        close(F.embedding_bag(adjoin.tensor(index), w, mode=mode), join(table[index], 1))
        flat, begin = adjoin.tensor(index.ravel()), adjoin.arange(0, 40, 5)
        close(F.embedding_bag(flat, w, begin, mode=mode), join(table[index], 1))
    F.embedding_bag(adjoin.tensor(index), w, mode="mean").sum().backward()
    close(w.grad, np.repeat(np.bincount(index.ravel(), minlength=30)[:, None] / 5, 6, 1))


def test_sums_without_a_product():
    a, b = arrays((4, 6, 5), (5, 4, 6))
    close(adjoin.einsum("ijk,kij->ij", adjoin.tensor(a), adjoin.tensor(b)), np.einsum("ijk,kij->ij", a, b))
    close(adjoin.einsum("ijk,kij->kji", adjoin.tensor(a), adjoin.tensor(b)), np.einsum("ijk,kij->kji", a, b))


def test_slope_of_gelu():
    x = np.concatenate([np.linspace(-20, 20, 4001), [0.0, 1e-38, -1e-38, np.inf, -np.inf]]).astype(np.float32)
    t = adjoin.tensor(x, requires_grad=True)
    F.gelu(t).sum().backward()
    wide = adjoin.tensor(x[:-2].astype(np.float64), requires_grad=True)
    F.gelu(wide).sum().backward()
    np.testing.assert_allclose(t.grad.numpy()[:-2], wide.grad.numpy(), rtol=3e-6, atol=2e-7)
    assert t.grad.numpy()[-2:].tolist() == [1.0, 0.0]


def test_ends_of_linspace():
    for n in (2, 3, 10, 1001):
        got = adjoin.linspace(0.1, 0.7, n, dtype=adjoin.float64).numpy()
        np.testing.assert_allclose(got, np.linspace(0.1, 0.7, n), rtol=1e-15)
        assert got[0] == 0.1 and got[-1] == 0.7
    assert np.array_equal(
        adjoin.linspace(0, 3, 10, dtype=adjoin.int64).numpy(), np.linspace(0, 3, 10).round(9).astype(int)
    )


def test_triangles_of_indices():
    for offset in (-3, -1, 0, 2, 9):
        assert np.array_equal(adjoin.tril_indices(5, 7, offset).numpy(), np.stack(np.tril_indices(5, offset, 7)))
        assert np.array_equal(adjoin.triu_indices(5, 7, offset).numpy(), np.stack(np.triu_indices(5, offset, 7)))


@pytest.mark.parametrize("shape", [(7,), (3, 1, 700), (40, 3, 1), (2, 300, 3), (1000, 70), (0, 3), ()])
def test_places_of_what_is_true(shape):
    a = np.random.default_rng(6).random(shape) < 0.4
    wanted = np.argwhere(a)
    assert np.array_equal(adjoin.nonzero(adjoin.tensor(a)).numpy(), wanted)
    assert np.array_equal(adjoin.nonzero(adjoin.tensor(a.astype(np.float32))).numpy(), wanted)


@pytest.mark.parametrize("lines, n", [(8, 8), (5, 1), (300, 3), (17, 31), (40, 32), (40, 33), (600_000, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_short_lines_beside_what_repeats(lines, n, dtype):
    # The last are so many that results go past the caches.
    a, row, column, turned = (v.astype(dtype) for v in arrays((lines, n), (n,), (lines, 1), (n, lines)))
    x, r, c, t = (adjoin.tensor(v) for v in (a, row, column, turned))
    for got, wanted in (
        (x - r, a - row),
        (r - x, row - a),
        (x - c, a - column),
        (c - r, column - row),
        (x - t.t(), a - turned.T),
        (adjoin.addcmul(x, r, c), a + row * column),
        (adjoin.addcmul(r, x, 2.0 * r[0]), row + a * (2 * row[0])),
    ):
        np.testing.assert_array_equal(got.numpy(), wanted)
    for other, wanted in ((r, a - row), (c, a - column)):
        y = x.clone()
        y -= other
        np.testing.assert_array_equal(y.numpy(), wanted)
    out = adjoin.zeros(lines, 2 * n, dtype=x.dtype)
    adjoin.sub(x, r, out=out[:, :n])  # lines that are not dense
    np.testing.assert_array_equal(out.numpy(), np.concatenate([a - row, np.zeros_like(a)], 1))


@pytest.mark.parametrize("a, b", [
    ((40, 1, 2), (1, 50, 2)), ((3, 70, 3), (70, 1)), ((3, 1, 40, 3), (1, 4, 40, 3)), ((5, 6, 7, 2), (6, 1, 2)), ((64, 1, 3, 3), (1, 9, 3, 3)),
    ((2, 300, 33), (300, 1)), ((2, 3, 1, 5), (2, 1, 90, 1)), ((700, 1, 4), (1, 800, 4)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_short_lines_in_planes(a, b, dtype):
    # As boxes beside boxes: the last two dimensions are a plane, which repeats along others.
    u, v = (w.astype(dtype) for w in arrays(a, b))
    wide = adjoin.tensor(np.concatenate([u, u + 1], -1))  # its rows have a gap
    for x in (adjoin.tensor(u), wide[..., : a[-1]]):
        y = adjoin.tensor(v)
        np.testing.assert_array_equal((x - y).numpy(), u - v)
        np.testing.assert_array_equal(adjoin.maximum(y, x).numpy(), np.maximum(v, u))
        np.testing.assert_array_equal(adjoin.addcmul(x, y, x, value=2.0).numpy(), u + 2 * (v * u))
