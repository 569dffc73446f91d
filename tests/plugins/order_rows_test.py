"""tests/plugins/order_rows_test.py: order, selection, bags, distances and turns on the CPU: plain NumPy beside them, on lines
long enough for every path of the kernels."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

RNG = np.random.default_rng(5)


def line(kind, n):
    made = {
        "float32": lambda: RNG.standard_normal(n).astype(np.float32),
        "float64": lambda: RNG.standard_normal(n),
        "few": lambda: RNG.integers(0, 9, n),
        "wide": lambda: RNG.integers(-(2**62), 2**62, n),
        "close": lambda: (RNG.integers(0, 3, n) << 60) + RNG.integers(0, 50, n),
        "uint8": lambda: RNG.integers(0, 255, n).astype(np.uint8),
        "one": lambda: np.full(n, -7),
        "nan": lambda: np.where(RNG.random(n) < 0.2, np.nan, np.round(RNG.standard_normal(n))).astype(np.float32),
        "zeros": lambda: np.where(RNG.random(n) < 0.5, 0.0, -0.0),
    }
    return made[kind]()


KINDS = ("float32", "float64", "few", "wide", "close", "uint8", "one", "nan", "zeros")


def order_of(x, descending=False):
    """The stable order; NaN above all."""
    ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)  # NumPy takes all NaN as one, the last
    return np.argsort(-ranks if descending else ranks, kind="stable")


@pytest.mark.parametrize("n", [1, 2, 47, 300, 1100, 40_001])
@pytest.mark.parametrize("kind", KINDS)
def test_sort_and_selection(kind, n):
    x = line(kind, n)
    t = adjoin.tensor(x)
    for descending in (False, True):
        want = order_of(x, descending)
        values, places = adjoin.sort(t, descending=descending, stable=True)
        assert np.array_equal(places.numpy(), want)
        assert values.numpy().tobytes() == x[want].tobytes()
        for k in {1, n // 3 + 1, n}:
            values, places = adjoin.topk(t, k, largest=descending)
            assert np.array_equal(places.numpy(), want[:k])
            assert values.numpy().tobytes() == x[want[:k]].tobytes()
            places = adjoin.topk(t, k, largest=descending, sorted=False)[1].numpy()
            assert places[-1] == want[k - 1] and sorted(places) == sorted(want[:k])
    if kind != "nan":
        assert adjoin.median(t).item() == np.sort(x)[(n - 1) // 2]
    assert adjoin.kthvalue(t, n // 2 + 1)[1].item() == order_of(x)[n // 2]


def test_median_of_nan():
    x = adjoin.tensor([[3.0, float("nan"), 1.0, float("nan")], [3.0, 2.0, 1.0, 5.0]])
    values, places = adjoin.median(x, 1)
    assert np.isnan(values[0].item()) and values[1].item() == 2 and places.tolist() == [1, 1]
    assert np.isnan(adjoin.median(x).item()) and adjoin.nanmedian(x).item() == 2
    assert np.isnan(adjoin.nanmedian(adjoin.tensor([float("nan")] * 3)).item())


@pytest.mark.parametrize("kind", ["float32", "few", "wide", "nan"])
@pytest.mark.parametrize("shape", [(5,), (3, 400), (40_000,), (70, 33)])
def test_running_extremes(kind, shape):
    x = line(kind, int(np.prod(shape))).reshape(shape)
    for dim in range(len(shape)):
        for ours, theirs in ((adjoin.cummax, np.maximum), (adjoin.cummin, np.minimum)):
            values, places = ours(adjoin.tensor(x), dim)
            want = theirs.accumulate(x, axis=dim)
            np.testing.assert_array_equal(values.numpy(), want)
            np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), dim), want)
    assert adjoin.cummax(adjoin.tensor([1.0, 1.0, 0.0, 1.0]), 0)[1].tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("shape", [(1,), (9,), (70_000,), (3, 77), (5, 6, 7), (1, 1)])
def test_places_and_runs(shape):
    x = RNG.random(shape) < 0.4
    assert np.array_equal(adjoin.tensor(x).nonzero().numpy(), np.argwhere(x))
    assert np.array_equal(adjoin.tensor(x.astype(np.float32)).nonzero().numpy(), np.argwhere(x))
    flat = np.sort(RNG.integers(0, 50, x.size))
    first = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
    values, inverse, counts = adjoin.unique_consecutive(adjoin.tensor(flat), return_inverse=True, return_counts=True)
    assert np.array_equal(values.numpy(), flat[first])
    assert np.array_equal(inverse.numpy(), np.searchsorted(first, np.arange(flat.size), "right") - 1)
    assert np.array_equal(counts.numpy(), np.diff(np.r_[first, flat.size]))


def test_truths_that_are_other_bytes():
    odd = adjoin.tensor(np.array([0, 2, 255, 1, 0, 16, 128, 0, 4], np.uint8)).view(adjoin.bool)
    assert odd.nonzero().reshape(-1).tolist() == [1, 2, 3, 5, 6, 8]


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64])
@pytest.mark.parametrize("width", [1, 3, 64, 70, 200])
def test_bags(dtype, width):
    table = adjoin.randn(50, width, dtype=dtype, requires_grad=True)
    index = adjoin.randint(0, 50, (37,))
    begins = [0, 0, 5, 6, 30]  # the first is empty
    scale = adjoin.randn(37, dtype=dtype, requires_grad=True)
    for padding in (None, int(index[7])):
        rows = table.detach().numpy()[index.numpy()]
        counts = np.ones(37, bool) if padding is None else index.numpy() != padding
        ends = begins[1:] + [37]
        for mode in ("sum", "mean"):
            want = np.stack([rows[a:b][counts[a:b]].sum(0) for a, b in zip(begins, ends)])
            if mode == "mean":
                want /= np.maximum(1, [[counts[a:b].sum()] for a, b in zip(begins, ends)])
            got = F.embedding_bag(index, table, adjoin.tensor(begins), mode=mode, padding_idx=padding)
            np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-5, atol=1e-5)
        got = F.embedding_bag(
            index, table, adjoin.tensor(begins), mode="sum", per_sample_weights=scale, padding_idx=padding
        )
        factors = (scale.detach().numpy() * counts)[:, None]
        want = np.stack([(factors * rows)[a:b].sum(0) for a, b in zip(begins, ends)])
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-5, atol=1e-5)
        d_table, d_scale = adjoin.autograd.grad(got.sum(), [table, scale])
        np.testing.assert_allclose(d_scale.numpy(), rows.sum(1) * counts, rtol=1e-4, atol=1e-4)
        want = np.zeros(table.shape)
        np.add.at(want, index.numpy(), np.broadcast_to(factors, rows.shape))
        np.testing.assert_allclose(d_table.numpy(), want, rtol=1e-4, atol=1e-4)
    with pytest.raises(IndexError):
        F.embedding_bag(adjoin.tensor([[1, 50]]), table)


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64, adjoin.bfloat16])
@pytest.mark.parametrize("width", [1, 3, 64, 70])
def test_greatest_of_bags(dtype, width):
    table = adjoin.randn(50, width).to(dtype).requires_grad_(True)
    index = adjoin.randint(0, 50, (37,))
    begins, ends, padding = [0, 0, 5, 6, 30], [0, 5, 6, 30, 37], int(index[7])
    plain = table.detach().double().numpy()
    got = F.embedding_bag(
        index, table, adjoin.tensor([*begins, 37]), mode="max", padding_idx=padding, include_last_offset=True
    )
    (slope,) = adjoin.autograd.grad(got.sum(), [table])
    slopes = np.zeros(plain.shape)
    for bag, (a, b) in enumerate(zip(begins, ends)):
        named = [i for i in index.tolist()[a:b] if i != padding]
        want = plain[named].max(0) if named else np.zeros(width)
        np.testing.assert_array_equal(got.detach().double().numpy()[bag], want)
        if named:
            np.add.at(slopes, (np.array(named)[plain[named].argmax(0)], np.arange(width)), 1)
    np.testing.assert_allclose(slope.double().numpy(), slopes)
    wild = table.detach().clone()
    wild[int(index[0])] = float("nan")
    got = F.embedding_bag(index, wild, adjoin.tensor(begins), mode="max")
    assert got[1].isnan().all() and not got[0].isnan().any()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_second_gradients_of_bags(mode):
    table = adjoin.randn(9, 3, dtype=adjoin.float64, requires_grad=True)
    index, begins = adjoin.tensor([1, 2, 2, 7, 0, 3]), adjoin.tensor([0, 3, 3, 4])
    more = [adjoin.randn(6, dtype=adjoin.float64, requires_grad=True)] if mode == "sum" else []

    def bags(t, scale=None):
        return F.embedding_bag(index, t, begins, mode=mode, per_sample_weights=scale, padding_idx=2)

    assert adjoin.autograd.gradcheck(bags, [table, *more])
    assert adjoin.autograd.gradgradcheck(bags, [table, *more])


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_share_gradients_by_frequency(mode):
    table = adjoin.randn(5, 3, dtype=adjoin.float64, requires_grad=True)
    index, begins = adjoin.tensor([0, 1, 1, 1, 2, 4]), adjoin.tensor([0, 2])

    def slope(shared):
        made = F.embedding_bag(index, table, begins, mode=mode, scale_grad_by_freq=shared, padding_idx=4)
        return adjoin.autograd.grad(made.sum(), [table])[0].numpy()

    np.testing.assert_allclose(slope(True), slope(False) / [[1], [3], [1], [1], [1]])


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_bags_that_are_wrong(device):
    table, flat = adjoin.randn(9, 3).to(device), adjoin.tensor([1, 2, 3], device=device)
    begin = adjoin.tensor([0], device=device)
    for call, text in (
        (lambda: F.embedding_bag(flat, table), "needs offsets"),
        (lambda: F.embedding_bag(flat, table, adjoin.tensor([0, 9], device=device)), "offsets must rise"),
        (lambda: F.embedding_bag(flat, table, adjoin.tensor([1, 2], device=device)), "offsets must rise"),
        (lambda: F.embedding_bag(flat.reshape(1, 3), table, begin), "leave offsets"),
        (lambda: F.embedding_bag(flat, table.long(), begin), "floating-point"),
        (
            lambda: F.embedding_bag(flat, table, begin, mode="max", scale_grad_by_freq=True),
            "not with 'max'",
        ),
        (
            lambda: F.embedding_bag(flat, table, begin, padding_idx=9),
            "padding_idx must be within the number of embeddings: 9 is no row of 9",
        ),
        (lambda: F.embedding_bag(flat, table, begin, per_sample_weights=adjoin.ones(3, device=device)), "mode 'sum'"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=text):
            call()
    short = F.embedding_bag(flat, table, begin, mode="sum", max_norm=0.5)
    assert all(table[i].norm() <= 0.5001 for i in (1, 2, 3)) and np.allclose(short.cpu(), table[flat].sum(0).cpu())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1,), (9, 8), (3, 300), (2, 9, 40), (40_000,)])
def test_modes(kind, shape):
    x = line(kind, int(np.prod(shape))).reshape(shape)
    for dim in range(len(shape)):
        values, places = adjoin.mode(adjoin.tensor(x), dim)
        lines, found = np.moveaxis(x, dim, -1).reshape(-1, shape[dim]), places.numpy().reshape(-1)
        np.testing.assert_array_equal(values.numpy().reshape(-1), lines[np.arange(len(lines)), found])
        for row, at in zip(lines, found):
            some, counts = np.unique(row[row == row], return_counts=True)
            if some.size:
                assert at == np.flatnonzero(row == some[counts.argmax()])[-1]
            else:
                assert at == 0


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.int64, adjoin.bool, adjoin.bfloat16, adjoin.complex64])
@pytest.mark.parametrize("n", [0, 1, 700, 100_000])
def test_masked_scatter(dtype, n):
    x, source = adjoin.randint(-9, 9, (n,)).to(dtype), adjoin.randint(-9, 9, (n,)).to(dtype)
    mask = RNG.random(n) < 0.4
    want = x.numpy().copy() if dtype is not adjoin.bfloat16 else x.float().numpy()
    want[mask] = (source.numpy() if dtype is not adjoin.bfloat16 else source.float().numpy())[: mask.sum()]
    got = x.masked_scatter(adjoin.tensor(mask), source)
    np.testing.assert_array_equal((got.float() if dtype is adjoin.bfloat16 else got).numpy(), want)
    wide = adjoin.zeros(2, n, dtype=dtype)[:, ::1].t()
    assert adjoin.equal(
        wide.masked_scatter(adjoin.tensor(mask)[:, None] & adjoin.tensor([True, False]), source)[:, 0][
            adjoin.tensor(mask)
        ],
        source[: mask.sum()],
    )
    if n > 1:
        with pytest.raises(RuntimeError, match="mask takes"):
            x.masked_scatter(adjoin.ones(n, dtype=adjoin.bool), source[1:])
    x.masked_scatter_(adjoin.tensor(mask), source)  # the same in its own memory
    assert adjoin.equal(x, got)


@pytest.mark.parametrize("taken", [0.0, 0.03, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("dtype", [adjoin.int8, adjoin.float16, adjoin.float32, adjoin.float64, adjoin.complex128])
def test_masked_scatter_takes_no_more_than_it_needs(dtype, taken):
    n = 70_001  # several chunks, and no whole word at the end
    mask = RNG.random(n) < taken
    x, source = adjoin.randint(-9, 9, (n,)).to(dtype), adjoin.randint(-9, 9, (int(mask.sum()),)).to(dtype)
    want = x.numpy().copy()
    want[mask] = source.numpy()
    np.testing.assert_array_equal(x.masked_scatter(adjoin.tensor(mask), source).numpy(), want)
    wide = adjoin.stack([x, x], 1)  # every second place of another tensor
    kept = wide[:, 0].masked_scatter_(adjoin.tensor(mask), source)
    np.testing.assert_array_equal(kept.numpy(), want)
    assert adjoin.equal(wide[:, 1], x)


def test_a_mask_whose_truths_are_other_numbers():
    bytes_ = RNG.choice([0, 0, 1, 2, 255], 1000).astype(np.uint8)
    x, source = adjoin.arange(1000.0), -adjoin.arange(1000.0)
    want = x.masked_scatter(adjoin.tensor(bytes_ != 0), source)
    assert adjoin.equal(x.masked_scatter(adjoin.from_numpy(bytes_.view(bool)), source), want)


def test_masked_scatter_of_what_lies_in_its_own_memory():
    whole = adjoin.arange(100.0)
    mask = adjoin.tensor(RNG.random(99) < 0.5)
    want = whole[1:].masked_scatter(mask, whole[:-1].clone())
    assert adjoin.equal(whole[1:].masked_scatter_(mask, whole[:-1]), want)
    truths = adjoin.tensor(RNG.random(100) < 0.5)
    want = truths[1:].masked_scatter(truths[:-1].clone(), truths.clone())
    assert adjoin.equal(truths[1:].masked_scatter_(truths[:-1], truths), want)
    x = adjoin.ones(3, requires_grad=True)
    y = (x * 2).masked_scatter_(adjoin.tensor([True, False, True]), x * 5)
    assert y.tolist() == [5.0, 2.0, 5.0]
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 7.0, 0.0]


def test_empty_bags():
    table = adjoin.randn(4, 3)
    assert F.embedding_bag(adjoin.empty(0, 5, dtype=adjoin.int64), table).shape == (0, 3)
    assert F.embedding_bag(adjoin.empty(2, 0, dtype=adjoin.int64), table).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("n, width", [(2, 1), (9, 5), (70, 300), (41, 0)])
def test_distances(p, n, width):
    x = RNG.standard_normal((n, width))
    x[1:, :1] = x[0, :1]
    first, second = np.triu_indices(n, 1)
    size = np.abs(x[first] - x[second])
    if width == 0:
        want = np.zeros(len(first))
    else:
        want = (size != 0).sum(1) if p == 0 else size.max(1) if np.isinf(p) else (size**p).sum(1) ** (1 / p)
    for dtype, tolerance in ((adjoin.float64, 1e-12), (adjoin.float32, 2e-5)):
        t = adjoin.tensor(x, dtype=dtype)
        np.testing.assert_allclose(F.pdist(t, p).numpy(), want, rtol=tolerance, atol=tolerance)
        all_pairs = adjoin.cdist(t, t, p, compute_mode="donot_use_mm_for_euclid_dist").numpy()
        np.testing.assert_allclose(all_pairs[first, second], want, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(all_pairs.T, all_pairs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, float("inf")])
def test_derivatives_of_distances(p):
    x = adjoin.randn(6, 4, dtype=adjoin.float64, requires_grad=True)
    assert adjoin.autograd.gradcheck(lambda t: F.pdist(t, p), (x,))
    if p in (2.0, 3.0):
        assert adjoin.autograd.gradgradcheck(lambda t: F.pdist(t, p), (x,))


def test_turns():
    x = RNG.standard_normal((3, 4, 5, 2))
    t = adjoin.tensor(x)
    for shifts, dims in (((2,), (1,)), ((-7, 3), (2, 0)), ((1, 2, 3, 1), (0, 1, 2, 3)), ((1, 1), (2, 2)), ((0,), (1,))):
        assert np.array_equal(adjoin.roll(t, shifts, dims).numpy(), np.roll(x, shifts, dims))
        turned = adjoin.roll(t.transpose(0, 2), shifts, dims)
        assert np.array_equal(turned.numpy(), np.roll(x.transpose(2, 1, 0, 3), shifts, dims))
    assert np.array_equal(adjoin.roll(t, -5).numpy(), np.roll(x, -5))
    assert adjoin.roll(adjoin.tensor(3.0), 2).item() == 3
    t.requires_grad_()
    assert adjoin.autograd.gradcheck(lambda t: adjoin.roll(t, (1, -2), (1, 2)), (t,))
    assert adjoin.autograd.gradcheck(lambda t: adjoin.flip(t, (0, 2)), (t,))
    same = adjoin.roll(t.detach(), 0)
    same += 1
    assert np.array_equal(t.detach().numpy(), x)  # a result never is its argument's memory


def test_permutations_of_any_backend_and_number_of_threads():
    def drawn(device):
        adjoin.manual_seed(9)
        return [adjoin.randperm(n, device=device).cpu().tolist() for n in (0, 1, 2, 1000)]

    found = drawn("cpu")
    assert all(sorted(order) == list(range(len(order))) for order in found)
    assert found == drawn("reference")
    first = [adjoin.randperm(4)[0].item() for _ in range(4000)]
    assert np.bincount(first).min() > 850  # 1000 each are expected


@pytest.mark.parametrize("how", ["sum", "prod", "amax", "amin", "mean"])
def test_joining_across(how):
    x, y = RNG.standard_normal((20, 301)), RNG.standard_normal((45, 301))
    index = RNG.integers(0, 20, (45, 301))
    joins = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how]
    columns = np.broadcast_to(np.arange(301), index.shape)
    rows = np.broadcast_to(index[:, :1], index.shape)
    for named in (index, rows):
        want, count = x.copy(), np.ones(x.shape)
        joins.at(want, (named, columns), y)
        np.add.at(count, (named, columns), 1)
        want = want / count if how == "mean" else want
        got = adjoin.scatter_reduce(adjoin.tensor(x), 0, adjoin.tensor(np.array(named)), adjoin.tensor(y), how)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-10)
        expanded = adjoin.tensor(np.array(named[:, :1])).expand(45, 301) if named is rows else None
        if expanded is not None:
            got = adjoin.scatter_reduce(adjoin.tensor(x), 0, expanded, adjoin.tensor(y), how)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-10)


def test_integers_of_wide_ranges():
    for low, high in ((0, 2**25), (-5, 2**32 - 5), (3, 2**40), (0, 2**62)):
        adjoin.manual_seed(4)
        x = adjoin.randint(low, high, (5003,))
        assert low <= x.min().item() and x.max().item() < high
        adjoin.manual_seed(4)
        assert np.array_equal(adjoin.randint(low, high, (5003,), device="reference").cpu().numpy(), x.numpy())
