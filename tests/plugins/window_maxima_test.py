"""tests/plugins/window_maxima_test.py: maxima of windows without their places are those with them, and NumPy's."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

RNG = np.random.default_rng(11)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64")

# shape, kernel, stride, padding, dilation
CASES = [
    ((2, 3, 101), 2, 2, 0, 1),
    ((2, 3, 96), 3, 3, 0, 1),
    ((3, 200), 4, 4, 1, 1),
    ((3, 200), 5, 7, 2, 1),
    ((2, 2, 150), 3, 1, 1, 2),
    ((2, 2, 150), 3, 2, 1, 3),
    ((1, 4, 400), 65, 1, 32, 1),
    ((4, 5, 7), 7, 7, 3, 1),
    ((5, 1, 1), 1, 1, 0, 1),
    ((3, 128), 5, 5, 0, 1),
    ((2, 64, 128), 7, 5, 3, 1),
    ((2, 301), 2, 6, 1, 1),
    ((2, 400), 3, 6, 1, 4),
    ((2, 300), 17, 9, 8, 1),
    ((2, 5000), 33, 1, 16, 1),
    ((1, 6001), 40, 3, 7, 1),
    ((2, 3000), 100, 10, 50, 1),
    ((2, 700), 40, 33, 20, 1),
    ((1, 9000), 4000, 2, 2000, 1),
    ((2, 3, 20, 37), 3, 2, 1, 1),
    ((2, 3, 20, 70), (2, 3), (1, 1), (1, 1), (1, 2)),
    ((3, 9, 40), (3, 5), (3, 5), (0, 2), 1),
    ((2, 2, 6, 7, 45), 3, 2, 1, 1),
    ((2, 5, 6, 37), (2, 1, 3), (1, 2, 3), (1, 0, 1), (1, 1, 2)),
]


def filled(shape, dtype):
    if dtype.startswith(("float", "bfloat")):
        return adjoin.tensor(np.round(RNG.standard_normal(shape) * 9)).to(getattr(adjoin, dtype))
    low = 0 if dtype == "uint8" else -100
    return adjoin.tensor(RNG.integers(low, 100, shape)).to(getattr(adjoin, dtype))


def pools(x, dims):
    return getattr(F, f"max_pool{dims}d"), getattr(F, f"max_pool{dims}d_with_indices")


def dims_of(case):
    shape, kernel = case[:2]
    return len(kernel) if isinstance(kernel, tuple) else 3 if len(shape) == 5 else 2 if len(shape) == 4 else 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_as_with_places(case, dtype):
    shape, *window = case
    alone, with_places = pools(None, dims_of(case))
    for ceil in (False, True):
        x = filled(shape, dtype)
        want = with_places(x, *window, ceil)[0]
        assert adjoin.equal(alone(x, *window, ceil), want)
        wide = filled((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2].copy_(x)  # not dense
        assert adjoin.equal(alone(wide, *window, ceil), want)
        assert adjoin.equal(alone(x.to("reference"), *window, ceil).to("cpu"), want)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nan_stays(case):
    shape, *window = case
    alone, with_places = pools(None, dims_of(case))
    x = filled(shape, "float32")
    x[adjoin.tensor(RNG.random(shape) < 0.05)] = float("nan")
    got, want = alone(x, *window), with_places(x, *window)[0]
    assert np.array_equal(got.numpy(), want.numpy(), equal_nan=True)
    assert window[0] == 1 or np.isnan(got.numpy()).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers_without_end(case, dtype):
    shape, *window = case
    alone, with_places = pools(None, dims_of(case))
    for odd in ("inf", "-inf"), ("-inf",), ("inf", "-inf", "nan"):
        x = filled(shape, dtype).reshape(-1)
        for value in odd:
            x[adjoin.tensor(RNG.integers(0, x.numel(), x.numel() // 9 + 1))] = float(value)
        x = x.reshape(shape)
        want = with_places(x, *window)[0]
        assert adjoin.allclose(alone(x, *window), want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [1, 2])
def test_windows_in_the_padding_alone_have_the_least_number(dtype, dims):
    dtype = getattr(adjoin, dtype)
    least = -float("inf") if dtype.is_floating_point else adjoin.iinfo(dtype).min
    alone, with_places = pools(None, dims)
    for device in ("cpu", "reference", "emulated"):
        x = adjoin.ones(1, *[2] * dims, dtype=dtype, device=device)
        best, places = with_places(x, 2, 1, 1, 3)
        assert best.flatten().tolist() == alone(x, 2, 1, 1, 3).flatten().tolist() == [least]
        assert places.flatten().tolist() == [-1]


def test_numpy_by_windows():
    x = RNG.standard_normal((4, 60))
    want = np.lib.stride_tricks.sliding_window_view(x, 5, axis=1)[:, ::3].max(-1)
    assert np.array_equal(F.max_pool1d(adjoin.tensor(x), 5, 3).numpy(), want)
    assert F.max_pool1d(adjoin.full((1, 9), -float("inf")), 3).tolist() == [[-float("inf")] * 3]


@pytest.mark.parametrize("channels", [1, 3, 16, 37])
def test_channels_last(channels):
    x = adjoin.randn(2, channels, 9, 11)
    x[0, 0, 3, 4] = float("nan")
    for window in ((2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2)):
        got = F.max_pool2d(x.to(memory_format=adjoin.channels_last), *window)
        assert np.array_equal(got.numpy(), F.max_pool2d(x, *window).numpy(), equal_nan=True)


def test_gradient_goes_by_places():
    x = adjoin.randn(2, 3, 24, dtype=adjoin.float64, requires_grad=True)
    assert adjoin.autograd.gradcheck(lambda t: F.max_pool1d(t, 3, 2, 1), [x])
    assert adjoin.autograd.gradgradcheck(lambda t: F.max_pool1d(t, 3, 2, 1), [x])


def test_empty_and_wrong():
    assert F.max_pool1d(adjoin.empty(0, 3, 8), 2).shape == (0, 3, 4)
    assert F.max_pool3d(adjoin.empty(0, 2, 4, 4, 4), 2).shape == (0, 2, 2, 2, 2)
    for call, text in (
        (lambda: F.max_pool1d(adjoin.ones(8), 2), "Expected 2D or 3D"),
        (lambda: F.max_pool1d(adjoin.ones(1, 8), 9), "too large for input"),
        (lambda: F.max_pool2d(adjoin.ones(1, 8, 8), 2, padding=2), "at most half"),
        (lambda: F.max_pool3d(adjoin.ones(1, 8, 8, 8), (2, 2)), "has 2 values; 1 or 3 are wanted"),
        (lambda: F.max_pool1d(adjoin.ones(1, 8), 2, 0), "stride should not be zero"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
