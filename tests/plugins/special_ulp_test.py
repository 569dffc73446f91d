"""tests/plugins/special_ulp_test.py: special functions that have vector code, beside SciPy's in float64; whole numbers divided
in vectors, beside Python's; results that go past the caches."""

import math
import os

import adjoin
import numpy as np
import pytest
import scipy.special as sp

special = adjoin.special
RANGES = {
    "i0": (adjoin.i0, sp.i0, -80, 80),
    "i0e": (special.i0e, sp.i0e, -300, 300),
    "i1": (special.i1, sp.i1, -80, 80),
    "i1e": (special.i1e, sp.i1e, -300, 300),
    "k0": (special.modified_bessel_k0, sp.k0, 1e-6, 80),
    "k1": (special.modified_bessel_k1, sp.k1, 1e-6, 80),
    "scaled k0": (special.scaled_modified_bessel_k0, sp.k0e, 1e-6, 500),
    "scaled k1": (special.scaled_modified_bessel_k1, sp.k1e, 1e-6, 500),
    "erfcx": (special.erfcx, sp.erfcx, -9, 200),
    "log_ndtr": (special.log_ndtr, sp.log_ndtr, -100, 8),
    "ndtri": (special.ndtri, sp.ndtri, 1e-5, 1 - 1e-5),
    "polygamma1": (lambda x: adjoin.polygamma(1, x), lambda x: sp.polygamma(1, x), 1e-3, 200),
    "polygamma4": (lambda x: adjoin.polygamma(4, x), lambda x: sp.polygamma(4, x), 1e-3, 200),
    "digamma": (adjoin.digamma, sp.digamma, 2, 300),
    "lgamma": (adjoin.lgamma, sp.gammaln, 2.2, 200),
}


@pytest.mark.parametrize("dtype, relative", [(np.float32, 2e-7), (np.float64, 1e-14)], ids=["float32", "float64"])
@pytest.mark.parametrize("name", RANGES)
def test_near_scipy(name, dtype, relative):
    ours, theirs, low, high = RANGES[name]
    x = np.random.default_rng(5).uniform(low, high, 4_001).astype(dtype)
    x = np.concatenate([x, (low + (high - low) * np.logspace(-6, 0, 500)).astype(dtype)]).clip(low, high).astype(dtype)
    wanted = theirs(x.astype(np.float64))
    got = ours(adjoin.from_numpy(x)).numpy().astype(np.float64)
    slack = 4 if name == "ndtri" else 1  # a middle that is near zero
    np.testing.assert_allclose(got, wanted, rtol=relative * slack, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("name", RANGES)
def test_exceptional_arguments_and_their_neighbours(name):
    ours, _, low, high = RANGES[name]
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, -1.0, -0.5, 1.0, 1e300, 1e-30, 1 - 1e-16, 3e-9]
    scalar = adjoin.from_numpy(np.array(odd)).to("reference")
    wanted = ours(scalar).to("cpu").numpy()
    middle = low + (high - low) / 3
    x = np.full(67, middle)
    plain = ours(adjoin.from_numpy(x)).numpy()
    x[5 : 5 + 3 * len(odd) : 3] = odd
    got = ours(adjoin.from_numpy(x)).numpy()
    np.testing.assert_allclose(got[5 : 5 + 3 * len(odd) : 3], wanted, rtol=1e-13)
    kept = x == middle
    assert got[kept].tobytes() == plain[kept].tobytes()


def test_gelu_keeps_its_digits_in_the_left_tail():
    made = np.random.default_rng(9)
    x = np.concatenate([made.uniform(-13.5, 20, 40_000), -np.logspace(-37, 1, 4_000), np.logspace(-37, 1, 4_000)])
    x = x.astype(np.float32)
    wanted = 0.5 * x.astype(np.float64) * sp.erfc(-x.astype(np.float64) * math.sqrt(0.5))
    got = adjoin.nn.functional.gelu(adjoin.from_numpy(x)).numpy()
    away = np.abs(got - wanted) / np.spacing(np.maximum(np.abs(wanted), np.finfo(np.float32).tiny).astype(np.float32))
    limit = 300 if os.environ.get("ADJOIN_CPU_ISA") == "base" else 6  # without fused products
    assert away.max() <= limit, (x[away.argmax()], away.max())
    odd = adjoin.tensor([0.0, -0.0, math.inf, math.nan, 2.0**127, -15.0, -1e30])
    np.testing.assert_array_equal(adjoin.nn.functional.gelu(odd).numpy(), [0, 0, math.inf, math.nan, 2.0**127, 0, 0])


def test_powers_with_loops_of_their_own():
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, -2.0, 5e-324, 1e300, 3.0, 0.7]
    for e, of_zero in ((0.5, 0.0), (-1.0, math.inf), (2.0, 0.0), (3.0, 0.0)):
        for dtype in (adjoin.float32, adjoin.float64):
            x = adjoin.tensor(odd, dtype=dtype)
            power = lambda v: (
                of_zero if v == 0 else math.nan if v != v or (v < 0 and v != -math.inf and e == 0.5) else v**e
            )
            with np.errstate(all="ignore"):
                wanted = np.array([power(np.float64(v)) for v in x.tolist()]).astype(str(dtype).split(".")[1])
            wanted[1] = math.copysign(of_zero, -1) if e in (-1, 3) else 0.0
            wanted[3] = {0.5: math.inf, -1.0: -0.0, 2.0: math.inf, 3.0: -math.inf}[e]
            got = (x**e).numpy()
            np.testing.assert_allclose(got, wanted, rtol=3e-7 if dtype == adjoin.float32 else 5e-16)
            np.testing.assert_array_equal(np.signbit(got[:4]), np.signbit(wanted[:4]))


def test_logaddexp2_sinc_and_nextafter():
    rng = np.random.default_rng(2)
    a, b = (np.concatenate([rng.uniform(-30, 30, 999), [np.inf, -np.inf, -np.inf, np.nan, 0]]) for _ in range(2))
    b[-4:] = [-np.inf, 1, 1, 0]
    with np.errstate(all="ignore"):
        wanted = np.logaddexp2(a, b)
    np.testing.assert_allclose(
        adjoin.logaddexp2(*map(adjoin.from_numpy, (a, b))).numpy(), wanted, rtol=1e-14, atol=1e-14
    )
    np.testing.assert_allclose(adjoin.sinc(adjoin.from_numpy(a[:999])).numpy(), np.sinc(a[:999]), rtol=1e-9, atol=1e-13)
    assert adjoin.sinc(adjoin.zeros(3)).tolist() == [1, 1, 1]
    for dtype in (np.float32, np.float64):
        x = np.concatenate([a, [0, -0.0, 0, 1, -1, np.finfo(dtype).max, np.finfo(dtype).tiny]]).astype(dtype)
        y = np.concatenate([b, [1, -1, -0.0, 2, 0, np.inf, -1]]).astype(dtype)
        with np.errstate(all="ignore"):
            wanted = np.nextafter(x, y)
        got = adjoin.nextafter(adjoin.from_numpy(x), adjoin.from_numpy(y)).numpy()
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_whole_numbers_divided(dtype):
    rng = np.random.default_rng(4)
    kind = np.iinfo(dtype)
    ends = [kind.min, kind.min + 1, kind.max, kind.max - 1, -1, 1, 2, -2, 7, -7, 2**31 - 1, -(2**31), 3, 10**9]
    for n in (1, 3, 15, 16, 17, 1000):
        a = rng.integers(kind.min, kind.max, n, dtype=dtype, endpoint=True) >> rng.integers(
            0, kind.bits - 1, n, dtype=dtype
        )
        b = rng.integers(kind.min, kind.max, n, dtype=dtype, endpoint=True) >> rng.integers(
            0, kind.bits - 1, n, dtype=dtype
        )
        a[: len(ends)], b[: len(ends)] = ends[:n], ends[::-1][:n]
        b[b == 0] = 3
        wrap = lambda v: (v - kind.min) % 2**kind.bits + kind.min
        pairs = list(zip(a.tolist(), b.tolist()))
        x, y = adjoin.from_numpy(a), adjoin.from_numpy(b)
        assert (x // y).tolist() == [wrap(p // q) for p, q in pairs]
        assert (x % y).tolist() == [p % q for p, q in pairs]
        assert adjoin.fmod(x, y).tolist() == [
            p - q * (abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)) for p, q in pairs
        ]
        assert adjoin.div(x, y, rounding_mode="floor").tolist() == (x // y).tolist()
        assert (x // int(b[0])).tolist() == [wrap(p // int(b[0])) for p in a.tolist()]
        assert (x.double() // 3).tolist() == [float(v // 3) for v in a.astype(np.float64).tolist()]
        b[n // 2] = 0
        for op in (adjoin.floor_divide, adjoin.remainder, adjoin.fmod):
            with pytest.raises(RuntimeError, match="division by zero"):
                op(x, adjoin.from_numpy(b))


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_large_results_past_the_caches(shift):
    """Of all sizes of elements, from rows that begin anywhere in a line of the cache."""
    n = 6_000_011
    rng = np.random.default_rng(1)
    for dtype in (np.uint8, np.int16, np.int32, np.int64, np.float64):
        a, b = (rng.integers(0, 100, n + 5).astype(dtype) for _ in range(2))
        x, y = adjoin.from_numpy(a)[5 - shift : n], adjoin.from_numpy(b)[shift : n - 5 + 2 * shift]
        out = adjoin.zeros(n + 8, dtype=x.dtype)
        p, q = a[5 - shift : n], b[shift : n - 5 + 2 * shift]
        to = out[shift : shift + len(p)]
        np.testing.assert_array_equal(adjoin.maximum(x, y, out=to).numpy(), np.maximum(p, q))
        assert out[:shift].sum().item() == 0 and out[shift + len(p) :].sum().item() == 0
        mask = adjoin.zeros(n + 8, dtype=adjoin.bool)
        np.testing.assert_array_equal(adjoin.lt(x, y, out=mask[shift : shift + len(p)]).numpy(), p < q)
        assert not mask[:shift].any() and not mask[shift + len(p) :].any()
        np.testing.assert_array_equal(x.to(adjoin.uint8).numpy(), p.astype(np.uint8))
        np.testing.assert_array_equal(x.to(adjoin.int16).numpy(), p.astype(np.int16))
        to.fill_(7)
        assert (to == 7).all() and out[:shift].sum().item() == 0 and out[shift + len(p) :].sum().item() == 0
