"""tests/plugins/ulp_test.py: float functions within their ULP over random bit patterns, subnormals and specials included.

With `./run test --full`: over every float32 there is.
"""

import math
import os

import adjoin
import numpy as np
import pytest
import scipy.special

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
erf, erfc = scipy.special.erf, scipy.special.erfc
lgamma = np.vectorize(lambda x: math.lgamma(x) if x > 0 else np.nan)
LIMITS = {
    "exp": (np.exp, 1),
    "exp2": (np.exp2, 1),
    "expm1": (np.expm1, 1),
    "log": (np.log, 1),
    "log2": (np.log2, 1),
    "log10": (np.log10, 2),
    "log1p": (np.log1p, 1),
    "sqrt": (np.sqrt, 0.5),
    "reciprocal": (np.reciprocal, 0.5),
    "sin": (np.sin, 2),
    "cos": (np.cos, 2),
    "tan": (np.tan, 2),
    "tanh": (np.tanh, 2),
    "sigmoid": (lambda x: np.exp(-np.logaddexp(0, -x)), 2),
    "erf": (erf, 2),
    "erfc": (erfc, 3),
    "lgamma": (lgamma, 8),
    "asin": (np.arcsin, 2),
    "acos": (np.arccos, 2),
    "atan": (np.arctan, 2),
    "sinh": (np.sinh, 2),
    "cosh": (np.cosh, 2),
    "asinh": (np.arcsinh, 2),
    "acosh": (np.arccosh, 2),
    "atanh": (np.arctanh, 2),
    "erfinv": (scipy.special.erfinv, 2),
}


def samples(n=200_000):
    made = np.random.default_rng(7)
    patterns = made.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = made.uniform(-10, 10, n).astype(np.float32)
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    return np.concatenate([patterns, near, special])


def distance(got, wanted):
    """In units of got's last place; infinite where one is NaN or infinite and the other is not."""
    kind = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(got.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), kind.tiny))
        away = np.abs(got.astype(wanted.dtype) - wanted) / unit.astype(wanted.dtype)
    finite = np.isfinite(rounded)
    same = np.where(np.isnan(rounded), np.isnan(got), got == rounded)
    return np.where(finite, away, np.where(same, 0, np.inf))


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", LIMITS)
def test_within_its_limit(name, device):
    function, limit = LIMITS[name]
    x = samples() if device == "cpu" else samples(20_000)
    if name == "lgamma":
        x = np.abs(x[np.abs(x) < 1e30])
        x = x[(x > 0) & ((x < 0.9) | (x > 2.1))]  # away from its zeros
    if name == "sigmoid":
        x = x[~(np.abs(x) > 1e4)]
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(x.astype(np.float64)), np.float64)
    got = getattr(adjoin, name)(adjoin.from_numpy(x).to(device)).to("cpu").numpy()
    away = distance(got, wanted)
    worst = int(np.argmax(away))
    assert away[worst] <= limit, f"{name}({x[worst]!r}) is {got[worst]!r}, {away[worst]:.2f} ULP away"


# Against NumPy in float64, which is right to a millionth of a float's last place.
EVERY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "reciprocal", "sin", "cos", "tan", "tanh", "sigmoid",
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv",
)  # fmt: skip


@pytest.mark.skipif(not FULL, reason="minutes: only with ./run test --full")
@pytest.mark.parametrize("name", EVERY)
def test_every_float(name):
    """ADJOIN_ULP_PART=3/8 takes the third eighth of them, to measure by parts."""
    part, parts = map(int, os.environ.get("ADJOIN_ULP_PART", "1/1").split("/"))
    function, limit = LIMITS[name]
    most, where = 0.0, None
    for start in range((part - 1) * 2**32 // parts, part * 2**32 // parts, 2**20):
        x = np.arange(start, start + 2**20, dtype=np.uint64).astype(np.uint32).view(np.float32)
        if name == "sigmoid":
            x = x[~(np.abs(x) > 1e4)]
        with np.errstate(all="ignore"):
            away = distance(getattr(adjoin, name)(adjoin.from_numpy(x)).numpy(), function(x.astype(np.float64)))
        worst = int(np.argmax(away)) if len(x) else None
        if worst is not None and away[worst] > most:
            most, where = away[worst], x[worst]
    print(f"{name}: {most:.3f} ULP at {where!r}")
    assert most <= limit, f"{name}({where!r}): {most:.2f} ULP"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no wider floats to compare with")
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "pow"])
def test_double_within_two(name):
    made = np.random.default_rng(11)
    n = 50_000
    bits = made.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5e-324, 1e300, -1e300, 710, -745.2]
    x = np.concatenate([bits, made.uniform(-40, 40, n), made.uniform(-1, 1, n), special])
    more = ()
    if name == "pow":
        x, more = np.abs(x), (made.uniform(-20, 20, len(x)),)
    with np.errstate(all="ignore"):
        wanted = getattr(np, "power" if name == "pow" else name)(*[a.astype(np.longdouble) for a in (x, *more)])
    got = getattr(adjoin, name)(*[adjoin.from_numpy(a) for a in (x, *more)]).numpy()
    away = distance(got, wanted)
    worst = int(np.argmax(away))
    plain = os.environ.get("ADJOIN_CPU_ISA") == "base"  # no fused multiplications: the C library's functions
    most = 2.5 if plain and name == "tanh" else 2
    assert away[worst] <= most, f"{name}({x[worst]!r}): {away[worst]:.2f} ULP"


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "erf", "sigmoid", "log1p"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_depend_on_the_place(name, dtype):
    x = np.random.default_rng(3).uniform(0.01, 3, 67).astype(dtype)
    x[::7] *= 1e30  # neighbours that leave the common path
    op = getattr(adjoin, name)
    whole = op(adjoin.from_numpy(x)).numpy()
    for lo, hi in [(0, 1), (1, 8), (3, 20), (5, 67), (31, 33), (66, 67)]:
        part = op(adjoin.from_numpy(x[lo:hi].copy())).numpy()
        assert part.tobytes() == whole[lo:hi].tobytes(), (lo, hi)
