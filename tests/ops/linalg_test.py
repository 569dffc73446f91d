"""tests/ops/linalg_test.py: factorisations by what defines them: products give the matrix again, in every size, dtype and layout;
derivatives of what is Hermitian or known up to a phase; errors that name the matrix of a stack."""

import math
import subprocess
import sys

import adjoin as T
import numpy as np
import pytest

L = T.linalg
NUMBERS = [T.float32, T.float64, T.complex64, T.complex128]
EXACT = [T.float64, T.complex128]
DEVICES = ["cpu", "reference"]
SHAPES = [(0, 0), (1, 1), (4, 4), (3, 5, 5), (2, 0, 3, 3), (2, 2, 2, 2), (45, 45)]
WIDE = [(0, 3), (3, 0), (5, 3), (3, 5), (2, 4, 3), (0, 2, 3), (60, 40), (40, 60)]


def drawn(shape, dtype=T.float64, seed=0, device="cpu"):
    generator = T.Generator()
    generator.manual_seed(seed)
    return T.randn(shape, dtype=dtype, generator=generator).to(device)


def positive(shape, dtype=T.float64, device="cpu"):
    x = drawn(shape, dtype, 1)
    return (x @ x.mH + T.eye(shape[-1], dtype=dtype) * (shape[-1] + 1)).to(device)


def hermitian(x):
    return x + x.mH


def near(got, expected, scale=1.0):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    wide = got.dtype in (T.float64, T.complex128)
    tolerance = scale * (1e-10 if wide else 1e-3)
    np.testing.assert_allclose(got.cpu().numpy(), expected.cpu().numpy(), rtol=tolerance, atol=tolerance)


def same(x):
    return x


def every_other(x):
    wide = T.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), dtype=x.dtype, device=x.device)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def by_columns(x):
    return x.mT.contiguous().mT


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_square_matrices(shape, dtype, device):
    a, definite = drawn(shape, dtype, 2, device), positive(shape, dtype, device)
    b = drawn((*shape[:-1], 2), dtype, 3, device)
    one = T.eye(shape[-1], dtype=dtype, device=device).expand(shape)
    scale = 10 + shape[-1] ** 2
    for laid in (same, every_other, by_columns):
        lower, upper = L.cholesky(laid(definite)), L.cholesky(laid(definite), upper=True)
        near(lower @ lower.mH, definite, scale)
        near(upper, lower.mH.contiguous(), scale)
        assert not lower.triu(1).any() and not upper.tril(-1).any()
        near(definite @ T.cholesky_solve(laid(b), lower), b, scale)
        near(definite @ T.cholesky_inverse(lower), one, scale)
        p, low, up = L.lu(laid(a))
        near(p @ low @ up, a, scale)
        lu, pivots = L.lu_factor(laid(a))
        near(a @ L.lu_solve(lu, pivots, laid(b)), b, 10 * scale)
        near(a.mH @ L.lu_solve(lu, pivots, b, adjoint=True), b, 10 * scale)
        near(L.lu_solve(lu, pivots, b.mT, left=False) @ a, b.mT, 10 * scale)
        near(a @ L.solve(laid(a), laid(b)), b, 10 * scale)
        near(L.solve(a, b.mT, left=False) @ a, b.mT, 10 * scale)
        near(a @ L.inv(laid(a)), one, 10 * scale)
        near(L.solve_triangular(laid(up + one), (up + one) @ b, upper=True), b, 1e3 * scale)
        sign, size = L.slogdet(laid(a))
        near(sign * size.exp().to(dtype), L.det(laid(a)), scale * (1 + size.exp().max().item() if size.numel() else 1))
        values, vectors = L.eigh(laid(definite))
        near(vectors * values.unsqueeze(-2) @ vectors.mH, definite, scale)
        near(vectors.mH @ vectors, one, scale)
        assert not (values[..., 1:] < values[..., :-1]).any()
        near(L.eigvalsh(definite.tril()), values, scale)
        near(L.eigvalsh(definite.triu(), UPLO="U"), values, scale)
        values, vectors = L.eig(laid(a))
        near(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2), scale)
        near(vectors.abs().square().sum(-2), T.ones_like(values.real), scale)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("shape", WIDE, ids=str)
def test_matrices_of_any_shape(shape, dtype, device):
    a = drawn(shape, dtype, 4, device)
    m, n, scale = shape[-2], shape[-1], 10 + max(shape) ** 2
    for laid in (same, every_other, by_columns):
        for mode in ("reduced", "complete"):
            q, r = L.qr(laid(a), mode)
            near(q @ r, a, scale)
            near(q.mH @ q, T.eye(q.shape[-1], dtype=dtype, device=device).expand(q.mH.shape[:-1] + q.shape[-1:]), scale)
            assert not r.tril(-1).any()
        near(L.qr(laid(a), "r").R, L.qr(a).R, scale)
        for full in (False, True):
            u, s, vh = L.svd(laid(a), full_matrices=full)
            k = min(m, n)
            near(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a, scale)
            for basis in (u, vh.mH):
                size = basis.shape[-1]
                near(basis.mH @ basis, T.eye(size, dtype=dtype, device=device).expand(*shape[:-2], size, size), scale)
            assert not (s[..., 1:] > s[..., :-1]).any() and not (s < 0).any()
        near(L.svdvals(laid(a)), s, scale)
        u, s, v = T.svd(laid(a))
        near(u * s.unsqueeze(-2) @ v.mH, a, scale)
        p, low, up = L.lu(laid(a))
        near(p @ low @ up, a, scale)
        x = L.pinv(laid(a))
        near(a @ x @ a, a, scale)
        near(x @ a @ x, x, scale)
        if m >= n:
            near(L.householder_product(*T.geqrf(laid(a))), L.qr(a).Q, scale)
            near(T.ormqr(*T.geqrf(a), a, transpose=True).triu(), L.qr(a, "complete").R, scale)


@pytest.mark.parametrize("dtype", [T.float64, T.complex128], ids=str)
def test_the_backends_agree_on_signs(dtype):
    """Our plain loops follow LAPACK's conventions, so QR and LU are the same numbers, small and large."""
    for n in (3, 50):
        a = drawn((n, n + 2), dtype)
        for f in (L.qr, L.lu_factor, T.geqrf):
            for x, y in zip(f(a), f(a.to("reference")), strict=True):
                near(x, y.cpu(), 10 * n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 4), (33, 33), (65, 64), (40, 300), (300, 40), (200, 193), (520, 515)], ids=str)
def test_reflections_in_blocks(shape, dtype):
    """Of one block, of several, of blocks in halves; numbers whose squares leave the range; Q of fewer vectors."""
    eps, one = np.finfo(dtype).eps, np.random.default_rng(3).standard_normal(shape)
    for size in (1, 1e-30 if dtype is np.float32 else 1e-200, 1e25):
        a = (one * size).astype(dtype)
        for mode in ("reduced", "complete"):
            q, r = (x.numpy().astype(float) for x in L.qr(T.from_numpy(a), mode=mode))
            assert np.abs(q @ (r / size) - one).max() < 20 * eps * np.linalg.norm(one)
            assert np.abs(q.T @ q - np.eye(q.shape[1])).max() < 50 * eps
            assert not np.tril(r, -1).any() and r.shape[0] == q.shape[1]
            assert np.allclose(r / size, np.linalg.qr(one, mode=mode)[1], atol=200 * eps * np.linalg.norm(one))
    h, tau = T.geqrf(T.from_numpy(one.astype(dtype)))
    k = min(shape)
    few = L.householder_product(h[:, :k], tau[: k // 2 + 1]).numpy()
    q = L.qr(T.from_numpy(one.astype(dtype))).Q.numpy()
    assert np.abs(few[:, : k // 2] - q[:, : k // 2]).max() < 50 * eps
    assert np.abs(few.T @ few - np.eye(k)).max() < 50 * eps


def test_reflections_of_nothing_and_of_nan():
    q, r = L.qr(T.zeros(50, 40))
    assert T.equal(q, T.eye(50, 40)) and not r.any()
    a = drawn((70, 70), T.float64)
    a[3, 5] = T.nan
    assert not L.qr(a).R[:5, :5].isnan().any() and L.qr(a).R[5, 5].isnan()


@pytest.mark.parametrize("dtype", [T.float32, T.float64, T.complex64, T.complex128])
@pytest.mark.parametrize("shape", [(8, 8), (33, 16), (40, 40), (130, 70), (9, 8, 8)])
def test_reflections_of_what_is_left_of_equal_columns(shape, dtype):
    """Behind the first column rounding is left, then of rounding rounding, down to numbers of few digits."""
    a = T.ones(shape, dtype=dtype)
    q, r = L.qr(a)
    one = T.eye(q.shape[-1], dtype=dtype)
    assert (q @ r - a).abs().max() < 10 * T.finfo(dtype).eps * math.sqrt(a.numel())
    assert (q.mH @ q - one).abs().max() < 100 * T.finfo(dtype).eps
    q = L.householder_product(*T.geqrf(a))
    assert (q.mH @ q - one).abs().max() < 100 * T.finfo(dtype).eps


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_eigenvalues_whose_squares_leave_the_range(size):
    for n in (2, 3, 6):
        a = drawn((4, n, n), T.float32) * size
        values, vectors = L.eig(a)
        far = (a.to(T.complex64) @ vectors - vectors * values.unsqueeze(-2)) / size
        assert far.abs().max() < 1e-4


def test_results_lie_as_those_of_pytorch():
    a = positive((3, 4, 4))
    for t in (
        L.cholesky(a),
        L.lu_factor(a)[0],
        L.solve(a, a),
        L.inv(a),
        *L.qr(a),
        L.eigh(a)[1],
        L.svd(a)[0],
        L.svd(a)[2],
        L.eig(a)[1],
    ):
        assert t.stride() == (16, 1, 4)
    assert L.solve(a, drawn((4, 2))).stride() == (8, 1, 4)
    assert L.lu_factor_ex(a).pivots.dtype == L.inv_ex(a).info.dtype == T.int32


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_ldl(dtype, n):
    a = drawn((2, n, n)).to(getattr(T, dtype))
    if dtype == "complex128":
        a = a + 1j * drawn((2, n, n))
    for hermitian in (False, True):
        h = a + (a.mH if hermitian else a.mT)
        h.diagonal(dim1=-2, dim2=-1).mul_(0 if n == 2 else 0.1)  # so that blocks of two are chosen
        ld, pivots = L.ldl_factor(
            h.tril() + T.full((n, n), 9.0).triu(1), hermitian=hermitian
        )  # the upper triangle is not read
        assert pivots.dtype is T.int32 and pivots.shape == (2, n) and not bool(ld.triu(1).any())
        b = drawn((2, n, 3)).to(h.dtype)
        near = 1e-3 if dtype == "float32" else 1e-9
        assert T.allclose(h @ L.ldl_solve(ld, pivots, b, hermitian=hermitian), b, atol=near)
        alone = L.ldl_solve(ld[1], pivots[1].long(), b, hermitian=hermitian)  # one matrix for both right sides
        assert T.allclose(h[1] @ alone, b, atol=near)
    assert n < 3 or bool((pivots < 0).any())


def test_ldl_as_lapack_has_it():
    a = T.tensor([[1.0, 2, 3], [2, -4, 1], [3, 1, 0]], dtype=T.float64)
    ld, pivots, info = L.ldl_factor_ex(a)
    want = T.tensor([[1.0, 0, 0], [3, 0, 0], [1 / 3, 5 / 9, -47 / 9]], dtype=T.float64)
    assert T.allclose(ld, want) and pivots.tolist() == [-3, -3, 3] and info.item() == 0
    zero = T.zeros(3, 3)
    assert L.ldl_factor_ex(zero).info.item() == 1 and L.ldl_factor_ex(zero).pivots.tolist() == [1, 2, 3]
    for wrong in (lambda: L.ldl_factor(zero), lambda: L.ldl_factor_ex(zero, check_errors=True)):
        with pytest.raises(RuntimeError, match="block 1 of D"):
            wrong()
    for wrong in ([4, 2, 3], [0, 2, 3], [-3, 2, 3], [1, 1, 3], [1, 2, -3]):
        with pytest.raises(IndexError, match="is none that ldl_factor gives"):
            L.ldl_solve(ld, T.tensor(wrong, dtype=T.int32), a)
    with pytest.raises(RuntimeError, match="square"):
        L.ldl_factor(T.ones(2, 3))


def test_names_and_results():
    a = positive((2, 3, 3))
    assert type(L.eigh(a)).__name__ == "linalg_eigh"
    for result, names in (
        (L.eigh(a), "eigenvalues eigenvectors"),
        (L.svd(a), "U S Vh"),
        (T.svd(a), "U S V"),
        (L.solve_ex(a, a), "result info"),
        (L.lu(a), "P L U"),
        (L.lstsq(a, a), "solution residuals rank singular_values"),
        (T.triangular_solve(a, a), "solution cloned_coefficient"),
    ):
        assert [getattr(result, name) is part for name, part in zip(names.split(), result, strict=True)] == [
            True
        ] * len(result)
    near(T.inverse(a), L.inv(a))
    near(a.det(), L.det(a))
    near(a.logdet(), a.slogdet().logabsdet)
    near(T.triangular_solve(a, a.triu()).solution, L.solve_triangular(a.triu(), a, upper=True))
    near(T.lu_solve(a, *L.lu_factor(a)), T.eye(3, dtype=T.float64).expand(2, 3, 3))
    p, low, up = T.lu_unpack(*T.lu(a))
    near(p @ low @ up, a)
    near(T.lu_unpack(*a.lu(get_infos=True)[:2]).U, up)
    near(L.matrix_power(a, -2), L.inv(a @ a))
    near(T.matrix_exp(T.zeros(2, 3, 3)), T.eye(3).expand(2, 3, 3))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda z: L.inv(z), L.LinAlgError, r"^inv: \(batch element 1\): the matrix is singular: element 2 of"),
        (lambda z: L.inv(z[1]), L.LinAlgError, r"^inv: the matrix is singular: element 2 of"),
        (lambda z: L.solve(z, z), L.LinAlgError, r"^solve: \(batch element 1\): the matrix is singular"),
        (lambda z: L.cholesky(z), L.LinAlgError, r"^cholesky: \(batch element 1\): .* minor of order 2 "),
        (lambda z: L.cholesky_ex(z, check_errors=True), L.LinAlgError, r"^cholesky_ex: \(batch element 1\): "),
        (lambda z: L.lu_factor(z), RuntimeError, r"^lu_factor: \(batch element 1\): element 2 of U"),
        (lambda z: L.svd(z / 0), L.LinAlgError, r"^svd: \(batch element 0\): the matrix holds NaN"),
        (lambda z: L.eig(z / 0), RuntimeError, r"^eig: \(batch element 0\): the matrix holds NaN"),
        (lambda z: L.inv(z[0, 0]), RuntimeError, r"^inv: square matrices are wanted, the shape is \[2\]"),
        (lambda z: L.inv(z.half()), NotImplementedError, r"^inv: float32, float64"),
        (lambda z: L.inv(z.long()), NotImplementedError, r"^inv: float32, float64"),
        (lambda z: L.solve(z, z[0, :1]), RuntimeError, r"^solve: sizes differ: A is .* so 2 and 1 differ"),
        (lambda z: L.qr(z, "thin"), RuntimeError, r"^qr: the mode must be reduced, complete or r: 'thin'"),
        (lambda z: L.eigh(z, "X"), RuntimeError, r"^eigh: UPLO must be L or U: 'X'"),
        (lambda z: L.lu_factor(z, pivot=False), RuntimeError, r"^lu_factor: a factorisation without pivots"),
        (lambda z: L.cond(z, 3), ValueError, r"^cond: p 3 is not known"),
        (lambda z: L.lstsq(z, z, driver="best"), RuntimeError, r"^lstsq: driver must be gels"),
        (lambda z: L.tensorinv(z, 3), RuntimeError, r"^tensorinv: the first 3 dimensions"),
    ],
)  # fmt: skip
def test_errors(call, kind, words, device):
    z = T.tensor([[[1.0, 0], [0, 1]], [[1, 2], [2, 4]], [[2, 0], [0, 1]]], device=device)
    with pytest.raises(kind, match=words):
        call(z)
    assert issubclass(L.LinAlgError, RuntimeError)


@pytest.mark.parametrize("device", DEVICES)
def test_failures_are_told_by_info(device):
    z = T.tensor([[[2.0, 0], [0, 1]], [[1, 2], [2, 4]]], device=device)
    for result in (L.inv_ex(z), L.solve_ex(z, z), L.cholesky_ex(z)):
        assert result.info.tolist() == [0, 2]
        assert result[0][0].isfinite().all() and result[0][1].isnan().all()
    assert L.lu_factor_ex(z).info.tolist() == [0, 2]
    assert L.det(z).tolist() == [2, 0]
    assert L.slogdet(z).logabsdet.tolist()[1] == -float("inf") and L.slogdet(z).sign.tolist() == [1, 0]
    assert T.logdet(-z[:1, :1, :1]).isnan().all()
    assert L.matrix_rank(z).tolist() == [2, 1] and L.matrix_rank(z, tol=1.5).tolist() == [1, 1]
    assert L.matrix_rank(z, atol=T.tensor([1.5, 9.0], device=device), hermitian=True).tolist() == [1, 0]
    assert L.cond(z, 1).tolist() == [2, float("inf")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [3, 40])
def test_nan_ends(n, device):
    bad = drawn((2, n, n), device=device)
    bad[1, n - 1, 0] = float("nan")
    values, vectors = L.eigh(bad)
    assert values[0].isfinite().all() and values[1].isnan().all() and vectors[1].isnan().all()
    assert L.eigvalsh(bad, UPLO="U").isfinite().all()  # the other triangle is not read
    assert L.inv(bad)[1].isnan().any() and L.det(bad)[1].isnan() and L.qr(bad).R[1].isnan().any()
    assert L.cholesky_ex(bad).info[1] > 0
    assert T.matrix_exp(bad[1]).isnan().any()


def test_numpy_says_the_same():
    a, b = drawn((5, 3)), drawn((5, 2), seed=7)
    x, y = a.numpy(), b.numpy()
    expected = np.linalg.lstsq(x, y, rcond=None)
    for driver in ("gels", "gelsy", "gelsd"):
        near(L.lstsq(a, b, driver=driver).solution, T.tensor(expected[0]))
    near(L.lstsq(a, b, driver="gelsd").residuals, T.tensor(expected[1]))
    near(
        L.lstsq(a.mT, drawn((3,)), driver="gels").solution,
        T.tensor(np.linalg.lstsq(x.T, drawn((3,)).numpy(), rcond=None)[0]),
    )
    for order in (2, -2, "nuc", "fro", 1, float("inf")):
        near(L.norm(a, order), T.tensor(np.linalg.norm(x, order)))
        near(L.matrix_norm(a.expand(2, 5, 3), order, keepdim=True), T.tensor(np.linalg.norm(x, order)).expand(2, 1, 1))
    for order in (None, 2, -2, "nuc", "fro", 1, -1, float("inf")):
        near(L.cond(a[:3], order), T.tensor(np.linalg.cond(x[:3], order)))
    stiff = T.tensor([[1.0, 1e8], [0, -30]], dtype=T.float64)
    near(T.matrix_exp(stiff), T.tensor([[np.e, 1e8 * (np.e - np.exp(-30.0)) / 31], [0, np.exp(-30.0)]]), 10)
    hilbert = 1 / (T.arange(8, dtype=T.float64).unsqueeze(1) + T.arange(8) + 1)
    np.testing.assert_allclose(L.solve(hilbert, hilbert.sum(1)).numpy(), np.ones(8), atol=1e-5)
    np.testing.assert_allclose(L.svdvals(hilbert).numpy(), np.linalg.svd(hilbert.numpy(), compute_uv=False), atol=1e-15)


def through(make, f):
    """A function of a matrix that anything may change, of what `make` makes of it."""
    return lambda x: f(make(x))


def made_positive(x):
    return x @ x.mH + T.eye(x.shape[-1], dtype=x.dtype)


def without_phase(vectors):
    """Of eigenvectors or the like, which are known up to a factor of size 1."""
    return vectors.unsqueeze(-2) * vectors.conj().unsqueeze(-3)


def of_svd(x, **how):
    u, s, vh = L.svd(x, full_matrices=False)
    return without_phase(u), s, without_phase(vh.mH), u @ vh


DERIVATIVES = {
    "cholesky": ((3, 3), through(made_positive, L.cholesky)),
    "cholesky upper": ((2, 2, 2), through(made_positive, lambda x: L.cholesky(x, upper=True))),
    "cholesky_solve": ((3, 3), lambda x: T.cholesky_solve(x[:, :1], x.tril(-1) + 2 * T.eye(3, dtype=x.dtype))),
    "cholesky_inverse": ((2, 2), lambda x: T.cholesky_inverse(L.cholesky(made_positive(x)))),
    "eigh": ((3, 3), through(hermitian, lambda x: (L.eigh(x)[0], without_phase(L.eigh(x)[1])))),
    "eigvalsh": ((2, 3, 3), through(hermitian, L.eigvalsh)),
    "svd": ((3, 3), of_svd),
    "svd tall": ((3, 2), of_svd),
    "svd wide": ((2, 3), of_svd),
    "svdvals": ((2, 2, 3), L.svdvals),
    "eig": ((3, 3), lambda x: (L.eig(x)[0], without_phase(L.eig(x)[1]))),
    "eigvals": ((3, 3), L.eigvals),
    "lu": ((3, 3), lambda x: L.lu(x)[1:]),
    "lu tall": ((3, 2), lambda x: L.lu_factor(x)[0]),
    "lu wide": ((2, 3), lambda x: L.lu_factor(x)[0]),
    "lu_solve": ((3, 3), lambda x: L.lu_solve(*L.lu_factor(x), x[:, :1], adjoint=True)),
    "solve": ((2, 2, 2), lambda x: L.solve(x, x[..., 0])),
    "solve right": ((2, 2), lambda x: L.solve(x, x[:1], left=False)),
    "triangle": ((3, 3), lambda x: L.solve_triangular(x, x[:1], upper=True, left=False, unitriangular=True)),
    "inv": ((2, 3, 3), L.inv),
    "det": ((2, 3, 3), L.det),
    "slogdet": ((3, 3), L.slogdet),
    "logdet": ((3, 3), through(made_positive, T.logdet)),
    "qr": ((3, 3), L.qr),
    "qr tall": ((4, 2), L.qr),
    "qr wide": ((2, 4), L.qr),
    "householder_product": ((3, 2), lambda x: L.householder_product(x, x[2] * 0.5)),
    "pinv": ((3, 2), L.pinv),
    "pinv hermitian": ((2, 2), through(hermitian, lambda x: L.pinv(x, hermitian=True))),
    "lstsq": ((4, 2), lambda x: L.lstsq(x, x[:, :1])[0]),
    "matrix_exp": ((2, 2), L.matrix_exp),
    "cond": ((2, 2), lambda x: (L.cond(x), L.cond(x, "fro"))),
    "norms": ((3, 2), lambda x: (L.norm(x, 2), L.norm(x, "nuc"))),
}


@pytest.mark.parametrize("dtype", EXACT, ids=str)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, dtype):
    shape, f = DERIVATIVES[name]
    x = drawn(shape, dtype, 11).requires_grad_()
    assert T.autograd.gradcheck(f, (x,))
    assert T.autograd.gradgradcheck(f, (x,))


def test_derivatives_of_singular_matrices():
    """The determinant is a polynomial: it has derivatives everywhere."""
    x = T.tensor([[1.0, 2, 3], [2, 4, 6.0], [1, 0, 5]], dtype=T.float64, requires_grad=True)
    assert L.det(x.detach()).abs() < 1e-12
    assert T.autograd.gradcheck(L.det, (x,))
    zero = T.zeros(2, 2, dtype=T.float64, requires_grad=True)
    assert T.autograd.gradcheck(L.det, (zero,))
    same_values = T.eye(3, dtype=T.float64, requires_grad=True)
    L.eigvalsh(same_values).sum().backward()
    near(same_values.grad, T.eye(3, dtype=T.float64))
    same_values.grad = None
    L.svdvals(same_values).sum().backward()
    near(same_values.grad, T.eye(3, dtype=T.float64))


def test_what_has_no_derivative_says_so():
    x = drawn((4, 2)).requires_grad_()
    with pytest.raises(RuntimeError, match="qr: the derivative needs Q"):
        L.qr(x, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="qr: with 4 rows and 2 columns"):
        L.qr(x, "complete").Q.sum().backward()


def test_out_and_meta():
    a = positive((2, 3, 3))
    values, vectors = T.empty(0, dtype=T.float64), T.empty(2, 3, 3, dtype=T.float64)
    L.eigh(a, out=(values, vectors))
    near(values, L.eigh(a)[0])
    near(vectors, L.eigh(a)[1])
    rows = T.empty(2, 3, 3, dtype=T.float64)  # by rows, not by columns
    near(L.inv(a, out=rows), L.inv(a))
    assert rows.stride() == (9, 3, 1)
    m = a.to("meta")
    assert L.svd(m, full_matrices=False)[0].shape == (2, 3, 3) and L.pinv(m).shape == (2, 3, 3)
    assert L.solve(m, m[..., 0]).shape == (2, 3) and L.cholesky(m).stride() == (9, 1, 3)


def test_many_small_matrices_are_cut_over_the_threads():
    a = drawn((3000, 8, 8)) + 8 * T.eye(8, dtype=T.float64)
    near(a @ L.inv(a), T.eye(8, dtype=T.float64).expand(a.shape))
    values = L.eigvalsh(hermitian(a))
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(hermitian(a).numpy()), atol=1e-10)


@pytest.mark.parametrize("dtype", EXACT, ids=str)
@pytest.mark.parametrize("shape", [(30, 20), (2, 12, 25)], ids=str)
def test_few_singular_values_of_a_matrix_of_low_rank(shape, dtype):
    T.manual_seed(0)
    a = drawn((*shape[:-1], 3), dtype) @ drawn((*shape[:-2], 3, shape[-1]), dtype, 1)
    u, s, v = T.svd_lowrank(a, q=5)
    near(u * s.unsqueeze(-2) @ v.mH, a, 10)
    near(s[..., :3], L.svdvals(a)[..., :3], 10)
    u, s, v = T.svd_lowrank(a, q=4, M=a / 2)
    near(u * s.unsqueeze(-2) @ v.mH, a / 2, 10)
    u, s, v = T.pca_lowrank(a)
    near(u * s.unsqueeze(-2) @ v.mH, a - a.mean(-2, keepdim=True), 10)
    for wrong in (lambda: T.svd_lowrank(a, q=99), lambda: T.svd_lowrank(a, niter=-1)):
        with pytest.raises(ValueError, match="svd_lowrank: (q must be from 0|niter must not be negative)"):
            wrong()


def test_least_squares_cut_singular_values_as_lapack_does():
    b = T.ones(2, 1, dtype=T.float64)
    for diagonal, rcond, driver, solution, rank in (
        ([3.0, 2.0], 1.0, "gelsd", [1 / 3, 0.5], 2),  # gelsd takes no share from 1 on
        ([3.0, 2.0], 1.0, "gelss", [0, 0], 0),
        ([3.0, 2.0], 1.0, "gelsy", [1 / 3, 0], 1),  # gelsy keeps what is just as large
        ([2.0, 2.0], 1.0, None, [0.5, 0.5], 2),
        ([3.0, 2.0], 2 / 3, "gelsy", [1 / 3, 0.5], 2),
        ([3.0, 2.0], 0.5, None, [1 / 3, 0.5], 2),
        ([0.0, 0.0], 0.5, None, [0, 0], 0),
    ):
        a = T.diag(T.tensor(diagonal, dtype=T.float64))
        got = L.lstsq(a, b, rcond=rcond, driver=driver)
        assert got.rank.item() == rank
        np.testing.assert_allclose(got.solution.flatten().numpy(), solution, atol=1e-12)


def test_singular_matrices_of_a_stack():
    a = T.eye(3, dtype=T.float64).repeat(3, 1, 1)
    a[1, -1, -1] = 0
    for p in (1, -1, float("inf"), "fro", "nuc"):
        got = L.cond(a, p)
        assert got[1] == float("inf") and got[0].isfinite() and got[2] == got[0]
    low = T.tensor([[1.0, 0], [3, 0]], dtype=T.float64)
    with pytest.raises(L.LinAlgError, match="diagonal element 2 is zero"):
        T.cholesky_inverse(low)
    with pytest.raises(L.LinAlgError, match=r"batch element 1\): The diagonal element 1"):
        T.cholesky_inverse(T.stack([T.eye(2), T.zeros(2, 2)]))
    assert T.cholesky_inverse(T.zeros(0, 0)).shape == (0, 0)


def test_old_names_say_what_to_use():
    code = """
import adjoin as t
a = t.eye(3)
for _ in range(2):
    t.triangular_solve(a, a), t.lu_solve(a, *t.linalg.lu_factor(a)), t.chain_matmul(a, a), t.cross(a, a), t.cross(a, a, 1)
    t.linalg.solve_triangular(a, a, upper=True), t.linalg.multi_dot([a, a]), t.linalg.cross(a, a)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    told = [line.partition("deprecated: use ") for line in run.stderr.splitlines()]
    assert [(head.split()[-1], tail.split("(")[0]) for head, _, tail in told] == [
        ("triangular_solve:", "linalg.solve_triangular"),
        ("lu_solve:", "linalg.lu_solve"),
        ("chain_matmul:", "linalg.multi_dot"),
        ("cross:", "dim=, or linalg.cross"),
    ]  # once each
    with pytest.warns(UserWarning, match="linalg.lu_factor"):
        T.lu(T.eye(3))


def test_chains_of_one_matrix_and_old_norms():
    a = drawn((3, 3))
    assert T.chain_matmul(a).equal(a)
    near(T.chain_matmul(a, a, a), a @ a @ a)
    for wrong in ((), (a[0], a), (a, drawn((1, 3, 3)))):
        with pytest.raises(RuntimeError, match="matrices"):
            T.chain_matmul(*wrong)
    x = drawn((2, 3, 4))
    with pytest.warns(UserWarning, match="matrix_norm"):
        near(T.nuclear_norm(x, (0, 2), keepdim=True), L.matrix_norm(x, "nuc", (0, 2), keepdim=True))
    out = T.empty(0, dtype=T.float64)
    with pytest.warns(UserWarning):
        assert T.nuclear_norm(a, out=out) is out and T.frobenius_norm(a, (0, 1)).allclose(L.norm(a))
    near(out, L.matrix_norm(a, "nuc"))


def test_einsum_with_lists_of_subscripts():
    a, b = drawn((2, 3, 4)), drawn((2, 4, 5))
    near(T.einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3]), a @ b)
    near(T.einsum(a, [..., 1, 2], [..., 2, 1]), a.mT)
    near(T.einsum(a, [30, 1, 5], [1, 30]), a.sum(2).T)
    near(T.einsum(a[0], [0, 1], b[0], [1, 2]), T.einsum("ij,jk", a[0], b[0]))
    x = a[0].clone().requires_grad_()
    T.einsum(x, [0, 1], x, [0, 1], []).backward()
    near(x.grad, 2 * x.detach())
    with pytest.raises(ValueError, match="from 0 to 51"):
        T.einsum(a[0], [0, 52])
    with pytest.raises(TypeError):
        T.einsum(a, "ij")


def test_libraries_may_be_preferred():
    prefer = T.backends.cuda.preferred_linalg_library
    before = prefer()
    assert prefer("cusolver").name == "Cusolver" and prefer() is prefer("cusolver") and prefer(before) is before
    for wrong in ("magma", "nonsense", 3):
        with pytest.raises(RuntimeError, match="preferred_linalg_library"):
            prefer(wrong)
    assert T.backends.cuda.preferred_blas_library("default").name == "Default"


def test_matrices_of_nothing_have_a_largest_singular_value_and_no_smallest():
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 3)):
        x = T.zeros(shape)
        assert L.matrix_norm(x, 2).tolist() in (0.0, [0.0, 0.0])
        for norm in (lambda x: L.matrix_norm(x, -2), lambda x: L.norm(x, -2, (-2, -1))):
            with pytest.raises(IndexError, match="at least one element"):
                norm(x)
