"""tests/plugins/cpu_rows_test.py: kernels of the cpu backend that work on rows (reductions, softmax, norms, sorting,
indexing, attention) at sizes around their vectors, leaves and blocks, against NumPy or plain formulas."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

SHAPES = [(1,), (15,), (64,), (65,), (4097,), (20_003,), (3, 17), (70, 33), (129, 513), (4, 5, 67), (1, 1000)]
FLOATS = [np.float32, np.float64]


def array(shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 10).astype(dtype)


def close(got, want, tol=1e-4):
    np.testing.assert_allclose(np.asarray(got.detach().numpy(), np.float64), want, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_over_each_dimension(shape, dtype):
    x = array(shape, dtype)
    t, wide = adjoin.tensor(x), x.astype(np.float64)
    for dim in range(x.ndim):
        close(t.sum(dim), wide.sum(dim), 1e-3)
        close(t.var(dim, correction=0), wide.var(dim))
        close(adjoin.linalg.vector_norm(t, 1, dim), np.abs(wide).sum(dim))
        close(adjoin.linalg.vector_norm(t, float("inf"), dim), np.abs(wide).max(dim))
        for best, value in ((t.max(dim), x.max(dim)), (t.min(dim), x.min(dim))):
            assert np.array_equal(best[0].numpy(), value)
            assert np.array_equal(adjoin.gather(t, dim, best[1].unsqueeze(dim)).squeeze(dim).numpy(), value)
        assert np.array_equal(t.argmax(dim).numpy(), x.argmax(dim))
        assert np.array_equal((t > 5).any(dim).numpy(), (x > 5).any(dim))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(8, 3, 32), (130, 70, 33), (20, 3, 513), (9, 2, 512), (3, 5000, 40), (5, 65, 9000)], ids=str
)
def test_reductions_of_rows_that_lie_apart(shape, dtype):
    x = array(shape, dtype)
    t, wide, dims = adjoin.tensor(x), x.astype(np.float64), (0, 2)
    close(t.sum(dims), wide.sum(dims), 1e-3 if dtype == np.float32 else 1e-9)
    close(t.mean(dims), wide.mean(dims), 1e-5)
    close(t.std(dims, correction=0), wide.std(dims), 1e-5)
    close(adjoin.linalg.vector_norm(t, 2, dims), np.sqrt((wide**2).sum(dims)), 1e-5)
    assert np.array_equal(t.amax(dims).numpy(), x.max(dims)) and np.array_equal(t.amin(dims).numpy(), x.min(dims))
    assert t[:, 0].argmax().item() == x[:, 0].argmax()
    assert adjoin.equal((t > 35).any(2).any(0), adjoin.tensor((x > 35).any(dims)))
    close((t / 100 + 1)[:, :2, :32].prod(2).prod(0), (wide / 100 + 1)[:, :2, :32].prod(dims), 1e-3)
    x[0, 1, 7] = np.nan
    assert np.isnan(adjoin.tensor(x).amax(dims).numpy()).tolist() == [i == 1 for i in range(shape[1])]


@pytest.mark.parametrize("n", [5, 64, 100, 5000, 9000])
def test_nan_is_the_extreme_and_the_first_of_equals_wins(n):
    for place in (0, n // 2, n - 1):
        x = array((n, 3))
        x[place, 1] = np.nan
        for t in (adjoin.tensor(x), adjoin.tensor(x.T.copy()).t()):
            assert t.argmax(0)[1].item() == t.argmin(0)[1].item() == place
            assert np.isnan(t.amax(0).numpy()).tolist() == [False, True, False]
    same = adjoin.full((n, 3), -np.inf)
    assert same.argmax(0).tolist() == same.argmin(0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(5,), (3, 17), (70, 33), (4, 5, 67), (2, 5000)], ids=str)
def test_softmax_of_every_dimension_with_infinite_elements(shape):
    x = array(shape, np.float64)
    x.ravel()[0] = -np.inf
    for dim in range(x.ndim):
        e = np.exp(x - x.max(dim, keepdims=True))
        p = e / e.sum(dim, keepdims=True)
        for dtype in (adjoin.float32, adjoin.float64):
            t = adjoin.tensor(x).to(dtype)
            close(F.softmax(t, dim), p, 1e-6)
            close(adjoin.exp(F.log_softmax(t, dim)), p, 1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_in_one_pass_is_that_of_two(reduction):
    x, classes = adjoin.tensor(array((70, 33), np.float64)), adjoin.tensor(np.arange(70) % 33)
    classes[3] = -100
    fused, plain = (x.clone().requires_grad_() for _ in range(2))
    one = F.cross_entropy(fused, classes, reduction=reduction)
    two = F.nll_loss(F.log_softmax(plain, 1), classes, reduction=reduction)
    close(one, two.detach().numpy(), 1e-9)
    (one * 3).sum().backward()
    (two * 3).sum().backward()
    close(fused.grad, plain.grad.numpy(), 1e-9)
    loss = lambda a: F.cross_entropy(a, classes[:5], reduction=reduction)
    assert adjoin.autograd.gradgradcheck(loss, (x[:5].clone().requires_grad_(),))
    with pytest.raises(
        IndexError, match="element 3 of target is -99: input has 33 classes, so targets are 0 to 32, or -100"
    ):
        F.cross_entropy(x, classes + 1)


@pytest.mark.parametrize("shape, last", [((1, 7), 1), ((5, 3, 17), 2), ((130, 33), 1), ((0, 4), 1)], ids=str)
def test_layer_norm_and_its_gradients(shape, last):
    x = adjoin.tensor(array(shape, np.float64), requires_grad=True)
    size = shape[-last:]
    weight, bias = (adjoin.tensor(array(size, np.float64, s), requires_grad=True) for s in (1, 2))
    dims = list(range(-last, 0))
    hat = (x - x.mean(dims, True)) / adjoin.sqrt(x.var(dims, correction=0, keepdim=True) + 1e-5)
    g = adjoin.tensor(array(shape, np.float64, 3))
    for w, b in ((weight, bias), (weight, None), (None, bias), (None, None)):
        plain, fused = hat * (1 if w is None else w) + (0 if b is None else b), F.layer_norm(x, size, w, b)
        close(fused, plain.detach().numpy(), 1e-9)
        given = [t for t in (x, w, b) if t is not None]
        for one, two in zip(*(adjoin.autograd.grad(y, given, g, retain_graph=True) for y in (fused, plain))):
            close(one, two.numpy(), 1e-7)


@pytest.mark.parametrize("shape", [(1,), (48,), (49,), (5000,), (40_000,), (20, 70), (3, 1000)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16, np.uint8])
def test_sort_keeps_the_order_of_equals(shape, dtype):
    x = np.abs(np.round(array(shape, np.float64) / 5)).astype(dtype)
    if x.dtype.kind == "f":
        x.ravel()[::7], x.ravel()[::11], x.ravel()[::13] = -0.0, np.nan, -np.inf
    for dim in range(x.ndim):
        values, indices = adjoin.sort(adjoin.tensor(x), dim=dim)
        want = np.argsort(x, axis=dim, kind="stable")
        assert np.array_equal(indices.numpy(), want)
        sorted_x = np.take_along_axis(x, want, dim)
        assert values.numpy().tobytes() == sorted_x.tobytes() or x.dtype.kind == "f"
        assert np.array_equal(values.numpy(), sorted_x, equal_nan=x.dtype.kind == "f")
        down = adjoin.sort(adjoin.tensor(x), dim=dim, descending=True)
        for k in {1, min(5, x.shape[dim]), x.shape[dim] // 2}:
            best = adjoin.topk(adjoin.tensor(x), k, dim)
            for got, all_of in zip(best, down):
                assert np.array_equal(got.numpy(), all_of.narrow(dim, 0, k).numpy(), equal_nan=x.dtype.kind == "f")


@pytest.mark.parametrize("rows, columns, n", [(1, 1, 3), (50, 100, 300), (3, 700, 100), (500, 3, 2000)])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_added_in_the_order_of_their_indices(rows, columns, n, threads):
    before = adjoin.get_num_threads()
    adjoin.set_num_threads(threads)
    rng = np.random.default_rng(0)
    x, rows_of, source = array((rows, columns)), rng.integers(0, rows, n), array((n, columns))
    want = x.copy()
    for i, row in zip(rows_of, source):
        want[i] += 2 * row
    got = adjoin.tensor(x).index_add(0, adjoin.tensor(rows_of), adjoin.tensor(source), alpha=2)
    assert got.numpy().tobytes() == want.tobytes()
    adjoin.set_num_threads(before)


def test_indices_out_of_range_are_refused_before_anything_is_written():
    for bad in (-1, 7, 2**62, -(2**62)):
        x = adjoin.zeros(3, 7)
        for op in (
            lambda i: x.index_select(1, i[0]),
            lambda i: adjoin.gather(x, 1, i),
            lambda i: x.scatter_add_(1, i, adjoin.ones(1, 2)),
            lambda i: x.index_add_(1, i[0], adjoin.ones(3, 2)),
        ):
            with pytest.raises(IndexError, match="out of range for dimension 1 with size 7"):
                op(adjoin.tensor([[0, bad]]))
        assert x.sum().item() == 0


@pytest.mark.parametrize("n", [1, 9, 65_536, 65_537, 200_001])
def test_running_sums_have_the_same_bits_for_any_number_of_threads(n):
    before, found = adjoin.get_num_threads(), set()
    x = array(n)
    for threads in (1, 2, 3):
        adjoin.set_num_threads(threads)
        got = adjoin.tensor(x).cumsum(0)
        close(got, x.astype(np.float64).cumsum(), 1e-5)
        found.add(got.numpy().tobytes())
    adjoin.set_num_threads(before)
    assert len(found) == 1


def plain_attention(q, k, v, mask, causal):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        mask = adjoin.ones(q.shape[-2], k.shape[-2], dtype=adjoin.bool).tril()
    if mask is not None:
        scores = adjoin.where(mask, scores, -np.inf) if mask.dtype == adjoin.bool else scores + mask
    return F.softmax(scores, -1) @ v


@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "float"])
@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 1, 1), (5, 7, 4, 3), (65, 130, 32, 40), (130, 65, 8, 20), (7, 600, 20, 24), (97, 97, 128, 128)],
    ids=str,
)
def test_attention_and_its_gradients(sizes, kind):
    queries, keys, depth, width = sizes
    shapes = [(queries, depth), (keys, depth), (keys, width)]
    inputs = [adjoin.tensor(array((2, 2, *s), np.float64, i) / 10, requires_grad=True) for i, s in enumerate(shapes)]
    mask = {"bool": array((queries, keys)) > -5, "float": array((2, 1, queries, keys), np.float64)}.get(kind)
    if kind == "bool":
        mask[:, 0] = True
    mask = None if mask is None else adjoin.tensor(mask)
    fused = F.scaled_dot_product_attention(*inputs, attn_mask=mask, is_causal=kind == "causal")
    plain = plain_attention(*inputs, mask, kind == "causal")
    close(fused, plain.detach().numpy(), 1e-9)
    g = adjoin.tensor(array((2, 2, queries, width), np.float64, 9))
    for a, b in zip(*(adjoin.autograd.grad(y, inputs, g) for y in (fused, plain))):
        close(a, b.numpy(), 1e-7)


def test_attention_of_a_query_that_sees_nothing_is_zero():
    q, k, v = (adjoin.tensor(array((1, 4, 8), np.float64, i), requires_grad=True) for i in range(3))
    mask = adjoin.ones(4, 4, dtype=adjoin.bool)
    mask[2] = False
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert out[0, 2].abs().sum().item() == 0
    out.sum().backward()
    assert q.grad[0, 2].abs().sum().item() == 0 and np.isfinite(k.grad.numpy()).all()


def test_attention_differentiates_twice_and_takes_heads_in_any_layout():
    packed = adjoin.tensor(array((2, 6, 3, 2, 4), np.float64) / 10, requires_grad=True)
    parts = lambda t: [t[:, :, i].transpose(1, 2) for i in range(3)]
    fused = lambda t: F.scaled_dot_product_attention(*parts(t), is_causal=True)
    close(fused(packed), plain_attention(*parts(packed), None, True).detach().numpy(), 1e-9)
    assert adjoin.autograd.gradgradcheck(fused, (packed[:1, :3].detach().requires_grad_(),))
