"""tests/plugins/sampling_test.py: images read at grids, resized and padded by the cpu beside the reference backend."""

import adjoin
import adjoin.nn.functional as F
import pytest

WIDE = {adjoin.float64: 1e-10, adjoin.float32: 1e-4}


def same_on_the_reference(f, inputs, tolerance):
    """f(*inputs) and its gradients here and there."""
    found = []
    for device in ("cpu", "reference"):
        mine = [t.detach().to(device).requires_grad_(True) for t in inputs]
        out = f(*mine)
        adjoin.manual_seed(1)
        g = adjoin.randn(*out.shape, dtype=out.dtype)
        out.backward(g.to(device))
        found.append([t.to("cpu") for t in [out.detach(), *(m.grad for m in mine)]])
    for here, there in zip(*found, strict=True):
        adjoin.testing.assert_close(here, there, rtol=tolerance, atol=tolerance, equal_nan=True)


# few channels and many, fewer places than pixels and more, odd sizes, images of one pixel
GRIDS = [
    ((2, 3, 9, 11), (7, 5)),
    ((2, 8, 9, 11), (13, 21)),
    ((1, 33, 6, 7), (20, 9)),
    ((2, 40, 5, 4), (1, 3)),
    ((2, 9, 1, 1), (3, 2)),
    ((2, 3, 4, 5, 6), (3, 4, 5)),
    ((2, 17, 4, 5, 6), (5, 6, 7)),
]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_images_at_grids(mode, padding, align):
    for x, places in GRIDS:
        if mode == "bicubic" and len(x) == 5:
            continue
        for dtype, tolerance in WIDE.items():
            adjoin.manual_seed(2)
            image = adjoin.randn(*x, dtype=dtype)
            grid = adjoin.rand(x[0], *places, len(x) - 2, dtype=dtype) * 3 - 1.5
            same_on_the_reference(lambda x, g: F.grid_sample(x, g, mode, padding, align), [image, grid], tolerance)


@pytest.mark.parametrize("shape", [(1, 2, 5, 5), (1, 12, 5, 5), (1, 12, 3, 5, 5)], ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_what_weighs_nothing_is_not_read(mode, shape):
    """An infinity beside a place that lies on another pixel, or far outside, does not get there."""
    image = adjoin.ones(*shape)
    image[..., 3] = float("inf")
    grid = adjoin.zeros(1, *[6] * (len(shape) - 2), len(shape) - 2)
    grid[..., :3, 0] = 7.0
    out = F.grid_sample(image, grid, mode, align_corners=True)
    assert out[..., :3].abs().max() == 0 and out[..., 3:].max() == 1 and out[..., 3:].min() == 1


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "area", "bicubic"])
@pytest.mark.parametrize("scale", [0.2, 0.45, 0.7, 1.0, 1.3, 2.0, 5.0])
def test_lines_and_images_resized(scale, mode):
    for width in (5, 8, 16, 31, 64, 101):
        for dtype, tolerance in WIDE.items():
            adjoin.manual_seed(3)
            line = adjoin.randn(2, 3, width, dtype=dtype)
            image = adjoin.randn(1, 2, 7, width, dtype=dtype)
            if mode != "bicubic":
                same_on_the_reference(lambda x: F.interpolate(x, scale_factor=scale, mode=mode), [line], tolerance)
            flat = "bilinear" if mode == "linear" else mode
            same_on_the_reference(lambda x: F.interpolate(x, scale_factor=scale, mode=flat), [image], tolerance)


EDGES = [
    ((2, 3, 7), (2, 3)),
    ((2, 3, 7), (0, 0)),
    ((2, 3, 4, 5), (1, 2, 3, 0)),
    ((2, 3, 4, 5), (4, 4)),
    ((1, 2, 3, 4, 20), (9, 11, 1, 0, 2, 2)),
    ((3, 2, 1), (0, 0)),
]


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pads(mode):
    for shape, pad in EDGES:
        for dtype, tolerance in {**WIDE, adjoin.float16: 4e-3}.items():
            x = adjoin.randn(*shape, dtype=dtype)
            same_on_the_reference(lambda x: F.pad(x, pad, mode), [x], tolerance)
        for dtype in (adjoin.bool, adjoin.uint8, adjoin.int64, adjoin.complex64, adjoin.complex128):
            x = (adjoin.randn(*shape) * 3).to(dtype)
            for t in (x, x.transpose(0, 1), x[..., ::2, :], x.expand(2, *shape)[1]):
                fits = list(pad) if t.shape[-1] == shape[-1] and t.shape[-2:] == x.shape[-2:] else [1, 0]
                if mode == "reflect" and t.shape[-1] < 2:
                    fits = [0, 0]
                here, there = F.pad(t, fits, mode), F.pad(t.to("reference"), fits, mode)
                assert here.dtype == dtype and adjoin.equal(here, there.to("cpu"))


def test_pads_of_a_constant():
    x = adjoin.arange(24).reshape(2, 3, 4)
    for pad in ((-1, 1), (1, -2, 0, 1), (0, 0, 0, 0, 3, -1), (-2, -2), (2, 2, 2, 2, 2, 2), (-4, 3)):
        for dtype in (adjoin.float32, adjoin.bfloat16, adjoin.int8, adjoin.bool, adjoin.complex64):
            for value in (0, 2, 2.5, True):
                t = x.to(dtype)
                here, there = F.pad(t, pad, value=value), F.pad(t.to("reference"), pad, value=value)
                assert adjoin.equal(here, there.to("cpu")), (pad, dtype, value)
    assert adjoin.equal(F.pad(adjoin.tensor(3.0), ()), adjoin.tensor(3.0))
    assert F.pad(adjoin.ones(2, 0), (1, 2), value=7).tolist() == [[7.0] * 3] * 2
    assert F.pad(adjoin.ones(1, dtype=adjoin.complex64), (1, 0), value=2 + 3j).tolist() == [2 + 3j, 1 + 0j]
    out, t = adjoin.zeros(2, 5, 4, 2)[..., 1], x.float().transpose(1, 2)[:, ::2]  # neither is dense
    adjoin.constant_pad_nd(t, (1, 0, 1, 2), 7, out=out)
    assert adjoin.equal(out, F.pad(t.contiguous(), (1, 0, 1, 2), value=7))
    with pytest.raises(RuntimeError, match="cuts more than dimension 0"):
        F.pad(adjoin.ones(4), (-5, 6))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_matter(threads):
    adjoin.manual_seed(4)
    x, g = adjoin.randn(3, 40, 60, 50), adjoin.rand(3, 90, 80, 2) * 2.4 - 1.2
    before, found = adjoin.get_num_threads(), []
    for n in (1, threads):
        adjoin.set_num_threads(n)
        try:
            leaves = [x.clone().requires_grad_(True), g.clone().requires_grad_(True)]
            out = F.pad(
                F.interpolate(F.grid_sample(*leaves, align_corners=False), scale_factor=0.6), (3, 3, 3, 3), "reflect"
            )
            out.sin().sum().backward()
            found.append([out.detach(), *(leaf.grad for leaf in leaves)])
        finally:
            adjoin.set_num_threads(before)
    for one, many in zip(*found, strict=True):
        assert adjoin.equal(one, many)


def test_adaptive_averages_of_volumes():
    for dtype, tolerance in WIDE.items():
        for shape in ((2, 3, 4, 5, 6), (3, 2, 3, 1), (1, 2, 16, 20, 20)):
            x = adjoin.randn(*shape, dtype=dtype)
            for size in (1, (2, 1, 1), (1, 3, 2)):
                same_on_the_reference(lambda x: F.adaptive_avg_pool3d(x, size), [x], tolerance)
            close = dict(rtol=tolerance, atol=tolerance)
            mean = x.mean((-3, -2, -1), keepdim=True)
            adjoin.testing.assert_close(F.adaptive_avg_pool3d(x, 1), mean, **close)


@pytest.mark.parametrize("value", [300, 255, 128, 127, -128, -129, -255, -256, 127.5, 1e30, float("nan"), 1j, True])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool", "float32", "bfloat16", "complex64"])
def test_pads_take_and_refuse_numbers_as_the_reference_does(dtype, value):
    found = []
    for device in ("cpu", "reference"):
        try:
            x = adjoin.ones(2, dtype=getattr(adjoin, dtype), device=device)
            found.append(str(F.pad(x, (1, 0), value=value).tolist()))
        except RuntimeError as error:
            found.append(str(error).partition(": ")[2].rpartition(": ")[2])
    assert found[0] == found[1]
