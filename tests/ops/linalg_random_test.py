"""tests/ops/linalg_random_test.py: identities of factorisations for random matrices: conditioned, singular, empty, huge, with NaN.

`ADJOIN_RANDOM_CASES=100000 python tests/ops/linalg_random_test.py` takes as many; ADJOIN_TEST_SEED says which.
"""

import os
import random

import adjoin
import numpy as np

L = adjoin.linalg
SCALES = {"float32": [1, 1e-12, 1e12], "float64": [1, 1, 1e-120, 1e120]}


def matrix(rng, kind, m, n, dtype):
    """A matrix and its norm: "plain", "conditioned" by a spectrum, "singular"."""
    made = rng.standard_normal((m, n))
    if dtype.startswith("complex"):
        made = made + 1j * rng.standard_normal((m, n))
    if kind == "plain" or not made.size:
        return made
    u, s, vh = np.linalg.svd(made, full_matrices=False)
    s = np.logspace(0, -5, len(s)) if kind == "conditioned" else s * (np.arange(len(s)) < max(len(s) - 1, 0))
    return (u * s) @ vh


def stack(rng, pick, dtype, square):
    """Batch, rows, columns; one kind of matrices; one size of numbers."""
    kind = pick.choice(["plain", "plain", "conditioned", "singular"])
    m = pick.choice([0, 1, 2, 3, 5, 8, 13] if pick.random() < 0.9 else [33, 40])
    n = m if square else pick.choice([0, 1, 2, 4, 7, 12])
    batch = pick.choice([(), (), (2,), (3, 2), (0,)])
    count = int(np.prod(batch))
    scale = pick.choice(SCALES["float32" if dtype in ("float32", "complex64") else "float64"])
    made = np.array([matrix(rng, kind, m, n, dtype) for _ in range(count)]).reshape(*batch, m, n) * scale
    return kind, made.astype(dtype)


def small(left, right, size, eps, about):
    """|left - right| is rounding beside size, which may be one number for each matrix."""
    away = np.abs(left - right).max((-2, -1), initial=0)
    assert np.all(away <= eps * size), (about, away, eps * size)


def peak(a):
    """The largest number, or 1 if all are 0: what divides others."""
    return float(np.abs(a).max(initial=0)) or 1.0


def norm(a):
    """Of each matrix; no square leaves the dtype."""
    return np.sqrt((np.abs(a / peak(a)) ** 2).sum((-2, -1))) * peak(a)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def eye(n, like):
    return np.broadcast_to(np.eye(n, dtype=like.dtype), (*like.shape[:-2], n, n))


def qr(a, t, kind, eps, about):
    q, r = (x.numpy() for x in L.qr(t))
    k = min(a.shape[-2:])
    small(q @ r, a, norm(a), eps, about)
    small(adjoint(q) @ q, eye(k, q), 1, eps, about)
    assert not np.tril(r, -1).any(), about


def svd(a, t, kind, eps, about):
    u, s, vh = (x.numpy() for x in L.svd(t, full_matrices=False))
    k = min(a.shape[-2:])
    small((u * s[..., None, :]) @ vh, a, norm(a), eps, about)
    small(adjoint(u) @ u, eye(k, u), 1, eps, about)
    small(vh @ adjoint(vh), eye(k, u), 1, eps, about)
    assert np.all(s >= 0) and np.all(np.diff(s, axis=-1) <= 0), about
    small(L.svdvals(t).numpy()[..., None], s[..., None], norm(a), eps, about)


def lu(a, t, kind, eps, about):
    p, low, up = (x.numpy() for x in L.lu(t))
    small(p @ (low @ up), a, norm(a), eps * 8, about)
    assert np.abs(low).max(initial=0) <= 1 + 1e-6 or np.iscomplexobj(a), about


def eigh(a, t, kind, eps, about):
    h = a + adjoint(a)
    w, v = (x.numpy() for x in L.eigh(adjoin.from_numpy(h.copy()).reshape(h.shape)))
    small((v * w[..., None, :]) @ adjoint(v), h, norm(h), eps, about)
    small(adjoint(v) @ v, eye(h.shape[-1], v), 1, eps, about)
    assert np.all(np.diff(w, axis=-1) >= 0), about


def eig(a, t, kind, eps, about):
    w, v = (x.numpy() for x in L.eig(t))
    small(a @ v, v * w[..., None, :], norm(a), eps * 10, about)


def solve(a, t, kind, eps, about):
    b = np.random.default_rng(0).standard_normal((*a.shape[:-1], 2)).astype(a.dtype)
    if kind == "singular":
        a = a + eye(a.shape[-1], a) * (norm(a) + peak(a))[..., None, None].astype(a.real.dtype)
        t = adjoin.from_numpy(a.copy()).reshape(a.shape)
    x = L.solve(t, adjoin.from_numpy(b.copy()).reshape(b.shape)).numpy()
    small(a @ x, b, norm(a) * norm(x) + norm(b), eps, about)
    inverse = L.inv(t).numpy()
    small(a @ inverse, eye(a.shape[-1], a), norm(a) * norm(inverse), eps, about)
    ld, pivots = L.ldl_factor(adjoin.from_numpy(h := a + adjoint(a)), hermitian=True)
    x = L.ldl_solve(ld, pivots, adjoin.from_numpy(b.copy()).reshape(b.shape), hermitian=True).numpy()
    small(h @ x, b, 4 * norm(h) * norm(x) + norm(b), eps * 8, about)


def cholesky(a, t, kind, eps, about):
    unit = a / peak(a)
    p = unit @ adjoint(unit)
    p = (p + eye(p.shape[-1], p) * (norm(p) + 1)[..., None, None].astype(p.real.dtype)).astype(a.dtype)
    low = L.cholesky(adjoin.from_numpy(p.copy()).reshape(p.shape)).numpy()
    small(low @ adjoint(low), p, norm(p), eps, about)
    assert not np.triu(low, 1).any(), about


def least_squares(a, t, kind, eps, about):
    x = L.pinv(t).numpy()
    size = norm(a) * norm(x)
    small(a @ (x @ a), a, norm(a) * (1 + size), eps * 10, about)
    small(adjoint(a @ x), a @ x, 1 + size, eps * 10, about)


def determinant(a, t, kind, eps, about):
    sign, log = (x.numpy() for x in L.slogdet(t))
    with np.errstate(all="ignore"):
        want_sign, want = np.linalg.slogdet(a)
    if kind == "plain":
        np.testing.assert_allclose(
            log, want, rtol=1e-2 if eps > 1e-8 else 1e-6, atol=2e-2 if eps > 1e-8 else 1e-6, err_msg=about
        )
        np.testing.assert_allclose(sign, want_sign, atol=1e-2 if eps > 1e-8 else 1e-6, err_msg=about)


SQUARE = (lu, eigh, eig, solve, cholesky, determinant)
ANY = (qr, svd, lu, least_squares)


def bad_beside_good(pick, rng, dtype):
    """A matrix with NaN or inf in a stack leaves the others as they are; alone it gives NaN or raises, and ends."""
    n = pick.randint(1, 6)
    good = rng.standard_normal((3, n, n)).astype(dtype)
    good = good @ good.swapaxes(-1, -2) + np.eye(n, dtype=dtype)
    bad = good.copy()
    bad[1, pick.randrange(n), pick.randrange(n)] = pick.choice([np.nan, np.inf, -np.inf])
    for f in (L.inv, L.qr, L.cholesky_ex, L.slogdet, L.lu_factor_ex, L.svdvals, L.eigvalsh, L.ldl_factor_ex, L.eigvals):
        try:
            made = f(adjoin.from_numpy(bad.copy()))
        except (L.LinAlgError, RuntimeError):
            continue
        want = f(adjoin.from_numpy(good.copy()))
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (made, want)), strict=True):
            for lane in (0, 2):
                assert adjoin.allclose(one[lane], other[lane], rtol=1e-4, atol=1e-4), (f, lane)


def one(seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    dtype = pick.choice(["float64", "float64", "float32", "complex128", "complex64"])
    if pick.random() < 0.1:
        return bad_beside_good(pick, rng, "float64")
    square = pick.random() < 0.6
    f = pick.choice(SQUARE if square else ANY)
    kind, a = stack(rng, pick, dtype, square)
    t = adjoin.from_numpy(a.copy()).reshape(a.shape)
    if pick.random() < 0.3:
        t = t.transpose(-2, -1).contiguous().transpose(-2, -1)
    n = max(*a.shape[-2:], 1)
    eps = np.finfo(dtype).eps * (20 * n + 20)
    about = f"seed {seed}: {f.__name__} of {kind} {a.shape} {dtype}, size {np.abs(a).max(initial=0):.1e}"
    f(a, t, kind, eps, about)


def run(cases):
    seed = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
    print("seed", seed)
    for case in range(cases):
        one(seed * 1000003 + case)


def test_random_matrices():
    run(int(os.environ.get("ADJOIN_RANDOM_CASES", 250)))


if __name__ == "__main__":
    run(int(os.environ.get("ADJOIN_RANDOM_CASES", 100000)))
