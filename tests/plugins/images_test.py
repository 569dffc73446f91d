"""tests/plugins/images_test.py: convolution, pooling and batch norm of the cpu beside the reference backend, in both layouts of images."""

import adjoin
import adjoin.nn.functional as F
import pytest

LAYOUTS = (adjoin.contiguous_format, adjoin.channels_last)

# input, weight, stride, padding, dilation, groups
CONVOLUTIONS = [
    ((2, 3, 9, 11), (5, 3, 3, 3), 1, 1, 1, 1),
    ((3, 16, 13, 13), (32, 16, 3, 3), 2, 1, 1, 1),
    ((2, 64, 9, 9), (32, 64, 1, 1), 1, 0, 1, 1),
    ((2, 17, 7, 7), (33, 17, 1, 1), 2, 0, 1, 1),
    ((1, 3, 33, 31), (16, 3, 7, 7), 2, 3, 1, 1),
    ((1, 32, 9, 10), (64, 32, 5, 5), 1, 2, 1, 1),
    ((2, 6, 9, 9), (4, 6, 2, 3), (1, 2), (1, 0), (2, 1), 1),
    ((2, 12, 9, 9), (18, 4, 3, 3), 1, 1, 1, 3),
    ((3, 64, 6, 6), (64, 32, 3, 3), 1, 1, 1, 2),
    ((2, 8, 5, 5), (8, 8, 2, 2), 4, 0, 1, 1),
    ((4, 24, 10, 12), (24, 1, 3, 3), 1, 1, 1, 24),
    ((2, 8, 20, 37), (8, 1, 3, 3), 2, 1, 1, 8),
    ((2, 5, 11, 9), (5, 1, 2, 3), (3, 2), (1, 0), (2, 1), 5),
    ((2, 5, 11, 9), (5, 1, 5, 5), 1, 2, 1, 5),
    ((2, 256, 3, 3), (256, 256, 3, 3), 1, 1, 1, 1),
    ((0, 8, 5, 5), (8, 8, 3, 3), 1, 1, 1, 1),
    ((3, 160, 5, 4), (200, 160, 3, 3), 2, 2, 2, 1),
    ((3, 128, 6, 6), (256, 128, 3, 3), 1, 1, 1, 1),
]


def images(shape, layout, dtype=adjoin.float32):
    return adjoin.randn(*shape, dtype=dtype).to(memory_format=layout)


def same_on_the_reference(f, inputs, tolerance):
    """f(*inputs) and its gradients, here and there; the gradient that comes in is in either layout."""
    found = []
    for device in ("cpu", "reference"):
        mine = [t.detach().to(device).requires_grad_(True) for t in inputs]
        out = f(*mine)
        adjoin.manual_seed(1)
        g = adjoin.randn(*out.shape, dtype=out.dtype)
        if device == "cpu" and out.ndim == 4:
            g = g.to(memory_format=LAYOUTS[out.numel() % 2])
        out.backward(g.to(device))
        found.append([t.to("cpu") for t in [out.detach(), *(m.grad for m in mine)]])
    for here, there in zip(*found, strict=True):
        scale = max(1.0, float(there.abs().max())) if there.numel() else 1.0
        adjoin.testing.assert_close(here, there, rtol=0, atol=tolerance * scale)


TOLERANCE = {adjoin.float64: 2e-5, adjoin.float32: 2e-5, adjoin.bfloat16: 8e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution(case, layout, dtype):
    x, w, stride, padding, dilation, groups = case
    inputs = [images(x, layout, dtype), images(w, layout, dtype), adjoin.randn(w[0], dtype=dtype)]
    f = lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups)
    same_on_the_reference(f, inputs, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CONVOLUTIONS[:14], ids=str)
def test_transposed_convolution(case, layout, dtype):
    x, w, stride, padding, dilation, groups = case
    bias = adjoin.randn(w[1] * groups, dtype=dtype)
    inputs = [images((x[0], w[0], *x[2:]), layout, dtype), images(w, layout, dtype), bias]
    f = lambda x, w, b: F.conv_transpose2d(x, w, b, stride, padding, 0, groups, dilation)
    same_on_the_reference(f, inputs, 2 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.bfloat16])
@pytest.mark.parametrize("shape", [((3, 6, 50), (8, 6, 5), 1), ((3, 6, 50), (6, 1, 3), 6)], ids=str)
def test_convolution_of_lines(shape, dtype):
    x, w, groups = shape
    f = lambda x, w: F.conv1d(x, w, None, 2, 1, 1, groups)
    inputs = [adjoin.randn(*x, dtype=dtype), adjoin.randn(*w, dtype=dtype)]
    same_on_the_reference(f, inputs, TOLERANCE[dtype])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_convolution_on_threads(threads):
    before = adjoin.get_num_threads()
    adjoin.set_num_threads(threads)
    try:
        for case in CONVOLUTIONS[:12]:
            test_convolution(case, LAYOUTS[0], adjoin.float32)
            test_convolution(case, LAYOUTS[0], adjoin.bfloat16)
    finally:
        adjoin.set_num_threads(before)


# kernel, stride, padding, ceil_mode
WINDOWS = [
    (3, 2, 1, False),
    (2, 2, 0, True),
    (3, 1, 1, False),
    (3, 3, 1, True),
    ((3, 2), (1, 2), (1, 1), False),
    (2, 5, 1, True),
]
POOLED = [(2, 3, 7, 9), (2, 17, 16, 33), (2, 4, 1, 1), (3, 1, 40, 70), (2, 64, 8, 8)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_pools(window, layout):
    kernel, stride, padding, ceil = window
    for shape in POOLED:
        if min(shape[2:]) + 2 * (padding if isinstance(padding, int) else 1) < 3:
            continue
        for dtype in (adjoin.float32, adjoin.float64):
            x = [images(shape, layout, dtype)]
            same_on_the_reference(lambda x: F.max_pool2d(x, kernel, stride, padding, 1, ceil), x, 1e-6)
            same_on_the_reference(lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil), x, 1e-5)


def test_maxima_of_equal_and_strange_values():
    """The first of equal values, the last NaN, and -inf where nothing else is."""
    for layout in LAYOUTS:
        x = (adjoin.randn(2, 5, 21, 37) * 2).round() / 2
        x[adjoin.rand(*x.shape) < 0.03] = float("nan")
        x[adjoin.rand(*x.shape) < 0.3] = float("-inf")
        for window in WINDOWS:
            here = F.max_pool2d_with_indices(x.to(memory_format=layout), *window[:3], 1, window[3])
            there = F.max_pool2d_with_indices(x.to("reference"), *window[:3], 1, window[3])
            for a, b in zip(here, there, strict=True):
                adjoin.testing.assert_close(a, b.to("cpu"), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("size", [1, (2, 3)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_adaptive_average(layout, size):
    for shape in POOLED:
        same_on_the_reference(lambda x: F.adaptive_avg_pool2d(x, size), [images(shape, layout)], 1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_norm(layout, training):
    for shape in [(2, 3, 7, 9), (3, 64, 8, 8), (2, 17, 70, 70), (5, 512, 2, 2), (300, 33, 1, 1)]:
        for dtype in (adjoin.float32, adjoin.float64):
            n = shape[1]

            def f(x, w, b):
                mean, var = (adjoin.ones(n, dtype=dtype).to(x.device) for _ in range(2))
                return F.batch_norm(x, mean, var, w, b, training) + mean.mean() + var.mean()

            inputs = [images(shape, layout, dtype), *(adjoin.rand(n, dtype=dtype) for _ in range(2))]
            same_on_the_reference(f, inputs, 1e-4)


def test_layout_is_kept():
    x = images((2, 8, 6, 6), adjoin.channels_last)
    w = adjoin.randn(4, 8, 3, 3)
    norm, running = adjoin.ones(8), adjoin.zeros(8)
    for out in (
        F.conv2d(x, w),
        F.max_pool2d(x, 2),
        F.avg_pool2d(x, 2),
        F.batch_norm(x, running, norm, None, None, True),
        F.relu(x),
        x + x,
    ):
        assert out.is_contiguous(memory_format=adjoin.channels_last)
    assert F.conv2d(x.contiguous(), w).is_contiguous()
