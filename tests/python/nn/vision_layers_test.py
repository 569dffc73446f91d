"""tests/python/nn/vision_layers_test.py: images resized, sampled, cut and pooled, against NumPy and closed forms."""

import itertools
import math

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn import functional as F

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape)


def near(actual, expected, tolerance=1e-6):
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def tensor(a):
    return adjoin.from_numpy(np.ascontiguousarray(a))


def keys(x):
    """Keys' cubic convolution with a slope of -0.75."""
    x, a = abs(x), -0.75
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def matrix(n, m, kind, align):
    """(m, n): what each of m outputs takes of n inputs."""
    out = np.zeros((m, n))
    for o in range(m):
        x = o * (n - 1) / max(m - 1, 1) if align else (o + 0.5) * n / m - 0.5
        if kind == "linear":
            x = max(x, 0)
        for i in range(math.floor(x) - 1, math.floor(x) + 3):
            w = max(0.0, 1 - abs(x - i)) if kind == "linear" else keys(x - i)
            out[o, min(max(i, 0), n - 1)] += w
    return out


@pytest.mark.parametrize("mode, align", list(itertools.product(["linear", "cubic"], [False, True])))
@pytest.mark.parametrize("size", [(7, 3), (2, 11), (1, 5)])
def test_resizing_is_two_matrices(mode, align, size):
    x = array(2, 3, 5, 6)
    expected = matrix(5, size[0], mode, align) @ x @ matrix(6, size[1], mode, align).T
    got = F.interpolate(
        tensor(x), size=size, mode={"linear": "bilinear", "cubic": "bicubic"}[mode], align_corners=align
    )
    near(got, expected)


def test_nearest_and_area():
    x = array(1, 2, 4, 6)
    near(F.interpolate(tensor(x), scale_factor=2), x.repeat(2, 2).repeat(2, 3))
    near(F.interpolate(tensor(x), size=(2, 3)), x[:, :, ::2, ::2])
    near(F.interpolate(tensor(x), size=(2, 3), mode="area"), x.reshape(1, 2, 2, 2, 3, 2).mean((3, 5)))
    pixels = tensor(np.arange(6, dtype=np.uint8).reshape(1, 1, 2, 3))
    assert F.interpolate(pixels, scale_factor=2).dtype == adjoin.uint8


def test_antialias_keeps_a_constant_and_the_mean():
    flat = F.interpolate(adjoin.full((1, 1, 9, 11), 3.0), size=(4, 5), mode="bicubic", antialias=True)
    near(flat, np.full((1, 1, 4, 5), 3.0))
    x = array(1, 1, 12, 12)
    small = F.interpolate(tensor(x), size=(1, 1), mode="area")
    near(small, x.mean((2, 3), keepdims=True))


def test_what_interpolate_refuses():
    x = adjoin.zeros(1, 1, 4, 4)
    for wrong in ({}, {"size": 2, "scale_factor": 2}, {"size": (2, 2, 2)}, {"size": 2, "align_corners": True}):
        with pytest.raises(ValueError, match="interpolate: "):
            F.interpolate(x, **wrong)
    with pytest.raises(NotImplementedError, match="trilinear"):
        F.interpolate(x, size=2, mode="trilinear")
    with pytest.raises(RuntimeError, match="greater than 0"):
        F.interpolate(x, size=0)
    with pytest.raises(RuntimeError):
        F.interpolate(x, scale_factor=1e30)


def test_grid_sample_reads_where_it_is_told():
    x = array(1, 2, 3, 4)
    theta = tensor(np.array([[[1.0, 0, 0], [0, 1, 0]]]))
    for align in (False, True):
        grid = F.affine_grid(theta, (1, 2, 3, 4), align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            near(F.grid_sample(tensor(x), grid, mode=mode, align_corners=align), x)
    far = adjoin.full((1, 1, 1, 2), 5.0, dtype=adjoin.float64)
    near(F.grid_sample(tensor(x), far, align_corners=False)[0, :, 0, 0], np.zeros(2))
    near(F.grid_sample(tensor(x), far, padding_mode="border", align_corners=False)[0, :, 0, 0], x[0, :, -1, -1])
    for nowhere in (math.nan, math.inf, -1e30):
        got = F.grid_sample(tensor(x), far * 0 + nowhere, align_corners=False)
        near(got[0, :, 0, 0], np.zeros(2))


def test_what_grid_sample_refuses():
    x, grid = adjoin.zeros(1, 1, 3, 3), adjoin.zeros(1, 2, 2, 2)
    for wrong in (grid[0], grid.expand(2, 2, 2, 2), grid[..., :1], grid.double()):
        with pytest.raises(RuntimeError, match="grid_sample: "):
            F.grid_sample(x, wrong)
    with pytest.raises(ValueError):
        F.grid_sample(x, grid, mode="what")


def test_patches_and_back():
    x = array(2, 3, 5, 6)
    columns = F.unfold(tensor(x), (2, 3), stride=(1, 1))
    near(columns[:, :, 5], x[:, :, 1:3, 1:4].reshape(2, -1))
    counts = F.fold(F.unfold(adjoin.ones(1, 1, 5, 6), (2, 3)), (5, 6), (2, 3))
    near(F.fold(columns, (5, 6), (2, 3)) / counts, x)
    with pytest.raises(RuntimeError, match="fold: "):
        F.fold(columns, (5, 5), (2, 3))


def test_shuffles():
    x = array(2, 12, 2, 3)
    big = F.pixel_shuffle(tensor(x), 2)
    near(big, x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 4, 6))
    near(F.pixel_unshuffle(big, 2), x)
    near(F.channel_shuffle(tensor(x), 3), x.reshape(2, 3, 4, 2, 3).swapaxes(1, 2).reshape(x.shape))


def test_pools_of_volumes():
    x = array(2, 3, 4, 6, 8)
    blocks = x.reshape(2, 3, 2, 2, 3, 2, 4, 2)
    near(F.max_pool3d(tensor(x), 2), blocks.max((3, 5, 7)))
    near(F.avg_pool3d(tensor(x), 2), blocks.mean((3, 5, 7)))
    near(F.adaptive_avg_pool3d(tensor(x), (2, 3, 4)), blocks.mean((3, 5, 7)))
    near(F.lp_pool3d(tensor(abs(x)), 3.0, 2), (abs(blocks) ** 3).sum((3, 5, 7)) ** (1 / 3))
    out, at = F.max_pool3d(tensor(x), 2, return_indices=True)
    back = F.max_unpool3d(out, at, 2)
    near(F.max_pool3d(back.clamp(min=0), 2), np.maximum(blocks.max((3, 5, 7)), 0))
    near(tensor(x).flatten(2).gather(2, at.flatten(2)), out.flatten(2).numpy())
    nan = x.copy()
    nan[0, 0, 0, 0, 0] = np.nan
    assert np.isnan(F.max_pool3d(tensor(nan), 2)[0, 0, 0, 0, 0].item())


def test_fractional_pool_covers_the_image():
    layer = nn.FractionalMaxPool2d(2, output_ratio=0.6, return_indices=True)
    x = adjoin.rand(2, 3, 10, 15)
    out, at = layer(x)
    assert out.shape == (2, 3, 6, 9) and adjoin.equal(x.flatten(2).gather(2, at.flatten(2)).reshape(out.shape), out)
    with pytest.raises(ValueError):
        nn.FractionalMaxPool2d(2)


def test_local_response_norm():
    x = array(2, 5, 3)
    padded = np.pad(x**2, ((0, 0), (1, 1), (0, 0)))
    mean = sum(padded[:, k : k + 5] for k in range(3)) / 3
    near(nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2.0)(tensor(x)), x / (2 + 0.5 * mean) ** 0.6)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_same_bits_for_any_number_of_threads(threads):
    x, grid = adjoin.rand(2, 5, 70, 66), adjoin.rand(2, 40, 40, 2) * 2 - 1
    volume = adjoin.rand(3, 2, 9, 33, 17)
    jobs = [
        lambda: F.interpolate(x, size=(150, 31), mode="bicubic"),
        lambda: F.grid_sample(x, grid, align_corners=False),
        lambda: F.avg_pool3d(volume, 3, 2, 1),
        lambda: F.fold(F.unfold(x, 3), (70, 66), 3),
    ]
    before = adjoin.get_num_threads()
    first = [job() for job in jobs]
    try:
        adjoin.set_num_threads(threads)
        assert all(adjoin.equal(a, job()) for a, job in zip(first, jobs, strict=True))
    finally:
        adjoin.set_num_threads(before)


@pytest.mark.parametrize("layer", [nn.CircularPad1d(1), nn.CircularPad2d(1), nn.CircularPad3d(1)], ids=str)
def test_circular_borders_of_another_count_of_dimensions(layer):
    for dims in {1, 2, 3, 4, 5} - set(range(layer._sides // 2 + 1, layer._sides // 2 + 3)):
        with pytest.raises(ValueError, match=f"got {dims}D input"):
            layer(adjoin.zeros((2,) * dims))
    assert layer(adjoin.zeros((2,) * (layer._sides // 2 + 1))).shape[-1] == 4


def test_samples_of_a_batch_serve_an_image_without_one():
    samples, image = adjoin.rand(2, 4, 3), adjoin.rand(4, 5, 5, 5)
    pool = nn.FractionalMaxPool3d(2, output_size=3, _random_samples=samples)
    assert pool(image).equal(pool(adjoin.stack([image, image]))[0])


def test_batch_statistics_need_a_positive_eps():
    layer = nn.BatchNorm1d(2, eps=0.0)
    with pytest.raises(ValueError, match="eps must be positive"):
        layer(adjoin.rand(3, 2))
    layer.eval()(adjoin.rand(3, 2))


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.bfloat16])
def test_maxima_of_volumes_lie_as_the_volumes_do(dtype):
    last = adjoin.channels_last_3d
    x = adjoin.randn(2, 3, 5, 6, 7).to(dtype)
    turned = x.contiguous(memory_format=last).requires_grad_()
    for found, wanted in zip(
        F.max_pool3d(turned, 3, 2, return_indices=True), F.max_pool3d(x, 3, 2, return_indices=True), strict=True
    ):
        assert found.is_contiguous(memory_format=last) and wanted.is_contiguous() and found.equal(wanted)
    single = turned.detach()[0]  # without a batch
    out, places = F.max_pool3d(single, 3, 2, return_indices=True)
    assert out.unsqueeze(0).is_contiguous(memory_format=last) and places.unsqueeze(0).is_contiguous(memory_format=last)
    assert out.equal(F.max_pool3d(x, 3, 2)[0])
    F.max_pool3d(turned, 3, 2).sum().backward()
    assert turned.grad.is_contiguous(memory_format=last)


def test_adaptive_pools_take_no_whole_numbers():
    for function, shape in (
        (F.adaptive_max_pool1d, (2, 4)), (F.adaptive_max_pool2d, (2, 4, 4)), (F.adaptive_max_pool3d, (2, 4, 4, 4)),
        (F.adaptive_avg_pool2d, (2, 4, 4)), (F.adaptive_avg_pool3d, (2, 4, 4, 4)),
    ):  # fmt: skip
        for dtype in (adjoin.int64, adjoin.uint8):
            with pytest.raises(NotImplementedError, match="not implemented for"):
                function(adjoin.ones(shape, dtype=dtype), 2)


def test_fractional_pools_say_what_does_not_fit():
    x = adjoin.randn(2, 7, 7)
    for words, more in (
        ("kernel_size must either", {"kernel_size": ()}), ("kernel_size must either", {"kernel_size": (1,)}),
        ("output_size must either", {"output_size": (3,)}), ("output_size must either", {"output_size": ()}),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            F.fractional_max_pool2d(x, **({"kernel_size": 2, "output_size": 3} | more))
    for dims in (2, 3):
        pool = getattr(F, f"fractional_max_pool{dims}d")
        with pytest.raises(RuntimeError, match="Expected input"):
            pool(adjoin.ones(1, 0, *[9] * dims), 3, output_ratio=0.5)
        assert pool(adjoin.ones(0, 2, *[8] * dims), 3, output_ratio=0.5).shape == (0, 2, *[4] * dims)


def test_windows_of_one_element_have_no_limit_of_size():
    """Others are cut from tables, which end at 2^24."""
    x = adjoin.ones(1, 1, 2**24 + 1, 1, 1, dtype=adjoin.float16)
    assert F.avg_pool3d(x, 1, stride=1).shape == x.shape and F.avg_pool3d(x[:, :, :4], (2, 1, 1)).tolist() == [
        [[[[1]], [[1]]]]
    ]
    with pytest.raises(RuntimeError, match="at most 2\\^24"):
        F.avg_pool3d(x, (2, 1, 1))
