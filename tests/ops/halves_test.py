"""tests/ops/halves_test.py: matrices that are factored by halves, over products: sizes about the leaves, wide and tall ones, every
triangle, failures deep inside."""

import adjoin as T
import numpy as np
import pytest

L = T.linalg
DTYPES = [np.float32, np.float64]


def drawn(n, m, dtype):
    return np.random.default_rng(n * 1000 + m).standard_normal((n, m)).astype(dtype)


def small(difference, size, dtype):
    assert np.abs(difference).max() <= 8 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("n", [16, 17, 31, 32, 33, 64, 65, 100, 129, 257])
def test_square(n, dtype):
    a = drawn(n, n, dtype)
    definite = (a @ a.T + n * np.eye(n)).astype(dtype)
    for upper in (False, True):
        half = np.triu(definite) if upper else np.tril(definite)
        other = np.tri(n, k=-1, dtype=dtype) * 9  # not read
        low = L.cholesky(T.tensor(half + (other if upper else other.T)), upper=upper).numpy().astype(float)
        low = low.T if upper else low
        small(low @ low.T - definite, np.linalg.norm(definite), dtype)
    for t in (T.tensor(a), T.tensor(a.T.copy()).T):
        p, low, up = (x.numpy().astype(float) for x in L.lu(t))
        small(p @ low @ up - a, np.linalg.norm(a), dtype)
        assert np.abs(low).max() <= 1 + 1e-6
        for m in (1, 3, 40):
            b = drawn(n, m, dtype)
            x = L.solve(t, T.tensor(b)).numpy().astype(float)
            small(a @ x - b, np.linalg.norm(a) * np.linalg.norm(x), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("n", [17, 32, 33, 70, 130])
def test_triangles(n, dtype):
    a = drawn(n, n, dtype) / n + np.eye(n, dtype=dtype)
    for upper in (False, True):
        for unit in (False, True):
            half = np.triu(a) if upper else np.tril(a)
            if unit:
                np.fill_diagonal(half, 1)
            given = half + (9 * np.eye(n, dtype=dtype) if unit else 0)  # not read
            for m in (1, 5, 33):
                b = drawn(n, m, dtype)
                for t in (T.tensor(given), T.tensor(given.T.copy()).T):
                    x = L.solve_triangular(t, T.tensor(b), upper=upper, unitriangular=unit).numpy().astype(float)
                    small(half @ x - b, np.linalg.norm(half) * np.linalg.norm(x), dtype)
                    x = L.solve_triangular(t, T.tensor(b.T.copy()), upper=upper, left=False, unitriangular=unit)
                    x = x.numpy().astype(float)
                    small(x @ half - b.T, np.linalg.norm(half) * np.linalg.norm(x), dtype)


@pytest.mark.parametrize(
    "shape", [(100, 20), (20, 100), (33, 70), (70, 33), (300, 17), (17, 300), (16, 40), (1, 40)], ids=str
)
def test_wide_and_tall(shape):
    for dtype in DTYPES:
        a = drawn(*shape, dtype)
        p, low, up = (x.numpy().astype(float) for x in L.lu(T.tensor(a)))
        small(p @ low @ up - a, np.linalg.norm(a), dtype)


def test_failures_deep_inside():
    a = drawn(100, 100, np.float64)
    a[:, 60] = 0
    lu, pivots, info = L.lu_factor_ex(T.tensor(a))
    assert info == 61 and lu.isfinite().all() and (pivots >= T.arange(1, 101)).all()
    with pytest.raises(L.LinAlgError, match="element 61"):
        L.inv(T.tensor(a))
    s = 2 * np.eye(90)
    s[70, 70] = -1
    for upper in (False, True):
        low, info = L.cholesky_ex(T.tensor(s), upper=upper)
        assert info == 71 and low.isnan().all()
    a[5, 7] = np.nan
    assert L.solve_ex(T.tensor(a), T.ones(100, 1, dtype=T.float64))[0].isnan().all()
    tiny = drawn(40, 40, np.float32) * np.float32(1e-39)  # denormal numbers
    p, low, up = (x.numpy().astype(float) for x in L.lu(T.tensor(tiny)))
    assert np.abs(p @ low @ up - tiny).max() <= 1e-43
