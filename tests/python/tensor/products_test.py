"""tests/python/tensor/products_test.py: matrix products over odd shapes, layouts and types, beside NumPy's in float64."""

import os
import random
import subprocess
import sys

import adjoin
import numpy
import pytest

SIZES = (1, 2, 3, 7, 8, 13, 15, 16, 17, 31, 33, 48, 64, 65, 95, 130)
SHAPES = [
    (1, 1, 1),
    (1, 300, 700),
    (300, 1, 700),
    (5, 400, 33),
    (400, 5, 33),
    (8, 1024, 128),
    (129, 257, 65),
    (64, 10, 512),
    (14, 32, 1030),
    (33, 47, 4500),
    (200, 300, 16),
    (97, 96, 1),
    (1, 100, 4200),
    (2, 5000, 35),
    (3, 77, 129),
    (4, 1000, 50),
    (6, 1025, 77),
    (11, 600, 300),
    (16, 301, 97),
    (600, 9, 300),
]
# The spacing of numbers near 1 in the type of the sums, and in the type of the result.
ERRORS = {
    "float64": (2**-52, 2**-52),
    "float32": (2**-23, 2**-23),
    "float16": (2**-23, 2**-10),
    "bfloat16": (2**-23, 2**-7),
}


def random_shapes(count, seed):
    choose = random.Random(seed)
    return [tuple(choose.choice(SIZES) for _ in range(3)) for _ in range(count)]


def matrix(rows, columns, dtype, turned=False, gap=0):
    """Values of the dtype as float64, and the tensor: turned and with a gap between rows if asked."""
    shape = (columns, rows + gap) if turned else (rows, columns + gap)
    whole = adjoin.randn(*shape).to(dtype)
    part = whole[:, :rows].t() if turned else whole[:, :columns]
    return part.to(adjoin.float64).numpy(), part


def assert_product(got, wanted, dtype, k):
    difference = abs(got.to(adjoin.float64).numpy() - wanted)
    of_sums, of_result = ERRORS[str(dtype).split(".")[-1]]
    limit = of_sums * (8 + 2 * k) + of_result * abs(wanted)  # products of normal numbers
    assert got.dtype == dtype
    assert (difference <= limit).all(), (difference - limit).max()


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize(
    ("turn_a", "turn_b", "gap"),
    [(False, False, 0), (False, True, 3), (True, False, 5), (True, True, 0)],
)
def test_mm_over_odd_shapes(name, turn_a, turn_b, gap):
    adjoin.manual_seed(3)
    dtype = getattr(adjoin, name)
    for m, n, k in SHAPES + random_shapes(40, name + str(gap)):
        x, a = matrix(m, k, dtype, turn_a, gap)
        y, b = matrix(k, n, dtype, turn_b, gap)
        assert_product(a @ b, x @ y, dtype, k)


@pytest.mark.parametrize("name", ERRORS)
def test_linear_and_its_gradients(name):
    adjoin.manual_seed(4)
    dtype = getattr(adjoin, name)
    for m, n, k in SHAPES + random_shapes(15, name):
        x, a = matrix(m, k, dtype)
        w, weight = matrix(n, k, dtype)
        g, grad = matrix(m, n, dtype)
        bias = adjoin.randn(n).to(dtype)
        plus = bias.to(adjoin.float64).numpy()
        a, weight = a.detach().requires_grad_(), weight.detach().requires_grad_()
        out = adjoin.nn.functional.linear(a, weight, bias)
        assert_product(out.detach(), x @ w.T + plus, dtype, k)
        out.backward(grad)
        assert_product(a.grad, g @ w, dtype, n)
        assert_product(weight.grad, g.T @ x, dtype, m)


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 1), (1, 0.25), (2, 0)])
def test_addmm_scales_and_adds(name, alpha, beta):
    adjoin.manual_seed(5)
    dtype = getattr(adjoin, name)
    for m, n, k in SHAPES:
        x, a = matrix(m, k, dtype)
        y, b = matrix(k, n, dtype, True)
        for shape in ((m, n), (n,), (m, 1), (1, n), ()):
            c = adjoin.randn(shape).to(dtype)
            wanted = beta * c.to(adjoin.float64).numpy() + alpha * (x @ y)
            got = adjoin.addmm(c, a, b, alpha=alpha, beta=beta)
            assert_product(got, wanted, dtype, k * max(1, alpha))


@pytest.mark.parametrize("name", ERRORS)
def test_stacks(name):
    adjoin.manual_seed(6)
    dtype = getattr(adjoin, name)
    for batch, m, n, k in ((1, 5, 6, 7), (3, 64, 64, 64), (17, 33, 9, 20), (2, 300, 200, 40)):
        a, b = adjoin.randn(batch, m, k).to(dtype), adjoin.randn(batch, n, k).to(dtype)
        x, y = a.to(adjoin.float64).numpy(), b.to(adjoin.float64).numpy()
        assert_product(adjoin.bmm(a, b.transpose(1, 2)), x @ y.swapaxes(1, 2), dtype, k)
        one = b[:1].transpose(1, 2).expand(batch, k, n)
        assert_product(adjoin.bmm(a, one), x @ y[:1].swapaxes(1, 2), dtype, k)


@pytest.mark.parametrize("name", ERRORS)
def test_nothing_to_multiply(name):
    dtype = getattr(adjoin, name)
    assert (adjoin.zeros(3, 0, dtype=dtype) @ adjoin.zeros(0, 4, dtype=dtype) == 0).all()
    assert (adjoin.zeros(0, 3, dtype=dtype) @ adjoin.zeros(3, 4, dtype=dtype)).shape == (0, 4)
    bias = adjoin.randn(4).to(dtype)
    x, w = adjoin.zeros(3, 0, dtype=dtype), adjoin.zeros(4, 0, dtype=dtype)
    out = adjoin.nn.functional.linear(x, w, bias)
    assert (out == bias.expand(3, 4)).all()
    c = adjoin.ones(3, 4, dtype=dtype)
    assert (adjoin.addmm(c, x, w.t(), beta=0.5) == 0.5).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_products_are_rounded_once(name):
    dtype = getattr(adjoin, name)
    adjoin.manual_seed(7)
    a = adjoin.randint(-8, 9, (65, 200)).to(dtype)
    b = adjoin.randint(-8, 9, (200, 33)).to(dtype)
    exact = a.to(adjoin.float32) @ b.to(adjoin.float32)
    assert (a @ b == exact.to(dtype)).all()


def test_what_is_not_finite_stays_where_it_belongs():
    for dtype in (adjoin.float32, adjoin.float64, adjoin.bfloat16, adjoin.float16):
        for k in (5, 64, 129):
            a, b = adjoin.ones(20, k, dtype=dtype), adjoin.ones(k, 40, dtype=dtype)
            a[3, k - 1] = float("nan")
            b[0, 7] = float("inf")
            out = (a @ b).to(adjoin.float32).numpy()
            wanted = a.to(adjoin.float32).numpy() @ b.to(adjoin.float32).numpy()
            assert numpy.array_equal(out, wanted, equal_nan=True)


def test_the_same_bits_for_any_number_of_threads():
    before = adjoin.get_num_threads()
    adjoin.manual_seed(8)
    try:
        adjoin.use_deterministic_algorithms(True)
        for dtype in (adjoin.float32, adjoin.float64, adjoin.bfloat16):
            for m, n, k in ((33, 1000, 77), (700, 300, 600), (1, 3000, 900), (900, 3, 2000)):
                for turned in (False, True):
                    a = matrix(m, k, dtype)[1]
                    b = matrix(k, n, dtype, turned)[1]
                    results = []
                    for threads in (1, 2, 3):
                        adjoin.set_num_threads(threads)
                        results.append((a @ b).to(adjoin.float64).numpy())
                    assert numpy.array_equal(results[0], results[1])
                    assert numpy.array_equal(results[0], results[2])
    finally:
        adjoin.use_deterministic_algorithms(False)
        adjoin.set_num_threads(before)


@pytest.mark.parametrize(
    "settings",
    [
        {"ADJOIN_CPU_ISA": "avx2"},
        {"ADJOIN_CPU_ISA": "base"},
        {"ADJOIN_BLAS": "own"},
        {"ADJOIN_BLAS": "onednn"},
        {"ADJOIN_BLAS": "openblas"},
    ],
    ids=lambda s: "=".join(*s.items()),
)
def test_the_same_with_other_code(settings):
    chosen = ["test_mm", "test_linear", "test_stacks", "test_addmm", "test_nothing", "rounded_once"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", __file__, "-k", " or ".join(chosen)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **settings})
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_size_of_one_is_summed_with_any():
    one, two = adjoin.ones(1, 1, 3), adjoin.arange(12).reshape(2, 2, 3).float()
    for a, b in ((one, two), (two, one)):
        wanted = adjoin.tensordot(a.expand(2, 2, 3), b.expand(2, 2, 3), ([1, 0], [1, 0]))
        assert adjoin.tensordot(a, b, ([1, 0], [1, 0])).equal(wanted)
    assert adjoin.tensordot(one.short(), two.short(), ([0], [0])).dtype is adjoin.int16
