"""tests/plugins/paper_solvers_test.py: linear algebra and Fourier transforms on the plugin files cuda and hip, by simulated
libraries (paper_card/solver.cpp, fourier.cpp): values, derivatives, errors, streams, graphs, memory."""

import os
import random
import shutil
import subprocess

import pytest
from paper import PLUGINDIR, VENDORS, either, needs_cuda, run, surroundings

from abi_tools import adjoin, clean_environment

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
FACTORINGS = [
    "_::eig_stack", "_::eigh_stack", "_::pivot_order", "_::solve_stack", "_::solve_triangular_stack", "_::svd_stack", "geqrf", "linalg::cholesky_ex",
    "linalg::det", "linalg::householder_product", "linalg::inv_ex", "linalg::lu_factor_ex", "linalg::qr", "linalg::slogdet",
]  # fmt: skip
TRANSFORMS = ["_::fft_c2c", "_::fft_r2c", "_::fft_c2r"]
MORE = [
    "linalg::lstsq", "linalg::pinv", "linalg::matrix_rank", "linalg::solve", "linalg::lu", "lu_unpack", "cholesky_solve", "linalg::eigvalsh",
    "linalg::svdvals", "linalg::cond", "linalg::tensorsolve", "fft::fftn", "fft::rfft2", "fft::irfftn", "fft::hfft", "stft", "istft",
]  # fmt: skip


def test_rows_conform(card):
    """Beside the reference backend: values, dtypes, layouts, derivatives; what the seed chooses, each vendor its own."""
    if not VENDORS:
        pytest.skip("NOT TESTED: neither plugin is built")
    jobs = {}
    for vendor in VENDORS:
        rng = random.Random(f"{SEED} {vendor}")
        chosen = (
            FACTORINGS + TRANSFORMS + MORE
            if FULL
            else [*rng.sample(FACTORINGS, 2), *rng.sample(TRANSFORMS, 1), *rng.sample(MORE, 1)]
        )
        ops = [word for op in chosen for word in ("--op", op)]
        jobs[vendor] = subprocess.Popen(
            [shutil.which("adjoin"), "conform", PLUGINDIR / f"libaj_{vendor}.so", "--mode", "all", "--seed", str(SEED), *ops],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment(**surroundings(vendor, card)),
        )  # fmt: skip
    for vendor, job in jobs.items():
        out = job.communicate(timeout=900)[0]
        assert job.returncode == 0, f"{vendor}, seed {SEED}:\n{out[-4000:]}"
        assert "no fault found in what was checked" in out.splitlines()[-1]


MATRICES = (
    f"""
import random
some = lambda values, n: list(values) if {FULL} else random.Random({SEED}).sample(list(values), n)
"""
    + """
L = adjoin.linalg
close = lambda x, y, bound=None: adjoin.testing.assert_close(x.cpu(), y.cpu(), rtol=bound, atol=bound)
def matrices(*shape, dtype=adjoin.float64, seed=1):
    adjoin.manual_seed(seed)
    return adjoin.randn(*shape, dtype=dtype)
def positive(*shape, **how):
    a = matrices(*shape, **how)
    return a @ a.mH + shape[-1] * adjoin.eye(shape[-1], dtype=a.dtype)
def ran(f, what="solutions"):
    before = count(what)
    f()
    return count(what) - before
"""
)


@either
def test_what_a_library_factors_is_what_the_processor_does(name, card):
    program = (
        MATRICES
        + """
adjoin.manual_seed(2)
for dtype, bound in some(((adjoin.float32, 2e-4), (adjoin.float64, 1e-10), (adjoin.complex64, 2e-4), (adjoin.complex128, 1e-10)), 1):
    singular = adjoin.tensor([[1, 2], [2, 4]], dtype=dtype)  # its rows are exchanged, so that its sign is a negative zero
    assert adjoin.logdet(singular.to(gpu)).item() == adjoin.logdet(singular).item() == -float("inf"), dtype
    for batch in ((), (3,), *some(((2, 3), (12,), (0,)), 1)):
        for n in (5, *some((0, 1, 40), 1)):
            a, wide, tall = positive(*batch, n, n, dtype=dtype), matrices(*batch, n, n + 2, dtype=dtype), matrices(*batch, n + 3, n, dtype=dtype)
            b = matrices(*batch, n, 2, dtype=dtype, seed=3)
            there = a.to(gpu)
            close(L.cholesky(there), L.cholesky(a), bound)
            close(L.cholesky(there, upper=True), L.cholesky(a, upper=True), bound)
            close(L.solve(there, b.to(gpu)), L.solve(a, b), bound)
            close(L.inv(there), L.inv(a), bound)
            close(L.det(there / (n + 1)), L.det(a / (n + 1)), 10 * bound)
            for x, y in zip(L.slogdet(there), L.slogdet(a)):
                close(x, y, 10 * bound)
            for left in (True, False):
                right = b if left else b.mT.contiguous()
                for upper in (True, False):
                    for unit in (True, False):
                        how = dict(upper=upper, left=left, unitriangular=unit)
                        t = a / (n + 1) + adjoin.eye(n, dtype=dtype)
                        close(L.solve_triangular(t.to(gpu), right.to(gpu), **how), L.solve_triangular(t, right, **how), 10 * bound)
                        close(L.solve_triangular(t.to(gpu).mT, right.to(gpu), **how), L.solve_triangular(t.mT, right, **how), 10 * bound)
            for x in (a, wide, tall):
                for got, wanted in zip(L.lu_factor_ex(x.to(gpu)), L.lu_factor_ex(x)):
                    close(got, wanted, bound)
                for got, wanted in zip(L.lu(x.to(gpu)), L.lu(x)):
                    close(got, wanted, bound)
                for mode in ("reduced", "complete", "r"):
                    for got, wanted in zip(L.qr(x.to(gpu), mode), L.qr(x, mode)):
                        close(got, wanted, bound)
                for got, wanted in zip(adjoin.geqrf(x.to(gpu)), adjoin.geqrf(x)):
                    close(got, wanted, bound)
                for full in (False, True):
                    u, s, vh = L.svd(x.to(gpu), full_matrices=full)
                    k = s.shape[-1]
                    assert [t.shape for t in (u, s, vh)] == [t.shape for t in L.svd(x, full_matrices=full)]
                    close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], x, 20 * bound)
                    close(u.mH @ u, adjoin.eye(u.shape[-1], dtype=dtype).expand(*batch, -1, -1), 20 * bound)
                    close(vh @ vh.mH, adjoin.eye(vh.shape[-2], dtype=dtype).expand(*batch, -1, -1), 20 * bound)
                close(L.svdvals(x.to(gpu)), L.svdvals(x), 20 * bound)
            for side in "LU":
                h = a.tril() if side == "L" else a.triu()  # the other triangle is not read
                values, vectors = L.eigh(h.to(gpu), side)
                close(values, L.eigvalsh(h, side), 50 * n * bound + bound)
                close((vectors * values.unsqueeze(-2)) @ vectors.mH, a, 50 * n * bound + bound)
                close(L.eigvalsh(h.to(gpu), side), values, 50 * n * bound + bound)
print(count("solutions") > 100)
"""
    )
    assert run(program, name, card) == "True\n"


@either
def test_stacks_of_small_matrices_are_served_at_once(name, card):
    program = (
        MATRICES
        + """
a, b, one = positive(100, 6, 6).to(gpu), matrices(100, 6, 2).to(gpu), positive(700, 700)[:600, :600].to(gpu)
print(ran(lambda: L.cholesky_ex(a)), ran(lambda: L.lu_factor_ex(a)), ran(lambda: L.solve_ex(a, b)), ran(lambda: L.inv_ex(a)))
print(ran(lambda: L.eigh(a)), ran(lambda: L.svd(a)), ran(lambda: L.svdvals(a[:, :4])), ran(lambda: L.qr(a[:5])))
print(ran(lambda: L.cholesky_ex(adjoin.stack([one, one]))), ran(lambda: L.solve_triangular(one.expand(3, -1, -1), one[:, :1].expand(3, -1, -1), upper=False)))
"""
    )
    assert run(program, name, card) == "1 1 3 3\n1 1 1 10\n2 3\n"


@either
def test_derivatives(name, card):
    program = (
        MATRICES
        + """
def input_of(t):
    return t.to(gpu).requires_grad_()
for dtype in some((adjoin.float64, adjoin.complex128), 1):
    a, b = input_of(positive(2, 2, 2, dtype=dtype)), input_of(matrices(2, 2, 1, dtype=dtype))
    tall = input_of(matrices(3, 2, dtype=dtype))
    hermitian = lambda f: lambda x: f((x + x.mH) / 2)
    assert adjoin.autograd.gradcheck(hermitian(L.cholesky), [a])
    assert adjoin.autograd.gradgradcheck(L.solve, [a, b])
    assert adjoin.autograd.gradcheck(L.inv, [a]) and adjoin.autograd.gradcheck(L.det, [a])
    assert adjoin.autograd.gradcheck(lambda x: L.slogdet(x)[1], [a])
    assert adjoin.autograd.gradcheck(L.qr, [tall])
    assert adjoin.autograd.gradcheck(lambda x: L.lu_factor(x)[0], [a])
    assert adjoin.autograd.gradcheck(L.svdvals, [tall])
    assert adjoin.autograd.gradcheck(hermitian(L.eigvalsh), [a])
    assert adjoin.autograd.gradcheck(lambda x: L.solve_triangular(x.tril(), b, upper=False), [a])
print("well")
"""
    )
    assert run(program, name, card) == "well\n"


@either
def test_errors_are_told_at_the_call_or_as_info(name, card):
    """As on the processor; who takes info does not wait for the card."""
    program = (
        MATRICES
        + """
good, zero = positive(3, 3), adjoin.zeros(3, 3, dtype=adjoin.float64)
nan = good.clone()
nan[1, 0] = float("nan")
def error_of(f, *inputs):
    try:
        f(*inputs)
    except L.LinAlgError as e:
        return f"LinAlgError: {e}"
    except (RuntimeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"
for bad in (zero, -good, adjoin.stack([good, zero, good]), adjoin.stack([good, -good])):
    for f in (L.cholesky, L.inv, lambda x: L.solve(x, x), L.lu_factor, L.svd, L.eigh):
        here, there = error_of(f, bad), error_of(f, bad.to(gpu))
        assert here == there, (here, there)
        for got, wanted in zip(L.cholesky_ex(bad.to(gpu)), L.cholesky_ex(bad)):
            adjoin.testing.assert_close(got.cpu(), wanted, equal_nan=True)
        for got, wanted in zip(L.inv_ex(bad.to(gpu)), L.inv_ex(bad)):
            adjoin.testing.assert_close(got.cpu(), wanted, equal_nan=True)
for bad in (nan, adjoin.stack([good, nan])):
    assert error_of(L.svd, bad.to(gpu)) == error_of(L.svd, bad), error_of(L.svd, bad.to(gpu))
    assert L.eigh(bad.to(gpu))[0].isnan().any() and not L.eigh(bad.to(gpu), "U")[0].isnan().any()
print(error_of(L.solve, zero.to(gpu), zero.to(gpu)))
print(error_of(L.cholesky, adjoin.stack([good, zero]).to(gpu)))
x, stack = good.to(gpu), adjoin.stack([good] * 20).to(gpu)
gpus.synchronize()
print(ran(lambda: (L.cholesky_ex(x), L.solve_ex(x, x), L.inv_ex(stack), L.det(x), L.qr(stack), L.lu_factor_ex(stack)), "waits"))
"""
    )
    singular = "the matrix is singular: element 1 of U's diagonal is zero, so there is no one solution; lstsq finds one"
    minor = (
        "the matrix is not positive-definite: its leading minor of order 1 is not; a shift of the diagonal makes it so"
    )
    solve, cholesky, waits = run(program, name, card).splitlines()
    assert singular in solve and "LinAlgError" in solve
    assert f"(batch element 1): {minor}" in cholesky
    assert waits == "0"


@either
def test_graphs_factor_what_they_find(name, card):
    program = (
        MATRICES
        + """
a, b, stack = positive(5, 5).to(gpu), matrices(5, 2).to(gpu), positive(4, 3, 3).to(gpu)
f = lambda: (*L.cholesky_ex(a), *L.solve_ex(a, b), L.det(stack), *L.qr(stack), *L.eigh(stack)[:1], adjoin.fft.fft(stack), adjoin.fft.irfft(stack[0]))
f()  # what a library makes for itself
graph = Graph()
graph.capture_begin()
results = f()
graph.capture_end()
graph2, mistake = Graph(), None
graph2.capture_begin()
mistake = told(L.cholesky, a)
graph2.capture_end()
print(mistake)
for i in range(2, 5):
    a.copy_(positive(5, 5, seed=i)), stack.copy_(positive(4, 3, 3, seed=i))
    results[3].fill_(9)
    graph.replay()
    for got, wanted in zip(results, f()):
        assert adjoin.equal(got.cpu(), wanted.cpu())
for i in range(100):  # other plans take the places of those that the graph runs
    adjoin.fft.fft(stack[0, 0, :1].expand(i + 2).contiguous())
graph.replay()
print(adjoin.equal(results[-2].cpu(), adjoin.fft.fft(stack).cpu()))
a.zero_()
graph.replay()
print(results[1].item(), results[3].item(), results[0].isnan().all().item())
"""
    )
    mistake, same, codes = run(program, name, card).splitlines()
    assert "a captured call cannot wait for it; use cholesky_ex, which gives info" in mistake
    assert same == "True" and codes == "1 1 True"


@either
def test_streams_and_memory(name, card):
    """What a library works with is the core's, for the time of a call, on the call's own stream."""
    program = (
        MATRICES
        + """
a = positive(40, 40)
there = a.to(gpu)
gpus.synchronize()
gpus.reset_peak_memory_stats()
before = gpus.memory_allocated()
order("hang=1")
side = gpus.Stream()
with gpus.stream(side):
    there + 0  # what is behind it is queued until hang=0
    l, q, z = L.cholesky_ex(there)[0], L.qr(there)[0], adjoin.fft.fft2(there)
print(side.query(), gpus.max_memory_allocated() - before > 40 * 40 * 8 * 3)
order("hang=0")
side.synchronize()
close(l, L.cholesky(a)), close(q, L.qr(a)[0]), close(z, adjoin.fft.fft2(a))
second = a.to(gpu + ":1")
close(L.inv(second), L.inv(a)), close(adjoin.fft.rfft(second), adjoin.fft.rfft(a))
order("full=1")
gpus.empty_cache()
print(told(lambda: [adjoin.linalg.qr(adjoin.ones(600, 600, device=gpu)) for _ in range(9)])[:16])
order("full=0")
"""
    )
    assert run(program, name, card).splitlines() == ["False True", "OutOfMemoryError"]


@either
def test_what_a_library_refuses_is_told(name, card):
    program = (
        MATRICES + "x = positive(3, 3).to(gpu)\ngpus.synchronize()\norder('lost=719')\nprint(told(L.cholesky_ex, x))\n"
    )
    words = run(program, name, card)
    assert "719" in words or {"cuda": "cuSOLVER", "hip": "hipSOLVER"}[name] in words, words


@either
def test_without_its_libraries_a_call_says_what_brings_them(name, card, tmp_path):
    program = (
        MATRICES
        + """
print(told(L.inv, adjoin.eye(3, device=gpu)))
x = matrices(4, 30)
close(adjoin.fft.fft(x.to(gpu)), adjoin.fft.fft(x), 1e-9)
print(count("transforms"))
"""
    )
    none = tmp_path / "none.so"
    missing = {
        "cuda": {"ADJOIN_CUSOLVER": none, "ADJOIN_CUFFT": none},
        "hip": {"ADJOIN_HIPSOLVER": none, "ADJOIN_HIPFFT": none},
    }[name]
    words, transforms = run(program, name, card, **missing).splitlines()
    brings = {
        "cuda": "pip install nvidia-cusolver-cu12 nvidia-cublas-cu12",
        "hip": "apt-get install hipsolver hipblas",
    }[name]
    assert (
        words.startswith("NotImplementedError: inv: ")
        and f"a library that factors matrices is missing on {name}: {brings}" in words
        and "compute with .cpu()" in words
    )
    assert transforms == "0"
    why = adjoin("plugins", "why", name, **surroundings(name, card, **missing)).stdout
    assert f"nothing factors matrices; {brings}" in why
    assert "Fourier transforms are products of matrices; " in why
    assert {"cuda": "library cuFFT 12.0.4: ", "hip": "library hipFFT 12.0.4: "}[name] in adjoin(
        "plugins", "why", name, **surroundings(name, card)
    ).stdout


@needs_cuda
def test_what_is_missing_is_no_fault_of_the_backend(card, tmp_path):
    """`conform` passes over ops that no library serves."""
    words = [
        "conform",
        PLUGINDIR / "libaj_cuda.so",
        "--mode",
        "test",
        "--op",
        "linalg::cholesky_ex",
        "--op",
        "_::eig_stack",
    ]
    out = adjoin(*words, **surroundings("cuda", card, ADJOIN_CUSOLVER=tmp_path / "none.so")).stdout
    assert "no fault found in what was checked" in out, out[-2000:]


@either
def test_eigenvalues_of_any_matrix(name, card):
    program = (
        MATRICES
        + """
for dtype, bound in some(((adjoin.float32, 1e-3), (adjoin.float64, 1e-9), (adjoin.complex64, 1e-3), (adjoin.complex128, 1e-9)), 2):
    for shape in ((4, 4), (3, 5, 5), (0, 2, 2), (0, 0)):
        a = matrices(*shape, dtype=dtype)
        try:
            values, vectors = L.eig(a.to(gpu))
        except NotImplementedError as e:
            print(e)
            raise SystemExit
        assert values.is_complex() and values.shape == a.shape[:-1] and vectors.shape == a.shape
        close(a.to(vectors.dtype) @ vectors.cpu(), vectors.cpu() * values.cpu().unsqueeze(-2), bound)
        close(L.eigvals(a.to(gpu)).sum(-1), a.diagonal(dim1=-2, dim2=-1).sum(-1).to(values.dtype), 9 * bound)
bad = matrices(2, 3, 3)
bad[1, 0, 0] = float("inf")
print(told(L.eigvals, bad.to(gpu)))
graph = Graph()
graph.capture_begin()
mistake = told(L.eigvals, a.to(gpu))
graph.capture_end()
print(mistake)
"""
    )
    lines = run(program, name, card).splitlines()
    if name == "hip":
        assert "does not serve matrices of 4 x 4 and complex" in lines[0] and "compute with .cpu()" in lines[0]
    else:
        assert "(batch element 1): the matrix holds NaN or infinity, which have no eigenvalues" in lines[0]
        assert (
            "the library works on the host, too, so it cannot be captured; eigh, for symmetric matrices, can"
            in lines[1]
        )


@either
def test_transforms_are_the_librarys(name, card):
    program = (
        MATRICES
        + """
F = adjoin.fft
for single, double in some(((adjoin.complex64, adjoin.complex128), (adjoin.float32, adjoin.float64)), 1):
    for dtype, bound in some(((single, 2e-5), (double, 1e-11)), 1):
        x = matrices(3, 4, 6, 5, dtype=dtype)
        views = [x, x.mT, x[:, ::2], x[..., 1:], x.permute(3, 0, 1, 2), x[:1].expand(3, -1, -1, -1), x[..., 0], x[0, 0, 0, 1:]]
        for v in some(views, 4):
            there = v.to(gpu) if v is x else x.to(gpu).as_strided(v.shape, v.stride(), v.storage_offset())
            dims = [(-1,), (0,)] + ([(0, 1), (-2, -1), (0, 2), (1, 2, 3), (0, 1, 2, 3)] if v.ndim == 4 else [])
            for dim in dims:
                for norm in some(("backward", "ortho", "forward"), 1):
                    def same(f, **how):
                        done = count("transforms")
                        close(f(there, dim=dim, norm=norm, **how), f(v, dim=dim, norm=norm, **how), 60 * bound)
                        assert count("transforms") > done, (f, v.shape, dim)
                    same(F.fftn), same(F.ifftn), same(F.irfftn), same(F.hfftn)
                    if not x.is_complex():
                        same(F.rfftn), same(F.ihfftn)
            close(F.irfft(there, 7), F.irfft(v, 7), 60 * bound)
            close(F.fft(there, 13), F.fft(v, 13), 60 * bound)
for shape, how in (((0, 4), {}), ((4, 1), {}), ((1,), {}), ((3, 1009), {}), ((2, 8), {"n": 3})):
    x = matrices(*shape, dtype=adjoin.complex128)
    close(F.fft(x.to(gpu), **how), F.fft(x, **how)), close(F.irfft(x.to(gpu)[..., :1], 1), F.irfft(x[..., :1], 1))
x = matrices(3, 8).to(gpu).requires_grad_()
z = matrices(3, 5, dtype=adjoin.complex128).to(gpu).requires_grad_()
assert adjoin.autograd.gradgradcheck(F.rfft, [x]) and adjoin.autograd.gradgradcheck(F.irfft, [z]) and adjoin.autograd.gradcheck(F.fftn, [z])
w = matrices(64).to(gpu)
close(adjoin.istft(adjoin.stft(w, 16, return_complex=True), 16), w)
print("well")
"""
    )
    assert run(program, name, card) == "well\n"


@either
def test_plans_are_kept_to_a_bound(name, card):
    program = (
        MATRICES
        + """
x = matrices(8, 16, dtype=adjoin.complex64).to(gpu)
print(ran(lambda: [adjoin.fft.fft(x) for _ in range(5)], "plans"), ran(lambda: [adjoin.fft.ifft(x) for _ in range(5)], "plans"))
print(ran(lambda: [adjoin.fft.fft(x, n) for n in range(2, 102)], "plans") <= 102, count("plans_alive") <= 66)
"""
    )
    assert run(program, name, card) == "1 1\nTrue True\n"
