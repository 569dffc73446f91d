"""tests/ops/stacks_test.py: stacks of small matrices, which lie in lanes of vectors: every size and count, layouts, and lanes that fail
beside lanes that do not."""

import os
import subprocess
import sys

import adjoin as T
import numpy as np
import pytest

L = T.linalg
DTYPES = [np.float32, np.float64]
SIZES = [1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32]
COUNTS = [(16,), (1,), (3, 7), (40,)]


def drawn(rng, dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


def near(got, expected, size, dtype):
    """Of each matrix the difference beside its own size."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == dtype
    eps = np.finfo(dtype).eps * got.shape[-1] * 40
    away = np.abs(got - expected).max((-2, -1), initial=0)
    assert np.all(away <= eps * size), float((away / size).max())


def norm(a):
    return np.sqrt((a.astype(np.float64) ** 2).sum((-2, -1)))


def laid(x):
    """One tensor in several layouts."""
    wide = T.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), dtype=x.dtype)
    wide[..., 1::2] = x
    yield x
    yield x.mT.contiguous().mT
    yield wide[..., 1::2]
    apart = T.zeros((x.shape[0] * 2, *x.shape[1:]), dtype=x.dtype)
    apart[::2] = x
    yield apart[::2]


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_every_size_and_layout(n, dtype):
    rng = np.random.default_rng(n)
    for count in COUNTS:
        a, b = drawn(rng, dtype, *count, n, n), drawn(rng, dtype, *count, n, 3)
        a += np.eye(n, dtype=dtype) * np.sign(np.diagonal(a, 0, -2, -1))[..., None] * 2  # well conditioned
        definite = a @ a.swapaxes(-1, -2) + n * np.eye(n, dtype=dtype)
        inverse = np.linalg.inv(a.astype(np.float64))
        hard = norm(a) * norm(inverse)
        for t, d, right in zip(laid(T.tensor(a)), laid(T.tensor(definite)), laid(T.tensor(b)), strict=True):
            for upper in (False, True):
                low = L.cholesky(d, upper=upper).numpy()
                low = low.swapaxes(-1, -2) if upper else low
                near(low @ low.swapaxes(-1, -2), definite, norm(definite), dtype)
                assert not np.triu(low, 1).any()
            p, low, up = (x.numpy() for x in L.lu(t))
            near(p @ (low @ up), a, norm(a), dtype)
            assert np.abs(low).max() <= 1
            lu, pivots = L.lu_factor(t)
            assert pivots.dtype == T.int32 and (pivots >= T.arange(1, n + 1)).all() and (pivots <= n).all()
            x = L.solve(t, right).numpy()
            near(a @ x, b, norm(a) * norm(x), dtype)
            x = L.solve(t, right[..., 0]).numpy()
            near(a @ x[..., None], b[..., :1], norm(a) * norm(x[..., None]), dtype)
            near(L.inv(t), inverse, hard * norm(inverse), dtype)
            det = np.linalg.det(a.astype(np.float64))
            assert np.all(np.abs(L.det(t).numpy() - det) <= np.abs(det) * hard * np.finfo(dtype).eps * n * 20)
            q, r = (x.numpy() for x in L.qr(t))
            near(q @ r, a, norm(a), dtype)
            near(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(n), q.shape), 1, dtype)
            assert not np.tril(r, -1).any()
            assert np.array_equal(L.qr(t, "r").R.numpy(), r)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_spectra(n, dtype):
    rng = np.random.default_rng(n)
    for count in COUNTS:
        a = drawn(rng, dtype, *count, n, n)
        h = a + a.swapaxes(-1, -2)
        for t, s in zip(laid(T.tensor(a)), laid(T.tensor(h)), strict=True):
            one = np.broadcast_to(np.eye(n), a.shape)
            for triangle in ("L", "U"):
                half = s.tril() if triangle == "L" else s.triu()
                w, v = (x.numpy() for x in L.eigh(half, UPLO=triangle))
                near((v * w[..., None, :]) @ v.swapaxes(-1, -2), h, norm(h), dtype)
                near(v.swapaxes(-1, -2) @ v, one, 1, dtype)
                assert np.all(np.diff(w, axis=-1) >= 0)
                near(L.eigvalsh(half, UPLO=triangle).numpy()[..., None], w[..., None], norm(h), dtype)
            u, s, vh = (x.numpy() for x in L.svd(t))
            near((u * s[..., None, :]) @ vh, a, norm(a), dtype)
            near(u.swapaxes(-1, -2) @ u, one, 1, dtype)
            near(vh @ vh.swapaxes(-1, -2), one, 1, dtype)
            assert np.all(s >= 0) and np.all(np.diff(s, axis=-1) <= 0)
            near(L.svdvals(t).numpy()[..., None], s[..., None], norm(a), dtype)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_vectors_stay_of_length_one(dtype, device):
    """Some thousand turns change the length of none: LAPACK's own are off by 40 units, in the norm of all."""
    x = drawn(np.random.default_rng(5), dtype, 4 if device == "reference" else 64, 32, 32)
    t = T.tensor(x).to(device)
    u, s, vh = (m.cpu().numpy().astype(np.float64) for m in L.svd(t))
    v = L.eigh(t + t.mT)[1].cpu().numpy().astype(np.float64)
    for q in (u, vh, v):
        assert norm(q.swapaxes(-1, -2) @ q - np.eye(32)).max() < 60 * np.finfo(dtype).eps
    assert (norm((u * s[..., None, :]) @ vh - x) / norm(x)).max() < 15 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("shape", [(20, 3, 5), (20, 5, 3), (20, 1, 4), (20, 17, 2), (20, 9, 32)], ids=str)
def test_more_rows_or_more_columns(shape, dtype):
    a = drawn(np.random.default_rng(0), dtype, *shape)
    m, k = shape[1], min(shape[1:])
    for t in laid(T.tensor(a)):
        for mode, columns in (("reduced", k), ("complete", m)):
            q, r = (x.numpy() for x in L.qr(t, mode))
            near(q @ r, a, norm(a), dtype)
            near(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(columns), (20, columns, columns)), 1, dtype)
            assert r.shape[-2] == columns and not np.tril(r, -1).any()
        u, s, vh = (x.numpy() for x in L.svd(t, full_matrices=False))
        near((u * s[..., None, :]) @ vh, a, norm(a), dtype)
        near(u.swapaxes(-1, -2) @ u, np.broadcast_to(np.eye(k), (20, k, k)), 1, dtype)
        near(vh @ vh.swapaxes(-1, -2), np.broadcast_to(np.eye(k), (20, k, k)), 1, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("n", [2, 4, 9])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_lanes_that_fail_stand_beside_others(n, dtype):
    """Singular, NaN, infinite and huge matrices say so; their neighbours have the numbers that they have alone."""
    rng = np.random.default_rng(n)
    a = drawn(rng, dtype, 40, n, n)
    a[3] = 0
    a[7, :, n - 1] = a[7, :, 0] = 0
    a[11, 0, n - 1] = np.nan
    a[19, n - 1, 0] = np.inf
    big = np.finfo(dtype).max
    a[23] *= dtype(big**0.7)
    a[31] *= dtype(big**-0.7)
    good = [i for i in range(40) if i not in (3, 7, 11, 19)]
    t = T.tensor(a)
    alone = T.tensor(a[good])
    x, info = L.inv_ex(t)
    assert info[3] == 1 and info[7] == 1 and not info[good].any()
    assert x[[3, 7]].isnan().all() and T.equal(x[good], L.inv_ex(alone)[0])
    error = np.abs(a[good] @ x[good].numpy() - np.eye(n)).max((-2, -1))
    assert np.all(
        error <= np.finfo(dtype).eps * 40 * n * norm(a[good] / np.abs(a[good]).max((-2, -1), keepdims=True)) * 1e4
    )
    with pytest.raises(L.LinAlgError, match=r"batch element 3.*singular"):
        L.inv(t)
    with pytest.raises(L.LinAlgError, match=r"batch element 3.*singular"):
        L.solve(t, T.ones(40, n, 1, dtype=t.dtype))
    lu, pivots, info = L.lu_factor_ex(t)
    assert info[3] == 1 and info[7] == 1 and T.equal(lu[good], L.lu_factor_ex(alone)[0])
    assert lu[3].eq(0).all() and T.equal(pivots[3], T.arange(1, n + 1, dtype=T.int32))
    det = L.det(t)
    assert det[3] == 0 and det[7] == 0 and det[11].isnan() and T.equal(det[good], L.det(alone))
    q, r = L.qr(t)
    assert T.equal(q[3], T.eye(n, dtype=t.dtype)) and not r[3].any()
    for i in (*good, 3, 7):
        size = np.abs(a[i]).max() or 1
        near((q[i].numpy() @ (r[i].numpy() / size))[None], (a[i] / size)[None], n, dtype)
        near((q[i].mT @ q[i]).numpy()[None], np.eye(n)[None], 1, dtype)
    h = t.tril() + t.tril(-1).mT
    w, v = L.eigh(h)
    for i in range(40):
        if not h[i].isfinite().all():
            assert w[i].isnan().all() and v[i].isnan().all()
            continue
        size = h[i].abs().max() or 1
        near((v[i] * (w[i] / size) @ v[i].mT).numpy()[None], (h[i] / size).numpy()[None], n, dtype)
    with pytest.raises(L.LinAlgError, match=r"batch element 11.*NaN or infinity"):
        L.svd(t)
    rest = T.tensor(a[[i for i in range(40) if i not in (11, 19)]])
    u, s, vh = L.svd(rest)
    size = rest.abs().amax((-2, -1), keepdim=True).clamp(min=np.finfo(dtype).tiny)
    near(((u * (s.unsqueeze(-2) / size)) @ vh).numpy(), (rest / size).numpy(), n, dtype)
    near((u.mT @ u).numpy(), np.broadcast_to(np.eye(n), u.shape), 1, dtype)
    s = T.tensor(
        a @ a.swapaxes(-1, -2) / np.maximum(np.abs(a).max((-2, -1), keepdims=True) ** 2, 1) + np.eye(n, dtype=dtype)
    )
    s[5] = -s[5]
    s[6, n - 1, n - 1] = -1
    low, info = L.cholesky_ex(s)
    assert info[5] == 1 and info[6] == n and low[[5, 6]].isnan().all() and info[11] > 0
    with pytest.raises(L.LinAlgError, match=r"batch element 5.*order 1"):
        L.cholesky(s)


def test_a_step_between_matrices_is_any_number():
    a = T.tensor(drawn(np.random.default_rng(0), np.float32, 6, 5, 4, 4))
    one = T.eye(4).expand(6, 5, 4, 4)
    for t in (a, a.transpose(0, 1), a[:1].expand(6, 5, 4, 4), a[:, 0], a[:, :, 1:3, 1:3], a.unsqueeze(2)):
        x = L.inv(t)
        np.testing.assert_allclose(x.numpy(), np.linalg.inv(t.double().numpy()), rtol=2e-3, atol=2e-3)
        out = T.empty(*t.shape[:-1], 2 * t.shape[-1])[..., ::2]
        assert L.inv(t, out=out) is out and T.equal(out, x)
    np.testing.assert_allclose(L.solve(a[0, 0], one).numpy(), np.linalg.inv(a[0, 0].double().numpy())[None, None].repeat(6, 0).repeat(5, 1), rtol=1e-3, atol=1e-3)  # fmt: skip


def test_every_number_of_threads_gives_the_same_bits():
    a = T.tensor(drawn(np.random.default_rng(0), np.float32, 1003, 6, 6))
    before = T.get_num_threads()
    made = []
    try:
        for threads in (1, 2):
            T.set_num_threads(threads)
            made.append([L.inv(a), *L.qr(a), *L.eigh(a + a.mT), *L.svd(a)])
    finally:
        T.set_num_threads(before)
    assert all(T.equal(x, y) for x, y in zip(*made, strict=True))


@pytest.mark.parametrize("isa", ["base", "avx2"])
def test_older_processors(isa):
    code = "import stacks_test as t, numpy as np\nfor n in (1, 3, 4, 6, 17):\n for d in t.DTYPES: t.test_every_size_and_layout(n, d); t.test_spectra(n, d)\nt.test_lanes_that_fail_stand_beside_others(4, np.float32)"
    env = dict(
        os.environ,
        ADJOIN_CPU_ISA=isa,
        PYTHONPATH=os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]),
    )
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=300)
