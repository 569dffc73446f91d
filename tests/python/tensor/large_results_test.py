"""tests/python/tensor/large_results_test.py: results that go past the caches are those of small calls, wherever rows begin."""

import os
import subprocess
import sys

import numpy as np
import pytest

import adjoin as T

# With two operands of it more than the last cache of most processors.
N = 3_000_000
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
# Where the operands and the result begin.
BEGIN = ((0, 0, 0), (1, 3, 5), (0, 7, 63), (16, 2, 64))


def values(n, seed):
    """Few different ones, so that many are equal, and NaN."""
    x = np.random.default_rng(seed).integers(-2, 3, n).astype(np.float64)
    x[::11] = np.nan
    return x


@pytest.mark.parametrize("dtype", ("float64", "float32", "bfloat16", "int32"))
def test_comparisons(dtype):
    n = N * 8 // getattr(T, dtype).itemsize
    left, right = values(n + 64, 1), values(n + 64, 2)
    if dtype == "int32":
        left, right = np.nan_to_num(left), np.nan_to_num(right)
    x, y = (T.from_numpy(v).to(getattr(T, dtype)) for v in (left, right))
    for (a, b, c), name in zip(BEGIN * 2, COMPARE + COMPARE[:2], strict=True):
        m = n - 9 if a else n
        out = T.full((n + 128,), 7, dtype=T.uint8).view(T.bool)
        getattr(T, name)(x[a : a + m], y[b : b + m], out=out[c : c + m])
        wanted = getattr(np, {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}.get(name, "greater"))
        if name == "ge":
            wanted = np.greater_equal
        got = out.view(T.uint8).numpy()
        assert np.array_equal(got[c : c + m], wanted(left[a : a + m], right[b : b + m]).astype(np.uint8)), name
        assert (got[:c] == 7).all() and (got[c + m :] == 7).all(), name


def test_choice_among_bools():
    n = 20_000_000
    rng = np.random.default_rng(3)
    c, x, y = (rng.integers(0, 2, n + 8).astype(bool) for _ in range(3))
    out = T.zeros(n + 8, dtype=T.bool)
    T.where(T.from_numpy(c)[1 : n + 1], T.from_numpy(x)[2 : n + 2], T.from_numpy(y)[:n], out=out[5 : n + 5])
    assert np.array_equal(out.numpy()[5 : n + 5], np.where(c[1 : n + 1], x[2 : n + 2], y[:n]))
    assert not out[:5].any() and not out[n + 5 :].any()


# Rows of few bytes, which no store past the caches may exceed.
@pytest.mark.parametrize("isa", ("avx512", "avx2", "base"))
def test_halves_on_every_instruction_set(isa):
    program = (
        "import adjoin as T\n"
        "x = T.full((8_000_003,), 1.5, dtype=T.float64)\n"
        "for kind in (T.bfloat16, T.float16):\n"
        "    for shift in range(3):\n"
        "        y = T.empty(x.numel() + 8, dtype=kind)[shift : shift + x.numel()].copy_(x)\n"
        "        z = (y * y)\n"
        "        assert bool((y == 1.5).all()) and bool((z == 2.25).all()) and (z > y).sum().item() == x.numel()\n"
        "    i = T.arange(9_000_001) % 3\n"
        "    assert T.equal(i.to(kind) > 1, i > 1)\n"
        "mask, ones = i > 1, T.tensor([0, 0, 1] * 3_000_000 + [0])\n"
        "for kind in (T.int32, T.int64):\n"
        "    assert T.equal(T.empty(9_000_003, dtype=kind)[2:].copy_(mask), ones.to(kind))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "ADJOIN_CPU_ISA": isa})


@pytest.mark.parametrize("value", (0.0, -0.0, 1.5))
def test_fill(value):
    n = 9_000_000
    x = T.full((n,), 7.0)
    x[3 : n - 5].fill_(value)
    got = x.numpy()
    assert (got[:3] == 7).all() and (got[n - 5 :] == 7).all()
    assert (got[3 : n - 5] == value).all() and (np.signbit(got[3 : n - 5]) == np.signbit(value)).all()
