"""tests/python/tensor/windows_of_kernels_test.py: what reads windows has the same results as plain loops: groups of few channels, maxima, pads.

The reference backend computes both ways; shapes are drawn, so that every path of the CPU's kernels meets edges, strides and tails.
"""

import random

import adjoin
import numpy as np
import pytest

F = adjoin.nn.functional


def both(f, leaves, tolerance):
    """f of the leaves and its gradients, on the CPU and on the reference backend."""
    found = []
    for device in ("cpu", "reference"):
        mine = [t.to(device).requires_grad_(True) for t in leaves]
        y = f(*mine)
        weight = adjoin.arange(y.numel(), dtype=y.dtype).reshape(y.shape).cos().to(device)
        found.append([y.detach(), *adjoin.autograd.grad(y, mine, weight)])
    for ours, plain in zip(*found, strict=True):
        assert ours.shape == plain.shape
        np.testing.assert_allclose(ours.numpy(), plain.cpu().numpy(), rtol=tolerance, atol=tolerance)


def drawn(rng, *sizes, dtype="float32"):
    adjoin.manual_seed(rng.randrange(1 << 30))
    return adjoin.randn(*sizes, dtype=getattr(adjoin, dtype))


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_few_channels(seed):
    rng = random.Random(seed)
    dims, groups = rng.choice((1, 2, 2, 3)), rng.choice((2, 3, 5))
    few, other = (1, 1) if seed % 2 else (rng.choice((1, 2, 3, 4, 7, 8)), rng.choice((1, 2, 4, 5, 8)))
    kernel = [rng.choice((1, 2, 3, 3, 5, 7)) for _ in range(dims)] if seed % 3 else [rng.choice((3, 5, 7))] * dims
    stride, dilation = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2))
    pad = [rng.randrange(k + 1) for k in kernel]
    reach = [dilation * (k - 1) + 1 for k in kernel]
    most = {1: 80, 2: 40, 3: 12}[dims]
    size = [max(n - 2 * p, 1) + rng.randrange(most) for n, p in zip(reach, pad, strict=True)]
    dtype = rng.choice(("float32", "float32", "float64"))
    x = drawn(rng, 2, groups * few, *size, dtype=dtype)
    w = drawn(rng, groups * other, few, *kernel, dtype=dtype)
    b = drawn(rng, groups * other, dtype=dtype)
    how = {"stride": stride, "padding": tuple(pad), "dilation": dilation, "groups": groups}
    both(lambda x, w, b: getattr(F, f"conv{dims}d")(x, w, b, **how), [x, w, b], 2e-4)
    w = drawn(rng, groups * few, other, *kernel, dtype=dtype)
    pad = [min(p, n // 2) for p, n in zip(pad, reach, strict=True)]
    how = {**how, "padding": tuple(pad)}
    shape = [(n - 1) * stride - 2 * p + r for n, p, r in zip(size, pad, reach, strict=True)]
    if min(shape) > 0:
        both(lambda x, w, b: getattr(F, f"conv_transpose{dims}d")(x, w, b, **how), [x, w, b], 2e-4)


@pytest.mark.parametrize("seed", range(30))
def test_maxima(seed):
    rng = random.Random(seed)
    dims = rng.choice((1, 2, 3))
    size = [rng.randrange(7, {1: 90, 2: 40, 3: 12}[dims]) for _ in range(dims)]
    x = drawn(rng, 2, 3, *size, dtype=rng.choice(("float32", "float64")))
    if seed % 2:
        x = x.round()  # ties
    values = x.numpy()
    if seed % 3 == 0:
        values.reshape(-1)[:: rng.randrange(5, 50)] = rng.choice((np.nan, -np.inf))
    x = adjoin.tensor(values)
    kernel = [rng.randrange(1, 4) for _ in range(dims)]
    how = {"stride": rng.choice((None, 1, 2, 3)), "padding": tuple(k // 2 for k in kernel), "ceil_mode": bool(seed % 2)}
    how["dilation"] = rng.choice((1, 1, 2))
    calls = [
        lambda x: getattr(F, f"max_pool{dims}d")(x, tuple(kernel), return_indices=True, **how),
        lambda x: getattr(F, f"adaptive_max_pool{dims}d")(x, rng.choice((1, 3, 5)), return_indices=True),
    ]
    for call in calls:
        state = rng.getstate()
        best, at = call(x)
        rng.setstate(state)
        plain, there = call(x.to("reference"))
        np.testing.assert_array_equal(best.numpy(), plain.cpu().numpy())
        numbers = ~np.isnan(best.numpy())  # which NaN of several is not said
        np.testing.assert_array_equal(at.numpy()[numbers], there.cpu().numpy()[numbers])


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_pads(mode):
    name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    for pads in ((1, 2), (0, 3, 2, 0), (2, 2, 1, 3, 4, 1), (11, 10), (9, 0, 10, 9)):
        x = adjoin.arange(2 * 12 * 11 * 12, dtype=adjoin.float64).reshape(2, 12, 11, 12).requires_grad_(True)
        pairs = list(zip(pads[::2], pads[1::2], strict=True))[::-1]
        y = F.pad(x, pads, mode=mode)
        wanted = np.pad(x.detach().numpy(), [(0, 0)] * (4 - len(pairs)) + pairs, mode=name)
        np.testing.assert_array_equal(y.detach().numpy(), wanted)
        weight = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
        y.backward(adjoin.tensor(weight))
        there = np.zeros(x.numel())
        np.add.at(there, wanted.astype(int), weight)
        np.testing.assert_allclose(x.grad.numpy().ravel(), there, atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids_beyond_the_edges(mode):
    adjoin.manual_seed(0)
    for shape, grid in (((2, 3, 5, 6), (2, 9, 7, 2)), ((1, 2, 1, 4), (1, 8, 8, 2))):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                x, at = adjoin.randn(*shape), adjoin.rand(*grid) * 9.03 - 4.51

                def sampled(x, at, padding=padding, align=align):
                    return F.grid_sample(x, at, mode=mode, padding_mode=padding, align_corners=align)

                both(sampled, [x, at], 2e-3)


def test_the_same_bits_for_any_number_of_threads():
    adjoin.manual_seed(0)
    x, w = adjoin.randn(4, 12, 40, 37, requires_grad=True), adjoin.randn(12, 3, 3, 3, requires_grad=True)
    found, before = [], adjoin.get_num_threads()
    try:
        for threads in (1, 2, 3):
            adjoin.set_num_threads(threads)
            y = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), w, stride=2, groups=4)
            y = F.max_pool2d(y, 3, 2, 1)
            found.append([y, *adjoin.autograd.grad(y.square().sum(), [x, w])])
    finally:
        adjoin.set_num_threads(before)
    for other in found[1:]:
        assert all(adjoin.equal(a, b) for a, b in zip(found[0], other, strict=True))
