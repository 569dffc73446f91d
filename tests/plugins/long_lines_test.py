"""tests/plugins/long_lines_test.py: reading and writing at indices along lines that are worked on in pieces."""

import adjoin
import numpy as np
import pytest

RNG = np.random.default_rng(3)
SHAPES = [
    ((5000,), (4999,)),
    ((70_001,), (70_001,)),
    ((70_001,), (2049,)),
    ((9,), (6000,)),
    ((2, 70_000), (1, 4100)),
    ((3, 5000), (3, 5000)),
]
SHAPES += [((70_000, 2), (2048, 2)), ((3, 2, 5000), (2, 1, 3000))]
HOWS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def case(shape, index, dtype, dim):
    x, source = (RNG.integers(1, 3, s).astype(dtype) for s in (shape, index))
    return x, RNG.integers(0, shape[dim], index), source


def places(index, dim):
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("shape, index", SHAPES)
def test_gather_and_scatter(shape, index, dtype):
    dim = 0 if shape[-1] == 2 else len(shape) - 1
    x, at, source = case(shape, index, dtype, dim)
    t, i, s = adjoin.tensor(x), adjoin.tensor(at), adjoin.tensor(source)
    np.testing.assert_array_equal(t.gather(dim, i).numpy(), x[places(at, dim)])
    want = x.copy()
    want[places(at, dim)] = source  # of equal places the last one stays
    np.testing.assert_array_equal(t.scatter(dim, i, s).numpy(), want)
    wide = adjoin.stack([t, t], len(shape))[..., 1]
    np.testing.assert_array_equal(wide.scatter_(dim, i, s).numpy(), want)
    np.testing.assert_array_equal(wide.gather(dim, i).numpy(), want[places(at, dim)])
    want[places(at, dim)] = 5
    np.testing.assert_array_equal(t.scatter(dim, i, s).scatter_(dim, i, 5).numpy(), want)


@pytest.mark.parametrize("self", [True, False])
@pytest.mark.parametrize("how", [*HOWS, "mean"])
@pytest.mark.parametrize("shape, index", SHAPES)
def test_scatter_reduce(shape, index, how, self):
    dim = 0 if shape[-1] == 2 else len(shape) - 1
    x, at, source = case(shape, index, "float64", dim)
    want, count = x.copy(), np.full(shape, float(self))
    np.add.at(count, places(at, dim), 1)
    if not self:
        want[places(at, dim)] = {"prod": 1, "amax": -np.inf, "amin": np.inf}.get(how, 0)
    HOWS.get(how, np.add).at(want, places(at, dim), source)
    if how == "mean":
        want /= np.maximum(count, 1)
    got = adjoin.tensor(x).scatter_reduce(dim, adjoin.tensor(at), adjoin.tensor(source), how, include_self=self)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("bad", [-1, 70_000, 2**62, -(2**63)])
@pytest.mark.parametrize("place", [0, 2047, 2048, 69_999])
def test_an_index_outside_of_a_long_line(place, bad):
    x, i = adjoin.zeros(70_000), adjoin.arange(70_000)
    i[place] = bad
    for call in (
        lambda: x.gather(0, i),
        lambda: x.scatter(0, i, x),
        lambda: x.scatter_(0, i, 1.0),
        lambda: x.scatter_add(0, i, x),
        lambda: x.scatter_reduce(0, i, x, "mean", include_self=False),
    ):
        with pytest.raises(IndexError, match=rf"index {bad} .*70000"):
            call()
