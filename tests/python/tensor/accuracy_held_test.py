"""tests/python/tensor/accuracy_held_test.py: special functions, variances and products in units of the last place, beside closed forms
in ninety digits."""

import decimal
import math
from decimal import Decimal

import adjoin as aj
import numpy as np
import pytest

DEVICES = ["cpu", "reference"]
decimal.getcontext().prec = 90
EULER = Decimal("0.5772156649015328606065120900824024310421593359")
ROOT = Decimal("1.461632144968362341262659542325721328468196204")  # of digamma
SLOPE, BEND = Decimal("0.967672245447621170427444761709650740"), Decimal("-0.442763168983592106")  # of digamma there


def away(got, wanted):
    """In units of the last place of float64."""
    return float(abs(Decimal(got) - wanted) / Decimal(math.ulp(float(wanted))))


def told(function, device, *given):
    return function(*(aj.tensor(g, dtype=aj.float64, device=device) for g in given)).tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_digamma(device):
    whole = list(range(1, 60))
    wanted = [sum((1 / Decimal(k) for k in range(1, n)), -EULER) for n in whole]
    halves = [n + 0.5 for n in range(60)]
    wanted += [2 * sum((1 / Decimal(2 * k - 1) for k in range(1, n + 1)), -Decimal(2).ln()) - EULER for n in range(60)]
    got = told(aj.digamma, device, whole + halves)
    worst = max(zip(map(away, got, wanted), whole + halves, strict=True))
    assert worst[0] < 4, worst


@pytest.mark.parametrize("device", DEVICES)
def test_digamma_at_its_root(device):
    near = [1.4616321449683622 + k * 2.0**-52 for k in (-300, -2, -1, 0, 1, 2, 1000)]
    got = told(aj.digamma, device, near)
    for x, y in zip(near, got, strict=True):
        d = Decimal(x) - ROOT
        assert away(y, SLOPE * d + BEND * d * d) < 4, x


def bessel(order, x):
    q, term, total, k = Decimal(x) ** 2 / 4, (Decimal(x) / 2) ** order / math.factorial(order), Decimal(0), 0
    while abs(term) > Decimal("1e-50") * abs(total):
        total += term
        k += 1
        term *= q / (k * (k + order))
    return total


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [0, 1])
def test_modified_bessel_functions(device, order):
    x = [k / 8 + 1 / 64 for k in range(-90, 91)] + [9.999, 10.001, 20.5, 33.3]
    plain, scaled = (aj.i0, aj.special.i0e) if order == 0 else (aj.special.i1, aj.special.i1e)
    for function, factor in ((plain, lambda t: 1), (scaled, lambda t: (-abs(Decimal(t))).exp())):
        wanted = [bessel(order, t) * factor(t) for t in x]
        worst = max(zip(map(away, told(function, device, x), wanted), x, strict=True))
        assert worst[0] < 6, (worst, function)


@pytest.mark.parametrize("device", DEVICES)
def test_incomplete_gamma_functions(device):
    pairs = [(a, x / 8) for a in range(1, 20) for x in range(1, 160, 5)]
    a, x = map(list, zip(*pairs, strict=True))
    upper = [(-Decimal(t)).exp() * sum(Decimal(t) ** k / math.factorial(k) for k in range(n)) for n, t in pairs]
    for function, wanted in ((aj.special.gammaincc, upper), (aj.special.gammainc, [1 - u for u in upper])):
        worst = max(zip(map(away, told(function, device, a, x), wanted), pairs, strict=True))
        assert worst[0] < 16, (worst, function)


@pytest.mark.parametrize("device", DEVICES)
def test_incomplete_gamma_functions_of_fractions(device):
    """Values with forty digits: a + 1 has a bit less than a."""
    for a, x, lower in (
        (15.749730380865357, 10.155927667550438, "0.0622900566713753832640958"), (15.939372824169295, 8.469389590994354, "0.0140154083824521398255260"),
        (0.375, 2.5, "0.983663397371074756013292957"),
    ):  # fmt: skip
        got = told(aj.special.gammainc, device, [a], [x])[0]
        assert abs(got / float(lower) - 1) < 3e-15, (a, got)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("how", ["all", "rows", "columns", "strided", "few"])
def test_a_variance_far_from_zero(device, dtype, how):
    rng = np.random.default_rng(3)
    size = {"all": (50_000,), "rows": (7, 5000), "columns": (300, 70), "strided": (9000,), "few": (5, 3)}[how]
    x = (rng.normal(0, 1, size) + 1e4).astype(dtype)
    if how == "all":
        x[:64] += 500  # where the pivot is taken
    x = x[::2] if how == "strided" else x
    axis = {"all": None, "rows": 1, "columns": 0, "strided": None, "few": 0}[how]
    t = aj.from_numpy(x).to(device)
    wanted = np.var(x.astype(np.clongdouble if dtype == np.complex64 else np.longdouble), axis=axis, ddof=1).real
    got = (t.var() if axis is None else t.var(axis)).cpu().numpy()
    tolerance = 1e-11 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(got, wanted.astype(np.float64), rtol=tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_a_variance_of_equal_numbers_is_zero(device):
    for n in (1, 3, 7, 63, 65, 5000):
        for dtype in (aj.float32, aj.float64, aj.float16):
            assert aj.full((n,), 0.1, dtype=dtype, device=device).var(correction=0).item() == 0
            assert not aj.full((n, 3), 0.1, dtype=dtype, device=device).var(0, correction=0).any()
    assert math.isnan(aj.tensor([1.0, math.inf, 2.0], device=device).var().item())


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_a_product_of_many(size):
    x = np.random.default_rng(5).uniform(0.999, 1.001, size).astype(np.float32)
    wanted = np.prod(x.astype(np.longdouble))
    assert abs(aj.from_numpy(x).prod().item() / wanted - 1) < 1e-7
    assert aj.from_numpy(x).prod(dtype=aj.float64).item() == pytest.approx(float(wanted), rel=1e-12)
    for n in (1, 31, 33, 100, 262_144 + 17):
        y = np.where(np.arange(n) % 3 == 1, -1.5, 2 / 3).astype(np.float32)[: min(n, 60)]
        y = np.concatenate([y, np.full(n - len(y), -1, np.float32)])
        assert aj.from_numpy(y).prod().item() == pytest.approx(float(np.prod(y.astype(np.float64))), rel=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_of_stacks_sums_before_it_subtracts(dtype):
    a = np.random.default_rng(0).standard_normal((200, 32, 32)).astype(dtype)
    a = (a @ a.swapaxes(1, 2) + 32 * np.eye(32, dtype=dtype)).astype(dtype)
    low = aj.linalg.cholesky(aj.from_numpy(a)).numpy().astype(np.longdouble)
    error = np.sqrt(
        ((np.einsum("bik,bjk->bij", low, low) - a) ** 2).sum((1, 2)) / (a.astype(np.longdouble) ** 2).sum((1, 2))
    )
    assert error.mean() < 0.55 * np.finfo(dtype).eps  # 0.78 where products are subtracted one by one
