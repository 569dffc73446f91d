"""tests/plugins/few_and_rows_test.py: ways that the CPU takes for few rows, single numbers and whole rows, beside NumPy and beside
the ops that they stand for."""

import adjoin
import numpy as np
import pytest

F = adjoin.nn.functional
RNG = np.random.default_rng(5)


def rows(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(7,), (1, 7), (3, 7), (1,), (1, 1), ()])
def test_index_put_of_one_row_or_number(shape, accumulate):
    x, values, at = rows(5, 7), rows(*shape), [3, 1, 3]
    want = x.copy()
    for k, row in zip(at, np.broadcast_to(values, (3, 7))):
        want[k] = want[k] + row if accumulate else row
    got = adjoin.index_put(adjoin.tensor(x), (adjoin.tensor(at),), adjoin.tensor(values), accumulate)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float64"])
def test_index_fill(dim, dtype):
    x, want = rows(9, 33).astype("int8").astype(dtype), None
    want = x.copy()
    want[(slice(None),) * dim + ([4, 0, 4],)] = 3
    got = adjoin.index_fill(adjoin.tensor(x), dim, adjoin.tensor([4, 0, 4]), 3)
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("alpha", [1, 2.5])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 100])
def test_index_add_of_single_elements_at_shared_places(n, alpha):
    x, source, at = rows(6, 5, dtype="float64"), rows(6, n, dtype="float64"), RNG.integers(0, 5, n)
    want = x.copy()
    for k in range(n):
        want[:, at[k]] += alpha * source[:, k]
    got = adjoin.index_add(adjoin.tensor(x), 1, adjoin.tensor(at), adjoin.tensor(source), alpha=alpha)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("lines", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_products_of_several_lines(lines, dtype):
    x = rows(lines, 37, dtype=dtype)
    want = np.cumprod(x.astype("float64"), 1)
    np.testing.assert_allclose(
        adjoin.cumprod(adjoin.tensor(x), 1).numpy(), want, rtol=3e-7 if dtype == "float32" else 1e-13
    )
    same = adjoin.tensor(x)
    same.cumprod_(1)
    np.testing.assert_allclose(same.numpy(), want, rtol=3e-7 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("shape", [(50, 3, 8), (50, 1, 8), (1, 16, 16), (50, 3, 1), (50, 17, 3), (50, 3, 17)])
def test_sums_of_few_short_rows(shape):
    x = rows(*shape)
    np.testing.assert_allclose(
        adjoin.sum(adjoin.tensor(x), 1).numpy(), x.astype("float64").sum(1), rtol=1e-5, atol=1e-6
    )
    every_other = adjoin.tensor(np.repeat(x, 2, 0))[::2]
    np.testing.assert_array_equal(adjoin.sum(every_other, 1).numpy(), adjoin.sum(adjoin.tensor(x), 1).numpy())


@pytest.mark.parametrize("name", ["sum", "amax", "mean"])
def test_reductions_of_every_second_column(name):
    x = rows(41, 66)
    want = getattr(np, name)(x[:, ::2].astype("float64"), 0)
    np.testing.assert_allclose(getattr(adjoin, name)(adjoin.tensor(x)[:, ::2], 0).numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 7, 31, 32, 33, 300, 70001])
def test_places_of_truths_and_first_of_equal_neighbours(n):
    mask = RNG.random(n) > 0.5
    np.testing.assert_array_equal(adjoin.nonzero(adjoin.tensor(mask)).numpy()[:, 0], np.nonzero(mask)[0])
    x = RNG.integers(0, 3, n)
    values, inverse, counts = adjoin.unique_consecutive(adjoin.tensor(x), return_inverse=True, return_counts=True)
    begins = np.nonzero(np.append(True, x[1:] != x[:-1]))[0] if n else np.zeros(0, int)
    np.testing.assert_array_equal(values.numpy(), x[begins])
    np.testing.assert_array_equal(counts.numpy(), np.diff(np.append(begins, n)) if n else [])
    np.testing.assert_array_equal(inverse.numpy(), np.repeat(np.arange(len(begins)), counts.numpy()))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "bool", "float32"])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_first_of_equal_neighbours_alone(n, dtype):
    x = RNG.integers(0, 2, 2 * n).astype(dtype)
    for given, plain in ((adjoin.tensor(x), x), (adjoin.tensor(x)[::2], x[::2])):
        kept = adjoin.unique_consecutive(given)
        assert kept.dtype == given.dtype
        np.testing.assert_array_equal(kept.numpy(), plain[np.append(True, plain[1:] != plain[:-1])])
        np.testing.assert_array_equal(adjoin.unique(given).numpy(), np.unique(plain))
    np.testing.assert_array_equal(
        adjoin.unique_consecutive(adjoin.tensor([0.0, -0.0, float("nan"), float("nan")])).numpy()[1:], [np.nan] * 2
    )


def test_blocks_are_written_where_they_stand_or_joined():
    blocks = [rows(3, 4), rows(5), rows(2, 0), rows(1, 1)]
    want, row, column = np.zeros((7, 10), "float32"), 0, 0
    for b in map(np.atleast_2d, blocks):
        want[row : row + len(b), column : column + b.shape[1]] = b
        row, column = row + len(b), column + b.shape[1]
    given = [adjoin.tensor(b) for b in blocks]
    np.testing.assert_array_equal(adjoin.block_diag(*given).numpy(), want)
    given[0].requires_grad_()
    recorded = adjoin.block_diag(*given)
    np.testing.assert_array_equal(recorded.detach().numpy(), want)
    recorded.sum().backward()
    np.testing.assert_array_equal(given[0].grad.numpy(), np.ones((3, 4)))
    assert adjoin.block_diag(adjoin.tensor([1]), adjoin.tensor([2.5])).dtype == adjoin.float32
    some = [adjoin.randn(s, dtype=adjoin.float64, requires_grad=True) for s in ((2, 3), (3,), (), (1, 1))]
    assert adjoin.autograd.gradcheck(lambda *t: adjoin.block_diag(*t).sin(), some)
    assert adjoin.autograd.gradgradcheck(lambda *t: adjoin.block_diag(*t).sin(), some)
    single = adjoin.randn(2, 2, requires_grad=True)
    adjoin.block_diag(single, adjoin.arange(3), some[1].detach()).sum().backward()
    assert single.grad.dtype == adjoin.float32 and adjoin.equal(single.grad, adjoin.ones(2, 2))


def test_addr_has_one_result_recorded_or_not():
    x, u, v = (adjoin.tensor(rows(*s)).requires_grad_() for s in ((4, 5), (4,), (5,)))
    recorded = adjoin.addr(x, u, v, alpha=0.5)
    with adjoin.no_grad():
        np.testing.assert_allclose(adjoin.addr(x, u, v, alpha=0.5).numpy(), recorded.detach().numpy(), rtol=1e-6)
    recorded.sum().backward()
    np.testing.assert_allclose(u.grad.numpy(), np.full(4, 0.5 * v.detach().numpy().sum()), rtol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("width", [16, 64, 65, 130, 300])
def test_wide_bags(width, dtype, mode):
    table = adjoin.tensor(rows(40, width)).to(getattr(adjoin, dtype))
    begins, index = np.array([0, 0, 1, 6, 14]), RNG.integers(0, 40, 23)
    exact = table.double().numpy()
    for padding in (None, int(index[3])):
        got = F.embedding_bag(adjoin.tensor(index), table, adjoin.tensor(begins), mode=mode, padding_idx=padding)
        for bag, (a, b) in enumerate(zip(begins, [*begins[1:], len(index)])):
            taken = exact[[k for k in index[a:b] if k != padding]]
            want = taken.sum(0) / (max(1, len(taken)) if mode == "mean" else 1)
            np.testing.assert_allclose(
                got[bag].double().numpy(),
                want,
                rtol=1e-2 if "16" in dtype else 1e-5,
                atol=1e-2 if "16" in dtype else 1e-5,
            )


@pytest.mark.parametrize("shape", [(3, 5, 4), (2, 3, 4, 5), (4, 3, 16)])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_short_rows_of_many_dimensions_are_copied(shape, dtype):
    x = (rows(*shape) * 9).astype(dtype)
    view = adjoin.tensor(x).transpose(0, 1)
    np.testing.assert_array_equal(view.contiguous().numpy(), x.swapaxes(0, 1))
    windows = adjoin.tensor(x).unfold(-1, 3, 1)
    np.testing.assert_array_equal(windows.contiguous().numpy(), np.lib.stride_tricks.sliding_window_view(x, 3, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["bool", "added"])
def test_attention_with_a_mask_of_any_step(kind, dtype):
    q, k, v = (adjoin.tensor(rows(2, n, 6, dtype=dtype)) for n in (5, 37, 37))
    mask = RNG.random((5, 37)) > 0.4 if kind == "bool" else rows(5, 37, dtype=dtype)
    scores = q.double().numpy() @ k.double().numpy().swapaxes(1, 2) / np.sqrt(6)
    scores = np.where(mask, scores, -np.inf) if kind == "bool" else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v.double().numpy()
    turned = adjoin.tensor(np.ascontiguousarray(mask.T)).t()
    for given in (adjoin.tensor(mask), turned):
        got = F.scaled_dot_product_attention(q, k, v, attn_mask=given)
        np.testing.assert_allclose(got.double().numpy(), want, rtol=2e-5, atol=1e-6)


def test_ldexp_beyond_what_a_power_holds():
    x = adjoin.tensor([1.5, 2.0**-100, 2.0**100, 0.0, float("inf"), 1.0])
    n = adjoin.tensor([-140.0, 200.0, -230.0, 900.0, -900.0, 1e30])
    want = [1.5 * 2.0**-140, 2.0**100, 2.0**-130, 0.0, float("inf"), float("inf")]
    np.testing.assert_array_equal(adjoin.ldexp(x, n).numpy(), np.array(want, "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_ldexp_has_the_values_and_slopes_of_its_body(dtype):
    dtype = getattr(adjoin, dtype)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1.0, -1.5]
    x = adjoin.tensor(odd * len(odd), dtype=dtype).reshape(9, 9)
    n = adjoin.tensor([0.0, 1.0, -3.5, 130.25, -140.0, np.inf, -np.inf, np.nan, 900.0]).to(dtype).reshape(9, 1)
    there = adjoin.ldexp(x.to("reference"), n.to("reference"))
    got = adjoin.ldexp(x, n)
    assert got.dtype == dtype
    ulp = adjoin.finfo(dtype).eps
    np.testing.assert_allclose(got.double().numpy(), there.to("cpu").double().numpy(), rtol=ulp, atol=1e-45)
    wide = adjoin.ldexp(x[:, :1].expand(9, 50), n.expand(9, 50))  # whole vectors
    np.testing.assert_array_equal(wide[:, 17:18].double().numpy(), adjoin.ldexp(x[:, :1], n).double().numpy())
    big = adjoin.tensor([2**40, -(2**40), 300], dtype=adjoin.int64)  # more than halves hold
    zero = adjoin.zeros(3, dtype=dtype)
    assert adjoin.ldexp(zero, big).tolist() == [0, 0, 0]
    a, b = adjoin.tensor([1.5], dtype=dtype, requires_grad=True), adjoin.tensor([2.0], dtype=dtype, requires_grad=True)
    adjoin.ldexp(a, b).sum().backward()
    np.testing.assert_allclose([a.grad.item(), b.grad.item()], [4, 6 * np.log(2)], rtol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("added", [(5, 3, 7), (1, 3, 7), (5, 1, 1), (3, 7), (3, 1), (7,), (1,), ()])
def test_baddbmm_of_any_shape_that_is_added(added, dtype):
    c, x, y = rows(*added, dtype=dtype), rows(5, 4, 3, dtype=dtype), rows(5, 4, 7, dtype=dtype)
    want = -0.5 * c + 2 * (x.transpose(0, 2, 1) @ y)
    x, y = adjoin.tensor(x).transpose(1, 2), adjoin.tensor(y)
    got = adjoin.baddbmm(adjoin.tensor(c), x, y, beta=-0.5, alpha=2)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    if added == (5, 3, 7):
        z = adjoin.tensor(c)
        z.baddbmm_(x, y, beta=-0.5, alpha=2)
        np.testing.assert_allclose(z.numpy(), want, rtol=1e-5, atol=1e-5)
        wide = adjoin.tensor(np.repeat(c, 2, 2))[:, :, ::2]
        wide.baddbmm_(x, y, beta=-0.5, alpha=2)
        np.testing.assert_allclose(wide.numpy(), want, rtol=1e-5, atol=1e-5)
    none = adjoin.full(added, np.nan, dtype=getattr(adjoin, dtype))
    got = adjoin.baddbmm(none, x, y, beta=0)
    np.testing.assert_allclose(got.numpy(), x.numpy() @ y.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "m, n, k", [(3, 5, 7), (70, 33, 40), (33, 170, 64), (200, 96, 600), (96, 200, 5), (64, 64, 64)]
)
def test_subtracted_products_are_the_added_ones_with_another_sign(m, n, k, dtype):
    x, y, c = (adjoin.tensor(rows(*shape, dtype=dtype)) for shape in ((m, k), (k, n), (m, n)))
    for left in (x, x.t().contiguous().t()):
        for right in (y, y.t().contiguous().t()):
            for beta in (0, 1, 0.5):
                got = adjoin.addmm(c, left, right, alpha=-1, beta=beta)
                assert adjoin.equal(got, adjoin.addmm(c, -left, right, beta=beta))
                np.testing.assert_allclose(got.numpy(), beta * c.numpy() - x.numpy() @ y.numpy(), rtol=1e-3, atol=1e-3)
    assert adjoin.equal(x.t().contiguous().t(), x) and adjoin.equal(y, y + 0)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_repeated_elements(dtype):
    x = (rows(6, 37) * 50).astype("int8").astype(dtype)
    for n in (1, 2, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40, 100):
        got = adjoin.repeat_interleave(adjoin.tensor(x), n, 1)
        np.testing.assert_array_equal(got.numpy(), np.repeat(x, n, 1))
        column = adjoin.tensor(x)[:, ::2].unsqueeze(2).expand(6, 19, n).contiguous()
        np.testing.assert_array_equal(column.numpy(), np.broadcast_to(x[:, ::2, None], (6, 19, n)))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 101])
def test_places_of_many_values(n):
    s = np.sort(rows(n))
    x = np.concatenate([rows(61), s, [np.nan, np.inf, -np.inf]]).astype("float32")
    for side in ("left", "right"):
        got = adjoin.searchsorted(adjoin.tensor(s), adjoin.tensor(x), side=side)
        np.testing.assert_array_equal(got.numpy(), np.searchsorted(s, x, side))
    lines, values = np.sort(rows(5, n), 1), rows(5, 19)
    got = adjoin.searchsorted(adjoin.tensor(lines), adjoin.tensor(values)).numpy()
    np.testing.assert_array_equal(got, [np.searchsorted(a, b) for a, b in zip(lines, values, strict=True)])


@pytest.mark.parametrize("shape", [(64, 256, 256), (8, 17, 300), (33, 50, 129), (16, 64, 200)])
def test_products_whose_result_lies_turned(shape):
    m, k, n = shape
    x, w, b = rows(m, k), rows(n, k), rows(n)
    got = F.linear(adjoin.tensor(x), adjoin.tensor(w), adjoin.tensor(b)).numpy()
    np.testing.assert_allclose(got, x @ w.T + b, rtol=1e-4, atol=1e-4)
    got = (adjoin.tensor(x) @ adjoin.tensor(w).T).numpy()
    np.testing.assert_allclose(got, x @ w.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "complex128"])
@pytest.mark.parametrize(
    "shape, dim", [((7, 8), 0), ((7, 300), -2), ((3, 5, 4, 2), 1), ((2, 9, 7), 1), ((3, 5, 8), -1)]
)
def test_gather_of_whole_rows(shape, dim, dtype):
    x, at = rows(*shape).astype(dtype), RNG.integers(0, shape[dim], 11)
    sizes = [1] * len(shape)
    sizes[dim] = 11
    wide = list(shape)
    wide[dim] = 11
    index = adjoin.tensor(at).reshape(sizes).expand(wide)
    np.testing.assert_array_equal(adjoin.gather(adjoin.tensor(x), dim, index).numpy(), np.take(x, at, dim))
    turned = adjoin.tensor(np.ascontiguousarray(x.T)).permute(*range(len(shape))[::-1])
    np.testing.assert_array_equal(adjoin.gather(turned, dim, index).numpy(), np.take(x, at, dim))
    part = index[(slice(0, 1),) + (slice(None),) * (len(shape) - 1)]
    want = np.take(x, at, dim)[:1] if dim % len(shape) else np.take(x, at[:1], dim)
    np.testing.assert_array_equal(adjoin.gather(adjoin.tensor(x), dim, part).numpy(), want)
    at[3] = shape[dim]
    with pytest.raises(IndexError, match=rf"index {shape[dim]} "):
        adjoin.gather(adjoin.tensor(x), dim, adjoin.tensor(at).reshape(sizes).expand(wide))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 60])
def test_modes_of_short_lines(n, dtype):
    x = RNG.integers(0, 5, (200, n)).astype(dtype)
    if dtype.startswith("float"):
        x[::3] -= 2
        x[RNG.random(x.shape) < 0.2] = np.nan
    values, places = adjoin.mode(adjoin.tensor(x), 1)
    for row, value, place in zip(x, values.numpy(), places.numpy()):
        if np.isnan(row).all():
            assert np.isnan(value) and place == 0
            continue
        numbers = row[~np.isnan(row)]  # NaN equals nothing
        best = max(sorted(set(numbers)), key=lambda v: (numbers == v).sum())
        assert value == best and place == np.flatnonzero(row == best)[-1]
