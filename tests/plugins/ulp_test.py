"""tests/plugins/ulp_test.py: float32 functions within their ULP over random bit patterns, subnormals and specials included."""

import math

import adjoin
import numpy as np
import pytest

erf, lgamma = (
    np.vectorize(math.erf),
    np.vectorize(lambda x: math.lgamma(x) if x > 0 else np.nan),
)
LIMITS = {
    "exp": (np.exp, 1),
    "exp2": (np.exp2, 1),
    "expm1": (np.expm1, 1),
    "log": (np.log, 1),
    "log2": (np.log2, 1),
    "log1p": (np.log1p, 1),
    "sqrt": (np.sqrt, 0.5),
    "reciprocal": (np.reciprocal, 0.5),
    "sin": (np.sin, 2),
    "cos": (np.cos, 2),
    "tan": (np.tan, 2),
    "tanh": (np.tanh, 2),
    "sigmoid": (lambda x: np.exp(-np.logaddexp(0, -x)), 2),
    "erf": (erf, 2),
    "lgamma": (lgamma, 8),
}


def samples(n=200_000):
    made = np.random.default_rng(7)
    patterns = made.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = made.uniform(-10, 10, n).astype(np.float32)
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    return np.concatenate([patterns, near, special])


def distance(got, wanted):
    """In units of the last place of float32; infinite where one is NaN or infinite and the other is not."""
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32)
        unit = np.spacing(np.maximum(np.abs(rounded), np.float32(2.0**-126))).astype(np.float64)
        away = np.abs(got.astype(np.float64) - wanted) / unit
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
