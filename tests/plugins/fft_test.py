"""tests/plugins/fft_test.py: Fourier transforms of the processor: every way that a length can take, beside NumPy's in double."""

import itertools
import os
import subprocess
import sys
import threading

import adjoin
import numpy as np
import pytest

fft = adjoin.fft
RNG = np.random.default_rng(7)
# Direct, butterflies of each radix, primes, products with primes, matrices, convolutions, long lines by themselves.
LENGTHS = [
    *range(1, 66),
    67,
    77,
    96,
    101,
    121,
    128,
    143,
    169,
    210,
    243,
    256,
    257,
    289,
    343,
    360,
    509,
    512,
    514,
    625,
    1000,
    1009,
]
LENGTHS += [
    1024,
    1155,
    2048,
    2187,
    3600,
    4096,
    5003,
    6859,
    10_000,
    16_384,
    19_683,
    65_536,
    65_537,
    3 * 2**15,
    2**17,
    7**6,
]
BOUND = {"complex64": 4e-7, "complex128": 8e-16}


def numbers(dtype, *shape):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def off(got, expected):
    """The largest error, where the mean square is 1."""
    assert list(got.shape) == list(expected.shape)
    return np.abs(got.numpy() - expected).max() / np.sqrt((np.abs(expected) ** 2).mean() or 1)


def off_by(n, dtype):
    return BOUND[dtype] * (3 + np.log2(n))


@pytest.mark.parametrize("dtype", BOUND)
def test_every_way_of_a_length(dtype):
    for n in LENGTHS:
        x = numbers(dtype, n)
        half, real, wide = x[: n // 2 + 1].copy(), x.real.copy(), x.astype(np.complex128)
        assert off(fft.fft(adjoin.tensor(x)), np.fft.fft(wide)) < off_by(n, dtype), n
        assert off(fft.ifft(adjoin.tensor(x)), np.fft.ifft(wide)) < off_by(n, dtype), n
        assert off(fft.rfft(adjoin.tensor(real)), np.fft.rfft(wide.real)) < off_by(n, dtype), n
        assert off(fft.fft(adjoin.tensor(real)), np.fft.fft(wide.real)) < off_by(n, dtype), n
        assert off(fft.irfft(adjoin.tensor(half), n), np.fft.irfft(wide[: n // 2 + 1], n)) < off_by(n, dtype), n
        assert off(fft.hfft(adjoin.tensor(half), n), np.fft.hfft(wide[: n // 2 + 1], n)) < off_by(n, dtype), n


@pytest.mark.parametrize("n", [1, 2, 6, 15, 16, 61, 67, 100, 256, 1021, 1024, 6000])
@pytest.mark.parametrize("lines", [1, 3, 16, 37])
def test_lines_in_any_place(n, lines):
    """Rows, columns, every second element, backwards counted dimensions; the same for results."""
    for dtype in BOUND:
        wide = numbers(dtype, lines, 2 * n)
        t = adjoin.tensor(wide)
        views = [(t[:, :n], wide[:, :n], 1), (t[:, ::2], wide[:, ::2], -1), (t[:, n:].t(), wide[:, n:].T, 0)]
        views.append((t.t().contiguous().t()[:, :n], wide[:, :n], 1))
        for view, x, d in views:
            expected = np.fft.fft(x.astype(np.complex128), axis=d)
            assert off(fft.fft(view, dim=d), expected) < off_by(n, dtype)
            out = adjoin.zeros(2 * x.shape[0], x.shape[1], dtype=view.dtype)[::2]
            fft.fft(view, dim=d, out=out)
            assert off(out, expected) < off_by(n, dtype)
            real = view.real
            assert off(fft.rfft(real, dim=d), np.fft.rfft(x.real.astype(np.float64), axis=d)) < off_by(n, dtype)
            m = 2 * x.shape[d] - 1
            assert off(fft.irfft(view, m, d), np.fft.irfft(x.astype(np.complex128), m, d)) < off_by(m, dtype)


def test_several_dimensions():
    x = numbers("complex128", 5, 6, 7, 8)
    t = adjoin.tensor(x)
    for k in range(1, 5):
        for dims in itertools.permutations(range(4), k):
            assert off(fft.fftn(t, dim=dims), np.fft.fftn(x, axes=dims)) < 1e-14
            assert off(fft.fftn(t.real, dim=dims), np.fft.fftn(x.real, axes=dims)) < 1e-14
            assert off(fft.rfftn(t.real, dim=dims), np.fft.rfftn(x.real, axes=dims)) < 1e-14
            assert off(fft.irfftn(t, dim=dims), np.fft.irfftn(x, axes=dims)) < 1e-14
    assert off(fft.hfftn(t), np.fft.hfft(np.fft.fftn(x, axes=(0, 1, 2)))) < 1e-14
    assert off(fft.ihfft2(t.real), np.fft.ifft(np.fft.ihfft(x.real), axis=2)) < 1e-14


@pytest.mark.parametrize(
    "shape, dims", [((10, 224, 224), (1, 2)), ((3, 7, 120, 110), (3, 2)), ((9, 30, 40, 50), (1, 2, 3))]
)
def test_more_planes_than_a_cache_holds(shape, dims):
    x = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    places = (
        adjoin.tensor(x),
        adjoin.tensor(np.moveaxis(x, 0, -1)).movedim(-1, 0),
        adjoin.tensor(np.stack([x, x], -1))[..., 0],
    )
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        given = x.real if name == "rfftn" else x
        want = getattr(np.fft, name)(given, axes=dims)
        for t in places:
            for dtype, far in ((adjoin.complex128, 1e-13), (adjoin.complex64, 3e-6)):
                t = t.to(dtype)
                made = getattr(fft, name)(t.real if name == "rfftn" else t, dim=dims).numpy()
                assert np.abs(made - want).max() < far * np.abs(want).max()
    one = adjoin.tensor(x[:1]).expand(shape)
    assert adjoin.equal(fft.fftn(one, dim=dims)[-1:], fft.fftn(one[:1], dim=dims))


def test_sizes_norms_dtypes():
    x = numbers("complex128", 4, 5)
    t = adjoin.tensor(x)
    for norm in ("backward", "ortho", "forward", None):
        for s in ([3, 7], [4, 5], [9, 2]):
            assert off(fft.fft2(t, s, norm=norm), np.fft.fft2(x, s, norm=norm)) < 1e-14
            assert off(fft.irfft2(t, s, norm=norm), np.fft.irfft2(x, s, norm=norm)) < 1e-14
            assert off(fft.rfft2(t.real, s, norm=norm), np.fft.rfft2(x.real, s, norm=norm)) < 1e-14
        assert off(fft.fftn(t, (3, -1), norm=norm), np.fft.fftn(x, (3, 5), (0, 1), norm=norm)) < 1e-14
        assert off(fft.fftn(t, (6,), norm=norm), np.fft.fft(x, 6, norm=norm)) < 1e-14
    assert fft.fft(adjoin.arange(3)).dtype == adjoin.complex64 and fft.rfft(t.real.float()).dtype == adjoin.complex64
    assert fft.irfft(adjoin.ones(3, dtype=adjoin.float64)).tolist() == [1, 0, 0, 0]
    assert fft.fft(adjoin.zeros(0, 3)).shape == (0, 3) and fft.irfft(adjoin.zeros(0, 3)).shape == (0, 4)
    assert fft.fftn(adjoin.tensor(3.0)).item() == 3 and fft.fftn(t, dim=()).tolist() == t.tolist()
    assert fft.fft(adjoin.ones(2, 3, device="meta"), 5).shape == (2, 5)
    assert (
        fft.fftfreq(4, 0.5).tolist() == [0, 0.5, -1, -0.5]
        and fft.rfftfreq(5, dtype=adjoin.float64).dtype == adjoin.float64
    )
    assert fft.ifftshift(fft.fftshift(adjoin.arange(5))).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("call, says", [
    (lambda x: fft.fft(x, 0), "n must be at least 1, it is 0"),
    (lambda x: fft.fft(x, norm="half"), "norm must be 'backward', 'ortho' or 'forward', it is 'half'"),
    (lambda x: fft.rfft(x + 0j), "real numbers are wanted, the tensor is complex64"),
    (lambda x: fft.fft(x.half()), "the tensor is float16: cast it with"),
    (lambda x: fft.fft(x[:0], dim=0), "at least one element, dimension 0 has 0"),
    (lambda x: fft.irfft(x[:, :1]), "dimension 1 has 0"),
    (lambda x: fft.fftn(x, dim=(0, -2)), "dim has a dimension twice"),
    (lambda x: fft.fftn(x, (1, 2), (0,)), "s and dim differ in length"),
    (lambda x: fft.fftn(x, (1, 2, 3)), "s has 3 sizes, the tensor 2 dimensions"),
    (lambda x: fft.fftn(x, (0, 2)), "sizes must be at least 1"),
    (lambda x: fft.rfftn(x, dim=()), "at least one dimension is wanted"),
    (lambda x: fft.fft(x.sum()), "a number has no dimension"),
    (lambda x: fft.fft2(x[0]), "out of range"),
    (lambda x: fft.fftfreq(0), "n must be at least 1"),
    (lambda x: fft.fftfreq(3, dtype=adjoin.int64), "dtype is int64"),
])  # fmt: skip
def test_refused(call, says):
    with pytest.raises((RuntimeError, IndexError, ValueError), match=says):
        call(adjoin.ones(3, 4))


def test_derivatives_of_every_order():
    def complexes(*shape):
        return adjoin.tensor(numbers("complex128", *shape), requires_grad=True)

    x, z = adjoin.randn(3, 4, dtype=adjoin.float64, requires_grad=True), complexes(3, 4)
    calls = [(fft.rfft, x), (fft.fft, x), (fft.ihfft, x), (fft.rfftn, x), (fft.fft2, x), (lambda t: fft.rfft(t, 7), x)]
    calls += [(fft.fft, z), (fft.ifft2, z), (fft.irfft, z), (fft.hfft, z), (lambda t: fft.irfft(t, 7), z)]
    calls += [
        (fft.irfftn, z),
        (lambda t: fft.hfft2(t, (5, 3)), z),
        (lambda t: fft.irfft(t, 2, 0), z),
        (fft.fftshift, x),
    ]
    for call, given in calls:
        assert adjoin.autograd.gradcheck(call, [given])
        assert adjoin.autograd.gradgradcheck(call, [given])
    # Symmetry says that the first and the last of an even spectrum are real.
    for call in (fft.irfft, fft.hfft):
        spectrum = complexes(4)
        (call(spectrum) ** 2).sum().backward()
        assert spectrum.grad[[0, 3]].imag.tolist() == [0, 0] and spectrum.grad[1].imag != 0
    t = x.detach().requires_grad_()
    third = fft.rfft(t**4).abs().square().sum()
    for _ in range(3):
        (third,) = adjoin.autograd.grad(third.sum(), t, create_graph=True)
    assert third.shape == (3, 4)


def test_plans_from_many_threads():
    """More lengths than are kept, asked for at once."""
    lines = {n: numbers("complex64", n) for n in range(100, 200)}
    bad = []

    def work(seed):
        for n in np.random.default_rng(seed).permutation(list(lines)):
            if off(fft.fft(adjoin.tensor(lines[n])), np.fft.fft(lines[n].astype(np.complex128))) > off_by(
                n, "complex64"
            ):
                bad.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


@pytest.mark.parametrize("isa", ["base", "avx2"])
def test_other_instruction_sets(isa):
    """Sums over the results of many lengths are those of the chosen set but for rounding."""
    program = """
import adjoin, numpy as np
for dtype, bound in (np.complex64, 1e-5), (np.complex128, 1e-13):
    for n in (1, 2, 3, 5, 7, 8, 16, 30, 61, 67, 128, 360, 1009, 4096):
        for lines in (1, 9, 16):
            x = np.exp(1j * np.arange(lines * n) ** 2 / 7).reshape(lines, n).astype(dtype)
            w = np.fft.fft(x.astype(np.complex128))
            assert np.abs(adjoin.fft.fft(adjoin.tensor(x)).numpy() - w).max() < bound * n, (n, lines)
            assert np.abs(adjoin.fft.fft(adjoin.tensor(x).t(), dim=0).numpy() - w.T).max() < bound * n, (n, lines)
            r = np.fft.rfft(x.real.astype(np.float64))
            assert np.abs(adjoin.fft.rfft(adjoin.tensor(x.real.copy())).numpy() - r).max() < bound * n, (n, lines)
            back = adjoin.fft.irfft(adjoin.fft.rfft(adjoin.tensor(x.real.copy())), n).numpy()
            assert np.abs(back - x.real).max() < bound * n, (n, lines)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "ADJOIN_CPU_ISA": isa}
    )
    assert run.returncode == 0, run.stderr


def test_bits_do_not_depend_on_threads():
    x = adjoin.tensor(numbers("complex64", 2**17))
    y = adjoin.tensor(numbers("complex64", 40, 300))
    many = adjoin.get_num_threads()
    results = []
    for threads in (1, 3):
        adjoin.set_num_threads(threads)
        results.append([fft.fft(x), fft.fft2(y), fft.rfft2(y.real), fft.irfft2(y)])
    adjoin.set_num_threads(many)
    assert all(adjoin.equal(a, b) for a, b in zip(*results, strict=True))


def test_short_pieces_and_back():
    for n, hop, window in (
        (8, None, None),
        (7, 3, adjoin.hann_window(7)),
        (8, 2, adjoin.hamming_window(6)),
        (400, 100, None),
    ):
        wide = 2 if window is None else len(window)
        x = adjoin.randn(3, 1000 if n == 400 else 40)
        for half, normalized in itertools.product((True, False), (True, False)):
            how = {
                "hop_length": hop,
                "win_length": None if window is None else wide,
                "window": window,
                "normalized": normalized,
            }
            made = adjoin.stft(x, n, onesided=half, return_complex=True, **how)
            assert made.shape[1] == (n // 2 + 1 if half else n)
            assert adjoin.equal(x.stft(n, onesided=half, return_complex=False, **how), adjoin.view_as_real(made))
            back = adjoin.istft(made, n, length=x.shape[1], **how)
            assert adjoin.allclose(back[:, : x.shape[1] - n], x[:, : x.shape[1] - n], atol=1e-5)
    z = adjoin.tensor(numbers("complex128", 30))
    w = adjoin.hann_window(10, dtype=adjoin.float64)
    back = adjoin.stft(z, 10, 2, window=w, return_complex=True).istft(
        10, 2, window=w, onesided=False, return_complex=True
    )
    assert adjoin.allclose(back, z)


def test_derivatives_of_short_pieces():
    x = adjoin.randn(20, dtype=adjoin.float64, requires_grad=True)
    w = adjoin.rand(6, dtype=adjoin.float64, requires_grad=True)
    assert adjoin.autograd.gradcheck(lambda x, w: adjoin.stft(x, 6, 2, window=w, return_complex=True), [x, w])
    spectra = adjoin.tensor(numbers("complex128", 4, 5), requires_grad=True)
    ones = (w.detach() + 1).requires_grad_()
    assert adjoin.autograd.gradcheck(lambda s, w: adjoin.istft(s, 6, 2, window=w), [spectra, ones])


@pytest.mark.parametrize("call, says", [
    (lambda x: adjoin.stft(x, 4), "return_complex must be given where the signal is real"),
    (lambda x: adjoin.stft(x, 20, center=False, return_complex=True), "a signal of 12 elements is shorter than n_fft, 20"),
    (lambda x: adjoin.stft(x.int(), 4, return_complex=True), "the tensor is int32; cast it"),
    (lambda x: adjoin.stft(x, 4, window=adjoin.ones(3), return_complex=True), r"window must have win_length \(4\)"),
    (lambda x: adjoin.stft(x, 4, win_length=5, return_complex=True), "win_length must be between 1 and n_fft"),
    (lambda x: adjoin.stft(x, 4, 0, return_complex=True), "hop_length must be at least 1"),
    (lambda x: adjoin.stft(x, 4, align_to_window=True, return_complex=True), "align_to_window goes with center=False"),
    (lambda x: adjoin.stft(x + 0j, 4, onesided=True), "of complex numbers there is no half spectrum"),
    (lambda x: adjoin.istft(x.view(3, 4), 4), "complex numbers are wanted"),
    (lambda x: adjoin.istft(x.view(3, 4) + 0j, 9), "of n_fft 9 there are 5 frequencies, the tensor has 3"),
    (lambda x: adjoin.istft(x.view(3, 4) + 0j, 4, window=adjoin.hann_window(4), center=False), "do not cover the whole signal"),
    (lambda x: adjoin.istft(x.view(3, 4) + 0j, 4, return_complex=True), "of half spectra the signal is real"),
])  # fmt: skip
def test_refused_pieces(call, says):
    with pytest.raises(RuntimeError, match=says):
        call(adjoin.ones(12))


@pytest.mark.parametrize("wide", [False, True], ids=["float", "double"])
@pytest.mark.parametrize("n", [2, 4, 6, 14, 62, 112, 202, 224, 512, 1000, 2018])
def test_real_lines_in_lanes(n, wide):
    """Real lines one behind the other, beside each other and apart, whole vectors of them and some more; both directions."""
    kind = np.float64 if wide else np.float32
    for count in (1, 3, 16, 37):
        x = np.random.default_rng(n).standard_normal((count, n)).astype(kind)
        columns, apart = (
            adjoin.tensor(x.T.copy()),
            adjoin.zeros(count, 2 * n + 1, dtype=adjoin.tensor(x).dtype)[:, 1::2],
        )
        apart.copy_(adjoin.tensor(x))
        tolerance = {"rtol": 0, "atol": np.sqrt(n) * (1e-14 if wide else 5e-6)}
        for f, true in ((adjoin.fft.rfft, np.fft.rfft), (adjoin.fft.ihfft, np.fft.ihfft)):
            expected = true(x.astype(np.float64))
            for got in (f(adjoin.tensor(x)), f(columns, dim=0).mT, f(columns.mT), f(apart)):
                np.testing.assert_allclose(got.numpy(), expected, **tolerance)


@pytest.mark.parametrize("n", [67, 71, 101, 127, 211, 1009, 2017, 10_007])
def test_primes(n):
    """Those whose n - 1 has small factors are convolutions of n - 1 elements, the others longer ones."""
    for kind, unit in ((np.complex64, 3e-7), (np.complex128, 1e-15)):
        rng = np.random.default_rng(n)
        x = (rng.standard_normal((5, n)) + 1j * rng.standard_normal((5, n))).astype(kind)
        for f, true in ((adjoin.fft.fft, np.fft.fft), (adjoin.fft.ifft, np.fft.ifft)):
            expected = true(x.astype(np.complex128))
            for got in (f(adjoin.tensor(x)), f(adjoin.tensor(x.T.copy()), dim=0).mT):
                assert np.abs(got.numpy() - expected).max() <= unit * 4 * np.abs(expected).max()
