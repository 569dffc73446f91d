"""tests/plugins/determinism_test.py: the same bits for any number of threads; the same numbers on any backend."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

THREADS = (1, 2, 3, 8)


@pytest.fixture(autouse=True)
def restore_threads():
    before = adjoin.get_num_threads()
    yield
    adjoin.set_num_threads(before)
    adjoin.use_deterministic_algorithms(False)


def bits(make):
    """The bytes of every tensor that make() returns, for each number of threads."""
    found = set()
    for n in THREADS:
        adjoin.set_num_threads(n)
        found.add(tuple(t.detach().numpy().tobytes() for t in make()))
    return found


def test_reductions():
    big, rows = adjoin.randn(1_000_003), adjoin.randn(3000, 37)
    folds = lambda: (
        big.sum(),
        big.var(),
        big.mean(),
        big.norm(),
        big.amax(),
        rows.sum(0),
        rows.sum(1),
    )
    assert len(bits(folds)) == 1
    assert (
        len(
            bits(
                lambda: (
                    rows.cumsum(0),
                    rows.argmax(1),
                    F.softmax(rows, 1),
                    F.layer_norm(rows, [37]),
                )
            )
        )
        == 1
    )


def test_convolution_and_its_gradients():
    x = adjoin.randn(9, 16, 20, 20, requires_grad=True)
    weight = adjoin.randn(24, 16, 3, 3, requires_grad=True)

    def train():
        x.grad = weight.grad = None
        y = F.conv2d(x, weight, padding=1)
        (y * y).sum().backward()
        return y, x.grad, weight.grad

    assert len(bits(train)) == 1


def test_products_in_the_deterministic_mode():
    a, b = adjoin.randn(700, 300), adjoin.randn(300, 650)
    adjoin.use_deterministic_algorithms(True)
    assert len(bits(lambda: (a @ b,))) == 1


def test_random_numbers():
    def draw(device):
        adjoin.manual_seed(3)
        made = [
            adjoin.rand(10_003, device=device),
            adjoin.rand(1001, dtype=adjoin.float64, device=device),
            adjoin.empty(999, device=device).uniform_(-2, 5.1),
            adjoin.empty(999, dtype=adjoin.float64, device=device).uniform_(-2, 5.1),
            adjoin.randint(-7, 99, (777,), device=device),
            adjoin.randn(100_003, device=device),
            adjoin.randn(100_003, dtype=adjoin.float64, device=device),
            adjoin.randn(1001, dtype=adjoin.bfloat16, device=device),
            adjoin.empty(1001, 3, device=device).t().normal_(-0.3, 1.7),
            F.dropout(adjoin.ones(1003, device=device), 0.3),
        ]
        return [t.to("cpu").to(adjoin.promote_types(t.dtype, adjoin.float32)) for t in made]

    assert len(bits(lambda: draw("cpu"))) == 1
    for ours, plain in zip(draw("cpu"), draw("reference")):
        assert adjoin.equal(ours, plain)


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64])
def test_normal_numbers_of_uniform_ones(dtype):
    """A uniform and a normal tensor of one seed come from the same words: the second is Box-Muller's of the first."""
    n = 200_000
    adjoin.manual_seed(5)
    u, v = adjoin.rand(n, dtype=dtype).numpy().astype(np.longdouble).reshape(-1, 2).T
    adjoin.manual_seed(5)
    found = adjoin.randn(n, dtype=dtype).numpy().reshape(-1, 2).T
    # The angle is reduced in turns, where that is exact, so even what is nearly zero has all its digits.
    quarter = np.rint(4 * v)
    rest = 8 * np.arctan(np.longdouble(1)) * (v - quarter / 4)
    waves = np.cos(rest), np.sin(rest), -np.cos(rest), -np.sin(rest)
    cosine, sine = (np.choose((k - quarter.astype(int)) % 4, waves) for k in (0, 1))
    radius = np.sqrt(-2 * np.log1p(-u))
    for values, exact in zip(found, (radius * cosine, radius * sine)):
        ulps = np.abs(values - exact) / np.spacing(np.abs(exact).astype(values.dtype))
        assert ulps.max() < 5, ulps.max()
    assert (found[1][v == 0] == 0).all()
