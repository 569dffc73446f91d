"""tests/plugins/pool_gradients_test.py: gradients of max_pool2d, windows that tile the image and others; sums of bags
of narrow numbers."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

RNG = np.random.default_rng(17)
TILES = [(2, 2), (3, 3), ((1, 2), (1, 2)), ((4, 2), (4, 2))]  # kernel, stride
OTHERS = [(3, 2), (2, 3), (2, 1), ((2, 3), (2, 1))]


def image(shape, dtype, last):
    x = adjoin.tensor(np.round(RNG.standard_normal(shape) * 3)).to(getattr(adjoin, dtype))
    return x.to(memory_format=adjoin.channels_last) if last else x


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("window", TILES + OTHERS, ids=str)
def test_gradient_is_that_of_the_reference(window, dtype, last):
    for shape in (2, 1, 9, 7), (1, 3, 8, 38), (2, 19, 6, 6), (1, 16, 4, 17):
        x = image(shape, dtype, last)
        x[0, 0, 0, :3] = float("nan")
        x[0, 0, 1, 3:] = -float("inf")
        y, at = F.max_pool2d_with_indices(x, *window)
        want, places = F.max_pool2d_with_indices(x.to("reference"), *window)
        assert adjoin.equal(at, places.to("cpu")) and adjoin.equal(y.nan_to_num(7), want.to("cpu").nan_to_num(7))
        g = image(y.shape, dtype, last)
        made = adjoin.ops.max_pool2d_backward(g, at, shape)
        assert adjoin.equal(made, adjoin.ops.max_pool2d_backward(g.to("reference"), places, shape).to("cpu"))


@pytest.mark.parametrize("last", [True, False])
def test_places_anywhere(last):
    g = image((3, 5, 7, 9), "float32", last)
    at = adjoin.tensor(RNG.integers(0, 14 * 19, g.shape))
    at = at.to(memory_format=adjoin.channels_last) if last else at
    want = adjoin.zeros(3, 5, 14 * 19).scatter_add(2, at.reshape(3, 5, -1), g.reshape(3, 5, -1))
    assert adjoin.equal(adjoin.ops.max_pool2d_backward(g, at, (3, 5, 14, 19)).reshape(3, 5, -1), want)


@pytest.mark.parametrize("wrong", [-1, 14 * 18, 2**32 + 1, -(2**32)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [True, False])
def test_a_place_outside_is_refused(last, dtype, wrong):
    x = image((2, 4, 14, 18), dtype, last)
    y, at = F.max_pool2d_with_indices(x, 2)
    at[1, 2, 0, 0] = wrong
    with pytest.raises(IndexError, match=str(wrong)):
        adjoin.ops.max_pool2d_backward(y, at, x.shape)


def test_no_places():
    for shape, of in ((2, 3, 0, 0), (2, 3, 4, 4)), ((0, 3, 2, 2), (0, 3, 4, 4)), ((2, 0, 2, 2), (2, 0, 4, 4)):
        made = adjoin.ops.max_pool2d_backward(adjoin.ones(shape), adjoin.zeros(shape, dtype=adjoin.int64), of)
        assert made.shape == of and made.sum() == 0


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("width", [1, 3, 8, 17, 64, 70, 131])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_bags_of_narrow_numbers_are_those_of_wide_ones(dtype, width, mode):
    dtype = getattr(adjoin, dtype)
    table = adjoin.tensor(RNG.standard_normal((50, width)).astype("float32")).to(dtype)
    index = adjoin.tensor(RNG.integers(0, 50, 60))
    offsets = adjoin.tensor([0, 5, 5, 40, 59])
    for more in {}, {"padding_idx": 7}:
        made = F.embedding_bag(index, table, offsets, mode=mode, **more)
        assert made.dtype == dtype
        assert adjoin.equal(made, F.embedding_bag(index, table.float(), offsets, mode=mode, **more).to(dtype))
    if mode == "sum":
        by = adjoin.tensor(RNG.standard_normal(60).astype("float32")).to(dtype)
        made = F.embedding_bag(index, table, offsets, mode=mode, per_sample_weights=by)
        wide = F.embedding_bag(index, table.float(), offsets, mode=mode, per_sample_weights=by.float())
        assert adjoin.equal(made, wide.to(dtype))
