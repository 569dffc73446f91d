"""tests/plugins/gpu_runs_test.py: kernels of GPUs whose work is cut into pieces that many blocks share: runs of equal indices,
tiles of sorted lines, chunks of running sums and of norms. On the device emulated, beside NumPy."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    not adjoin._C.find_op("emulated::configure"), reason="NOT TESTED: the plugin emulated is not built"
)
GPU = "emulated"
RNG = None
HOWS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@pytest.fixture(autouse=True)
def same_numbers():
    global RNG
    RNG = np.random.default_rng(11)


def on(x):
    return adjoin.tensor(x).to(GPU)


def back(t):
    return t.cpu().numpy()


def numbers(shape, dtype):
    return RNG.integers(1, 3, shape).astype(dtype)  # sums of them are exact in every dtype but halves


# Runs of 1, of a part or less, of many parts; a dimension in front, between and behind.
CASES = [
    ((5000,), (4000,), 0),
    ((7,), (3000,), 0),
    ((1,), (600,), 0),
    ((4, 3, 2), (4, 700, 2), 1),
    ((300, 3), (900, 2), 0),
]


def places(index, dim):
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "complex128"])
@pytest.mark.parametrize("shape, index, dim", CASES)
def test_scatters(shape, index, dim, dtype):
    x, s, at = numbers(shape, dtype), numbers(index, dtype), RNG.integers(0, shape[dim], index)
    t, i, source = on(x), on(at), on(s)
    want = x.copy()
    np.add.at(want, places(at, dim), s)
    np.testing.assert_array_equal(back(t.scatter_add(dim, i, source)), want)
    last = np.arange(at.size).reshape(at.shape).astype("int64")  # of equal places the last one stays
    want = np.full(shape, -1, "int64")
    for place, value in zip(zip(*(p.ravel() for p in places(at, dim))), last.ravel()):
        want[place] = value
    np.testing.assert_array_equal(back(on(np.full(shape, -1)).scatter(dim, i, on(last))), want)
    want = x.copy()
    want[places(at, dim)] = 5
    np.testing.assert_array_equal(back(t.scatter(dim, i, 5)), want)


@pytest.mark.parametrize("self", [True, False])
@pytest.mark.parametrize("how", [*HOWS, "mean"])
@pytest.mark.parametrize("shape, index, dim", CASES)
def test_scatter_reduce(shape, index, dim, how, self):
    x, s = RNG.random(shape) / 8 + 0.95, RNG.random(index) / 8 + 0.95
    at = RNG.integers(0, shape[dim], index)
    where, hits = places(at, dim), np.full(shape, int(self))
    np.add.at(hits, where, 1)
    want = x.copy()
    if not self:
        want[where] = {"prod": 1, "amax": -np.inf, "amin": np.inf}.get(how, 0)
    HOWS.get(how, np.add).at(want, where, s)
    if how == "mean":
        want = np.where(hits > 1, want / np.maximum(hits, 1), want)
    got = on(x).scatter_reduce(dim, on(at), on(s), how, include_self=self)
    np.testing.assert_allclose(back(got), want, rtol=1e-11)


def test_rows_are_added():
    for n, rows, width in ((2000, 5, 3), (700, 1, 1), (1500, 4000, 2)):
        at, g = RNG.integers(0, rows, n), RNG.random((n, width))
        want = np.zeros((rows, width))
        np.add.at(want, at, g)
        x = RNG.random((rows, width))
        np.testing.assert_allclose(back(on(x).index_add(0, on(at), on(g), alpha=2)), x + 2 * want, rtol=1e-11)
        np.testing.assert_allclose(back(on(x.T.copy()).index_add(1, on(at), on(g.T.copy()))), (x + want).T, rtol=1e-11)
        weight = on(x).requires_grad_()
        (F.embedding(on(at), weight, padding_idx=0) * on(g)).sum().backward()
        want[0] = 0
        np.testing.assert_allclose(back(weight.grad), want, rtol=1e-11)
        t = on(x)
        t.index_put_((on(at),), on(g), accumulate=True)
        summed = x.copy()
        np.add.at(summed, at, g)
        np.testing.assert_allclose(back(t), summed, rtol=1e-11)


def test_halves_are_summed_in_float32():
    at, s = np.zeros(3000, "int64"), np.full(3000, 1 / 8, "float16")
    got = on(np.zeros(1, "float16")).scatter_add(0, on(at), on(s))
    assert got.item() == 375


def test_a_bad_index_is_told():
    at = np.zeros(2000, "int64")
    at[1999] = 7
    for op in (
        lambda i, s: on(np.zeros(7, "float32")).scatter_add(0, i, s),
        lambda i, s: on(np.zeros(7, "float32")).index_add(0, i, s),
    ):
        with pytest.raises(IndexError, match="index 7 is out of range for dimension 0 with size 7"):
            back(op(on(at), on(np.ones(2000, "float32"))))


@pytest.mark.parametrize("pool", ["max_pool2d", "max_pool3d"])
def test_gradients_of_windows_that_meet(pool):
    x = (
        RNG.permutation(2 * 12 * 13 * 14)
        .reshape(2, 12, 13, 14)[:, : 12 if pool == "max_pool3d" else 2]
        .astype("float64")
    )
    grads = []
    for device in ("cpu", GPU):
        t = adjoin.tensor(x).to(device).requires_grad_()
        y = getattr(F, pool)(t, 3, stride=1, padding=1)
        (y * adjoin.arange(y.numel(), device=device).reshape(y.shape)).sum().backward()
        grads.append(back(t.grad))
    np.testing.assert_array_equal(*grads)


LINES = [(2,), (1023,), (1024,), (1025,), (5000,), (3, 700), (40, 30), (2, 2100), (700, 3)]


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
@pytest.mark.parametrize("shape", LINES)
def test_order(shape, dtype):
    x = RNG.integers(-20, 20, shape).astype(dtype)
    if dtype.startswith("float"):
        x[RNG.random(shape) < 0.05] = np.nan
    for dim in range(len(shape)):
        order = np.argsort(x, axis=dim, kind="stable")
        values, at = on(x).sort(dim=dim, stable=True)
        np.testing.assert_array_equal(back(at), order)
        np.testing.assert_array_equal(back(values), np.take_along_axis(x, order, dim))
        down = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
        down = shape[dim] - 1 - down
        np.testing.assert_array_equal(back(on(x).sort(dim=dim, descending=True, stable=True)[1]), down)
        for k in (0, 1, min(5, shape[dim]), min(256, shape[dim]), min(300, shape[dim]), shape[dim]):
            values, at = on(x).topk(k, dim=dim)
            first = np.take(down, range(k), dim)
            np.testing.assert_array_equal(back(at), first)
            np.testing.assert_array_equal(back(values), np.take_along_axis(x, first, dim))
            if dtype != "float32":
                continue
            least = on(x).topk(k, dim=dim, largest=False)[1]
            np.testing.assert_array_equal(back(least), np.take(order, range(k), dim))


@pytest.mark.parametrize("shape", [(9000,), (8193,), (2, 20_000), (20_000, 2), (65,), (600, 100)])
def test_what_runs_along_lines(shape):
    x = RNG.integers(-3, 4, shape).astype("int64")
    for dim in range(len(shape)):
        np.testing.assert_array_equal(back(on(x).cumsum(dim)), x.cumsum(dim))
        y = RNG.random(shape)
        factors = 1 + (y - 0.5) / 50
        np.testing.assert_allclose(back(on(factors).cumprod(dim)), factors.cumprod(dim), rtol=1e-10)
        np.testing.assert_allclose(back(on(y).logcumsumexp(dim)), np.log(np.exp(y).cumsum(dim)), rtol=1e-10, atol=1e-10)
        values, at = on(x).cummax(dim)
        want = np.maximum.accumulate(x, dim)
        np.testing.assert_array_equal(back(values), want)
        wanted = adjoin.tensor(x).cummax(dim)[1].numpy()
        np.testing.assert_array_equal(back(at), wanted)
    strided = on(np.stack([x, x], -1))[..., 1]
    np.testing.assert_array_equal(back(strided.cumsum(0)), x.cumsum(0))


def both(f):
    """Results of f on the processor and on the GPU."""
    return [[back(t) for t in f(lambda x: adjoin.tensor(x).to(device))] for device in ("cpu", GPU)]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(3, 2, 50, 70), (9000, 2), (2, 3, 9000), (1, 1, 8193)])
def test_batch_norm_of_large_channels(shape, training):
    c = shape[1]
    x, g = RNG.normal(3, 2, shape), RNG.random(shape)
    w, b, mean, var = RNG.random((4, c)) + 0.5

    def f(put):
        t, weight, bias = (put(v).requires_grad_() for v in (x, w, b))
        running = put(mean), put(var)
        y = F.batch_norm(t, *running, weight, bias, training=training)
        (y * put(g)).sum().backward()
        return y.detach(), t.grad, weight.grad, bias.grad, *running

    for one, other in zip(*both(f), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(700, 5), (65, 3), (2, 9000), (20_000, 2), (0, 4)])
def test_gradients_of_weights_of_layer_norm(shape):
    x, g, (w, b) = RNG.normal(1, 2, shape), RNG.random(shape), RNG.random((2, shape[1]))

    def f(put):
        t, weight, bias = (put(v).requires_grad_() for v in (x, w, b))
        y = F.layer_norm(t, shape[1:], weight, bias)
        (y * put(g)).sum().backward()
        return y.detach(), t.grad, weight.grad, bias.grad

    for one, other in zip(*both(f), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape, groups", [((3, 4, 50, 60), 2), ((70, 6, 3), 3), ((2, 2, 9000), 1), ((90, 4, 64), 4)])
def test_gradients_of_weights_of_group_norm(shape, groups):
    x, g, (w, b) = RNG.normal(1, 2, shape), RNG.random(shape), RNG.random((2, shape[1]))

    def f(put):
        t, weight, bias = (put(v).requires_grad_() for v in (x, w, b))
        y = F.group_norm(t, groups, weight, bias)
        (y * put(g)).sum().backward()
        return y.detach(), t.grad, weight.grad, bias.grad

    for one, other in zip(*both(f), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_gradients_of_images_that_are_sampled(mode):
    x, at, g = RNG.random((2, 3, 5, 6)), RNG.uniform(-1.2, 1.2, (2, 11, 13, 2)), RNG.random((2, 3, 11, 13))

    def f(put):
        t, grid = put(x).requires_grad_(), put(at).requires_grad_()
        (F.grid_sample(t, grid, mode, align_corners=False) * put(g)).sum().backward()
        return t.grad, grid.grad

    for one, other in zip(*both(f), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mask", [None, "causal", (5, 7), (2, 1, 5, 7), (6, 5, 7), (1, 6, 5, 7)], ids=str)
@pytest.mark.parametrize("device", ["cpu", GPU])
def test_heads_that_share_keys(device, mask):
    """Beside repeated keys and values, with their gradients."""
    shapes = (2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 3)
    values, g = [RNG.normal(size=s) for s in shapes], adjoin.tensor(RNG.random((2, 6, 5, 3))).to(device)
    causal = mask == "causal"
    seen = None if mask is None or causal else adjoin.tensor(RNG.random(mask) < 0.7).to(device)

    def f(repeat, **options):
        q, k, v = (adjoin.tensor(x).to(device).requires_grad_() for x in values)
        k_, v_ = (t.repeat_interleave(repeat, 1) if repeat > 1 else t for t in (k, v))
        y = F.scaled_dot_product_attention(q, k_, v_, seen, is_causal=causal, **options)
        (y * g).sum().backward()
        return [back(t) for t in (y.detach(), q.grad, k.grad, v.grad)]

    for one, other in zip(f(2), f(1, enable_gqa=True), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-12)
