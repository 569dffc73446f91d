#!/usr/bin/env python3
"""bench/accuracy.py: how far results are from the true ones, in units of the last place; writes frontends/docs/accuracy.md.

bench/accuracy.py --module torch --json torch.json     another library of the same names (wants NumPy and SciPy beside it)
bench/accuracy.py --beside torch.json --page frontends/docs/accuracy.md
"""

import argparse
import importlib
import json
import math
import sys

import numpy as np
import scipy.special as sp

L = np.longdouble
WIDE = np.finfo(L).nmant > 60


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name: (reference, low, high of each argument; what computes it: a dotted name, else the name itself)
ELEMENTARY = {
    "exp": (np.exp, (-80, 80)), "exp2": (np.exp2, (-120, 120)), "expm1": (np.expm1, (-20, 20)), "log": (np.log, (1e-30, 1e30)),
    "log2": (np.log2, (1e-30, 1e30)), "log10": (np.log10, (1e-30, 1e30)), "log1p": (np.log1p, (-0.999, 1e6)),
    "sqrt": (np.sqrt, (0, 1e30)), "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30)), "reciprocal": (lambda x: 1 / x, (1e-30, 1e30)),
    "sin": (np.sin, (-100, 100)), "cos": (np.cos, (-100, 100)), "tan": (np.tan, (-100, 100)), "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)), "atan": (np.arctan, (-100, 100)), "sinh": (np.sinh, (-80, 80)), "cosh": (np.cosh, (-80, 80)),
    "tanh": (np.tanh, (-10, 10)), "asinh": (np.arcsinh, (-1e6, 1e6)), "acosh": (np.arccosh, (1, 1e6)), "atanh": (np.arctanh, (-0.999, 0.999)),
    "sigmoid": (_sigmoid, (-80, 80)), "nn.functional.silu": (lambda x: x * _sigmoid(x), (-20, 20)),
    "nn.functional.softplus": (lambda x: np.log1p(np.exp(x)), (-20, 19)), "nn.functional.elu": (lambda x: np.where(x > 0, x, np.expm1(x)), (-20, 20)),
    "sinc": (lambda x: np.where(x == 0, 1, np.sin(_PI * x) / (_PI * np.where(x == 0, 1, x))), (-9, 9)),
    "add": (np.add, (-2, 2), (-2, 2)), "mul": (np.multiply, (-2, 2), (-2, 2)), "div": (np.divide, (-2, 2), (0.5, 3)),
    "pow": (np.power, (1e-3, 1e3), (-9, 9)), "atan2": (np.arctan2, (-9, 9), (-9, 9)), "hypot": (np.hypot, (-1e9, 1e9), (-1e9, 1e9)),
    "logaddexp": (np.logaddexp, (-40, 40), (-40, 40)), "logaddexp2": (np.logaddexp2, (-40, 40), (-40, 40)),
    "square": (np.square, (-9, 9)), "lerp": (lambda x, y, w: x + w * (y - x), (-2, 2), (-2, 2), (0, 1)),
    "addcmul": (lambda x, y, z: x + y * z, (-2, 2), (-2, 2), (-2, 2)), "addcdiv": (lambda x, y, z: x + y / z, (-2, 2), (-2, 2), (0.5, 3)),
    "sub": (np.subtract, (-2, 2), (-2, 2)), "nn.functional.leaky_relu": (lambda x: np.where(x > 0, x, x * _SLOPE(x)), (-9, 9)),
    "nn.functional.hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (-4, 4)), "nn.functional.hardsigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, (-4, 4)),
    "nn.functional.softshrink": (lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), (-4, 4)),
    "fmod": (np.fmod, (-50, 50), (0.5, 5)), "remainder": (np.remainder, (-50, 50), (0.5, 5)),
}  # fmt: skip
_SLOPE = lambda x: x.dtype.type(0.01)  # noqa: E731  the slope is a number: a float64
_PI = L("3.14159265358979323846264338327950288")


def _incomplete_gamma(a, x, upper):
    """By the power series or the continued fraction, with 64 bits of mantissa: SciPy's is off by a hundred units and more."""
    a, x = a.astype(L), x.astype(L)
    product, b = np.ones_like(a), a + 1
    for _ in range(40):
        product, b = product * b, b + 1
    rest = (((1 / (1188 * b * b) - L(1) / 1680) / (b * b) + L(1) / 1260) / (b * b) - L(1) / 360) / (b * b) + L(1) / 12
    density = x**a * np.exp(b - x - rest / b) * product / (b**b * np.sqrt(2 * _PI / b))  # x^a e^-x / gamma(a + 1)
    term = total = np.ones_like(a)
    for k in range(1, 200):
        term = term * x / (a + k)
        total = total + term
    lower = density * total
    b = x + 1 - a
    c, d = np.full_like(b, 1e300), 1 / b
    fraction = d
    for k in range(1, 400):
        n, b = k * (a - k), b + 2
        d, c = 1 / (n * d + b), b + n / c
        fraction = fraction * (c * d)
    near, beyond = x < a + 1, density * a * fraction
    return np.where(near, 1 - lower, beyond) if upper else np.where(near, lower, 1 - beyond)


def _bessel_i(order, x, scaled):
    q = x.astype(L) ** 2 / 4
    term = total = (x.astype(L) / 2) ** order
    for k in range(1, 420):
        term = term * q / (k * (k + order))
        total = total + term
    return total * np.exp(-np.abs(x.astype(L))) if scaled else total


_whole = lambda f, n, x: f(n.astype(np.int64), x)  # noqa: E731
SPECIAL = {
    "erf": (sp.erf, (-5, 5)), "erfc": (sp.erfc, (-5, 9)), "erfinv": (sp.erfinv, (-0.999, 0.999)), "lgamma": (sp.gammaln, (0.1, 100)),
    "digamma": (sp.digamma, (0.1, 100)), "special.ndtri": (sp.ndtri, (1e-5, 1 - 1e-5)), "special.log_ndtr": (sp.log_ndtr, (-50, 8)),
    "special.erfcx": (sp.erfcx, (-9, 200)), "nn.functional.gelu": (lambda x: x * sp.ndtr(x), (-5, 20)), "i0": (lambda x: _bessel_i(0, x, False), (-80, 80)),
    "special.i0e": (lambda x: _bessel_i(0, x, True), (-300, 300)), "special.i1": (lambda x: _bessel_i(1, x, False), (-80, 80)),
    "special.i1e": (lambda x: _bessel_i(1, x, True), (-300, 300)),
    "special.bessel_j0": (sp.j0, (0, 50)), "special.bessel_j1": (sp.j1, (0, 50)), "special.bessel_y0": (sp.y0, (0.1, 50)),
    "special.bessel_y1": (sp.y1, (0.1, 50)), "special.modified_bessel_k0": (sp.k0, (1e-3, 80)), "special.modified_bessel_k1": (sp.k1, (1e-3, 80)),
    "special.scaled_modified_bessel_k0": (sp.k0e, (1e-3, 500)), "special.scaled_modified_bessel_k1": (sp.k1e, (1e-3, 500)),
    "special.chebyshev_polynomial_t": (lambda x, n: sp.eval_chebyt(n, x), (-1, 1), (0, 9, 1)),
    "special.chebyshev_polynomial_u": (lambda x, n: sp.eval_chebyu(n, x), (-1, 1), (0, 9, 1)),
    "special.chebyshev_polynomial_v": (lambda x, n: sp.eval_chebyu(n, x) - np.where(n > 0, sp.eval_chebyu(n - 1, x), 0), (-1, 1), (0, 9, 1)),
    "special.chebyshev_polynomial_w": (lambda x, n: sp.eval_chebyu(n, x) + np.where(n > 0, sp.eval_chebyu(n - 1, x), 0), (-1, 1), (0, 9, 1)),
    "special.hermite_polynomial_h": (lambda x, n: _whole(sp.eval_hermite, n, x), (-2, 2), (0, 9, 1)),
    "special.hermite_polynomial_he": (lambda x, n: _whole(sp.eval_hermitenorm, n, x), (-2, 2), (0, 9, 1)),
    "special.laguerre_polynomial_l": (lambda x, n: sp.eval_laguerre(n, x), (0, 9), (0, 9, 1)),
    "special.legendre_polynomial_p": (lambda x, n: sp.eval_legendre(n, x), (-1, 1), (0, 9, 1)),
    "special.entr": (sp.entr, (0.01, 9)), "special.zeta": (sp.zeta, (1.1, 20), (0.5, 20)), "igamma": (lambda a, x: _incomplete_gamma(a, x, False), (0.2, 20), (0.1, 20)),
    "igammac": (lambda a, x: _incomplete_gamma(a, x, True), (0.2, 20), (0.1, 20)), "xlogy": (sp.xlogy, (0, 9), (0.01, 9)), "special.xlog1py": (sp.xlog1py, (0, 9), (0.01, 9)),
}  # fmt: skip
CANCELS = (
    "add",
    "sub",
    "lerp",
    "addcmul",
    "addcdiv",
    "logaddexp",
    "logaddexp2",
    "lgamma",
    "digamma",
    "special.entr",
    "xlogy",
    "special.xlog1py",
    "nn.functional.gelu",
    "sinc",
) + tuple(n for n in SPECIAL if "bessel_j" in n or "bessel_y" in n or "polynomial" in n)


EXACT = (
    "abs neg sign floor ceil round trunc frac conj where clamp relu maximum minimum fmax fmin copysign nextafter "
    "eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite signbit floor_divide "
    "nn::hardtanh nn::hardshrink nn::threshold bitwise_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm"
).split()


def steps(got, wanted, at=None):
    """The largest distance in units of the last place, of `at` where that is larger."""
    kind = np.finfo(got.dtype)
    size = np.abs(wanted) if at is None else np.maximum(np.abs(wanted), at)
    unit = np.spacing(np.clip(size, kind.tiny, kind.max).astype(got.dtype)).astype(wanted.dtype)
    with np.errstate(all="ignore"):
        away = np.abs(got.astype(wanted.dtype) - wanted) / unit
    inside = np.isfinite(wanted) & (np.abs(wanted) < kind.max) & (np.abs(wanted) > kind.tiny)
    return float(np.max(np.where(inside, away, 0), initial=0))


def spread(rng, n, dtype, low, high, whole=0):
    """Half evenly, half by magnitude where that is wide."""
    even = rng.uniform(low, high, n)
    if whole:
        return np.rint(even).astype(dtype)
    if max(abs(low), abs(high)) < 50 and low > -50:
        return even.astype(dtype)
    top, small = max(abs(low), abs(high)), max(min(abs(low), abs(high)), 1e-3) if low > 0 else 1e-3
    sized = np.exp(rng.uniform(math.log(small), math.log(top), n)) * (1 if low >= 0 else rng.choice([-1, 1], n))
    return np.concatenate([even, np.clip(sized, low, high)]).astype(dtype)


def found(module, name):
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def pointwise(module, table, exact):
    told = {}
    for name, (reference, *ranges) in table.items():
        f = found(module, name)
        row = told[name] = []
        for dtype in (np.float32, np.float64):
            rng = np.random.default_rng(3)
            given = [spread(rng, 40_000, dtype, *r) for r in ranges]
            given = [g[: min(map(len, given))] for g in given]
            truth = L if exact and WIDE else np.float64
            with np.errstate(all="ignore"):
                wanted = np.asarray(reference(*[g.astype(truth) for g in given]), truth)
            try:
                got = np.asarray(f(*[module.from_numpy(g) for g in given]).numpy())
            except Exception:
                row.append(None)
                continue
            row.append(steps(got, wanted, 1 if name in CANCELS else None))
    return told


def reductions(module):
    """Errors in units of the last place of the sum of magnitudes: what cancels is no fault of the order."""
    told = {}

    def tell(name, f, reference, data, size):
        row = told[name] = []
        for dtype in (np.float32, np.float64):
            x = [d.astype(dtype) for d in data]
            wide = [d.astype(L) for d in x]
            got = np.asarray(f(*[module.from_numpy(d) for d in x]).numpy())
            row.append(steps(got, np.asarray(reference(*wide), L), np.asarray(size(*wide), L)))

    rng = np.random.default_rng(5)
    n = 1_000_000
    even, normal, near = rng.uniform(0, 1, n), rng.normal(0, 1, n), rng.uniform(0.999, 1.001, 10_000)
    far, a, b = normal + 1000, rng.normal(0, 1, (200, 1024)), rng.normal(0, 1, (1024, 200))
    m = module
    tell("sum of a million, uniform", m.sum, np.sum, [even], np.sum)
    tell("sum of a million, normal", m.sum, np.sum, [normal], lambda x: np.abs(x).sum())
    tell(
        "sum over rows of 1000",
        lambda x: m.sum(x.reshape(1000, 1000), 0),
        lambda x: x.reshape(1000, 1000).sum(0),
        [even],
        lambda x: x.reshape(1000, 1000).sum(0),
    )
    tell("mean", m.mean, np.mean, [even], np.mean)
    tell("prod of ten thousand near 1", m.prod, np.prod, [near], np.prod)
    tell("var", m.var, lambda x: np.var(x, ddof=1), [normal], lambda x: np.var(x))
    tell("var around 1000", m.var, lambda x: np.var(x, ddof=1), [far], lambda x: np.var(x))
    tell("std", m.std, lambda x: np.std(x, ddof=1), [normal], lambda x: np.std(x))
    tell("norm", m.linalg.norm, lambda x: np.sqrt((x * x).sum()), [normal], lambda x: np.sqrt((x * x).sum()))
    tell("dot", m.dot, lambda x, y: (x * y).sum(), [normal, even], lambda x, y: np.abs(x * y).sum())
    tell("mm, 1024 products each", m.mm, lambda x, y: x @ y, [a, b], lambda x, y: np.abs(x) @ np.abs(y))
    tell(
        "logsumexp",
        lambda x: m.logsumexp(x, 0),
        lambda x: np.log(np.exp(x).sum()),
        [normal],
        lambda x: np.log(np.exp(x).sum()),
    )
    tell("softmax", lambda x: m.softmax(x, 0), lambda x: np.exp(x) / np.exp(x).sum(), [normal[:10_000]], lambda x: 0)
    tell("cumsum of a million", lambda x: m.cumsum(x, 0), np.cumsum, [even], np.cumsum)
    return told


def measure(module):
    return {
        "version": f"{module.__name__} {module.__version__}",
        "elementary": pointwise(module, ELEMENTARY, True),
        "special": pointwise(module, SPECIAL, False),
        "sums": reductions(module),
    }


def shown(x):
    return "-" if x is None else f"{x:.2f}" if x < 10 else f"{x:.0f}" if x < 1e6 else f"{x:.0e}"


def table(ours, theirs, ranges, title, beside):
    head = f"| {title} | float32 | float64 |" + (f" {beside}, float32 | float64 |" if beside else "")
    lines = [head, "| --- |" + " --- |" * (4 if beside else 2)]
    for name, row in ours.items():
        what = f"`{name}`" if ranges else name
        if ranges:
            what += (
                " "
                + ", ".join(f"{low:g} … {high:g}" for low, high, *_ in ranges[name][1:])
                + (" (1)" if name in CANCELS else "")
            )
        cells = row + (theirs.get(name, [None, None]) if beside else [])
        lines.append(f"| {what} | " + " | ".join(map(shown, cells)) + " |")
    return lines


def page(ours, theirs):
    beside = theirs["version"].split("+")[0].replace("torch", "PyTorch") if theirs else ""
    get = lambda part: theirs[part] if theirs else {}  # noqa: E731
    return "\n".join([
        "# How exact results are", "",
        "The largest distance from the true result in units of the last place (ULP), over some 80,000 arguments from each range, on",
        "the processor. 0.5 is a result that is rounded rightly. Made by `bench/accuracy.py`; `tests/plugins/ulp_test.py` holds the limits,",
        "over every float32 there is.", "",
        "Elementary functions, beside those of 64 bits of mantissa:", "",
        *table(ours["elementary"], get("elementary"), ELEMENTARY, "function, arguments", beside), "",
        "Special functions, beside SciPy's in float64, whose own error is a part of the numbers for float64; the modified Bessel functions",
        "of the first kind and the incomplete gamma functions beside their series with 64 bits of mantissa:", "",
        *table(ours["special"], get("special"), SPECIAL, "function, arguments", beside), "",
        "(1) cancels somewhere: measured in units of 1 at least.", "",
        "Exact, as IEEE says or by choosing one of their arguments: " + ", ".join(f"`{n}`" for n in EXACT) + ".", "",
        "Sums and what is made of them, in units of the last place of the same sum over magnitudes:", "",
        *table(ours["sums"], get("sums"), None, "of a million elements unless said", beside), "",
    ])  # fmt: skip


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--module", default="adjoin")
    words.add_argument("--json", help="writes the numbers there")
    words.add_argument("--beside", help="such a file of another library, for the page")
    words.add_argument("--page", help="writes the page of the documentation")
    given = words.parse_args()
    ours = measure(importlib.import_module(given.module))
    if given.json:
        with open(given.json, "w") as file:
            json.dump(ours, file, indent=1)
    theirs = json.load(open(given.beside)) if given.beside else None
    text = page(ours, theirs)
    if given.page:
        with open(given.page, "w") as file:
            file.write(text)
    elif not given.json:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
