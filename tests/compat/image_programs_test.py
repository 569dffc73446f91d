"""tests/compat/image_programs_test.py: random convolutional programs on Adjoin and on PyTorch: values,
gradients, second gradients, and at every step what a user sees of shapes, strides and memory.

Adjoin keeps results of convolutions channels-last behind the user's back; views, in-place writes,
prints, NumPy arrays and writes through aliases at random places must not show it.
"""

import os
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import adjoin  # noqa: E402

PROGRAMS = int(os.environ.get("ADJOIN_RANDOM_PROGRAMS", "300"))
FIRST = int(os.environ.get("ADJOIN_RANDOM_SEED", "0"))
BATCH = 30
STEPS = 12


class Pair:
    """The same program in both libraries; values are pairs."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.leaves, self.log = [], []

    def leaf(self, *shape, grad=True):
        a = (self.data.standard_normal(shape) * 0.5).astype(np.float32)
        pair = torch.from_numpy(a.copy()), adjoin.from_numpy(a.copy())
        for t in pair:
            t.requires_grad_(grad)
        self.leaves += [pair] * grad
        return pair

    def both(self, f, *pairs):
        return tuple(f(T, T.nn.functional, *(p[i] for p in pairs)) for i, T in enumerate((torch, adjoin)))


def conv(p, x):
    _, c, h, _ = x[0].shape
    k, out = p.rng.choice([1, 3]), p.rng.choice([8, 16])
    groups = p.rng.choice([1, 1, c]) if out % c == 0 else 1
    w, b = p.leaf(out, c // groups, k, k), p.leaf(out)
    stride = p.rng.choice([1, 1, 2]) if h >= 16 else 1
    bias = p.rng.random() < 0.5
    return p.both(lambda T, F, x, w, b: F.conv2d(x, w, b if bias else None, stride, k // 2, 1, groups), x, w, b)


def conv_transposed(p, x):
    w = p.leaf(x[0].shape[1], 8, 3, 3)
    return p.both(lambda T, F, x, w: F.conv_transpose2d(x, w, None, 1, 1), x, w)


def norm(p, x):
    c = x[0].shape[1]
    w, b, m, v = p.leaf(c), p.leaf(c), p.leaf(c, grad=False), p.leaf(c, grad=False)
    train = p.rng.random() < 0.6
    return p.both(lambda T, F, x, w, b, m, v: F.batch_norm(x, m, v * v + 1, w, b, train), x, w, b, m, v)


def plain(f):
    return lambda p, x: p.both(lambda T, F, x: f(T, F, x), x)


def per_channel(p, x):
    b = p.leaf(1, x[0].shape[1], 1, 1)
    return p.both(lambda T, F, x, b: x * b + 0.5, x, b)


def channels_last_mask(p, x):
    mask = p.leaf(*x[0].shape, grad=False)
    return p.both(lambda T, F, x, m: x + m.contiguous(memory_format=T.channels_last), x, mask)


def planes(p, x):
    return p.both(lambda T, F, x, m: m * x, x, p.leaf(*x[0].shape))


def alias_written(T, F, x):
    y = F.avg_pool2d(x, 1)
    with T.no_grad():
        y.detach().mul_(0.5)
    return y


def view_written(T, F, x):
    y = x * 1
    y[:, 1:3].mul_(2)
    y.flatten()[3:9].add_(1)
    return y


def data_written(T, F, x):
    y = F.avg_pool2d(x, 1)
    y.data.view(-1)[5] = 3.0
    return y


def out_written(T, F, x):
    with T.no_grad():
        y = T.zeros(x.shape)
        T.tanh(x, out=y)
        z = F.avg_pool2d(x, 1)
        T.sigmoid(y, out=z)
    return x + y - z


def seen(T, F, x):
    x.stride(), x.is_contiguous(), str(x)
    assert x.detach().numpy().strides == tuple(4 * s for s in x.stride())
    return x


STEP = {
    "conv": conv,
    "conv_": conv,
    "conv__": conv,
    "conv_transposed": conv_transposed,
    "norm": norm,
    "per_channel": per_channel,
    "planes": planes,
    "channels_last_mask": channels_last_mask,
    "relu": plain(lambda T, F, x: F.relu(x)),
    "relu_": plain(lambda T, F, x: (x * 1).relu_()),
    "tanh": plain(lambda T, F, x: T.tanh(x)),
    "sigmoid_": plain(lambda T, F, x: F.avg_pool2d(x, 1).sigmoid_()),
    "add_": plain(lambda T, F, x: F.avg_pool2d(x, 1).add_(x)),
    "copy_": plain(lambda T, F, x: F.avg_pool2d(x, 1).copy_(x * 2)),
    "max_pool": plain(lambda T, F, x: F.max_pool2d(x, 3, 1, 1)),
    "max_pool2": plain(lambda T, F, x: F.max_pool2d(x, 2, 2) if x.shape[2] >= 16 else x * 1),
    "avg_pool": plain(lambda T, F, x: F.avg_pool2d(x, 3, 1, 1)),
    "adaptive": plain(lambda T, F, x: F.adaptive_avg_pool2d(x, x.shape[2])),
    "cat": plain(lambda T, F, x: T.cat([x, x.tanh()], 1)[:, : x.shape[1]] if x.shape[1] > 8 else T.cat([x, x], 1)),
    "flat": plain(lambda T, F, x: x.flatten(1).view(x.shape)),
    "turned": plain(lambda T, F, x: x.permute(0, 2, 3, 1).contiguous().view(x.shape)),
    "permuted": plain(lambda T, F, x: x.permute(0, 1, 3, 2).contiguous()),
    "slice": plain(lambda T, F, x: x[:, ::2] if x.shape[1] > 8 else x[:, :8]),
    "clone": plain(lambda T, F, x: x.clone()),
    "contiguous": plain(lambda T, F, x: x.contiguous()),
    "double": plain(lambda T, F, x: x.double().float()),
    "where": plain(lambda T, F, x: T.where(x > 0, x, 0.1 * x)),
    "mean": plain(lambda T, F, x: x - x.mean((2, 3), keepdim=True)),
    "max": plain(lambda T, F, x: x + x.max(1, keepdim=True)[0]),
    "softmax": plain(lambda T, F, x: F.softmax(x, 1)),
    "cumsum": plain(lambda T, F, x: x.cumsum(1) * 0.1),
    "alias_written": plain(alias_written),
    "view_written": plain(view_written),
    "data_written": plain(data_written),
    "out_written": plain(out_written),
    "seen": plain(seen),
    "numpy": plain(lambda T, F, x: x * T.from_numpy(np.array(x.detach().numpy()[0, 0, 0, 0]))),
    "item": plain(lambda T, F, x: x + x[0, 1, 2, 3].item()),
    "like": plain(lambda T, F, x: x + T.ones_like(x) + T.zeros_like(x)),
}


def agree(p, a, b, what, scale=1.0):
    assert tuple(a.shape) == tuple(b.shape), (what, p.log)
    a, b = a.detach().numpy(), b.detach().numpy()
    scale = max(scale, float(np.abs(a).max(initial=0)))
    assert np.allclose(a, b, rtol=0, atol=3e-4 * scale, equal_nan=True), (what, float(np.abs(a - b).max()), p.log)


def same_strides(p, a, b):
    assert a.stride() == b.stride() and a.is_contiguous() == b.is_contiguous(), (a.stride(), b.stride(), p.log)
    last = [t.is_contiguous(memory_format=T.channels_last) for t, T in ((a, torch), (b, adjoin))]
    assert last[0] == last[1], p.log


def program(seed):
    p = Pair(seed)
    x = p.leaf(2, 8, 16, 16)
    values = []
    for _ in range(STEPS):
        name = p.rng.choice(list(STEP))
        p.log.append(name)
        x = STEP[name](p, x)
        values.append(x)
        if p.rng.random() < 0.15:
            same_strides(p, *x)
    loss = p.both(lambda T, F, x: (x * x).mean(), x)
    leaves = [[pair[i] for pair in p.leaves] for i in (0, 1)]
    twice = seed % 3 == 0
    grads = [
        T.autograd.grad(loss[i], leaves[i], create_graph=twice, allow_unused=True)
        for i, T in enumerate((torch, adjoin))
    ]
    for a, b in values:
        if a.abs().max() < 1e3:
            agree(p, a, b, "value")
    compare(p, grads, "gradient")
    same_strides(p, *x)
    if not twice:
        return
    sums = [sum((g * g).sum() for g in grads[i] if g is not None) for i in (0, 1)]
    seconds = [
        T.autograd.grad(sums[i], leaves[i], allow_unused=True) if sums[i].requires_grad else []
        for i, T in enumerate((torch, adjoin))
    ]
    compare(p, seconds, "second gradient")


def compare(p, grads, what):
    # Where a norm follows, a gradient is the rest of large ones.
    scale = max([1.0, *(float(g.abs().max()) for g in grads[0] if g is not None)])
    for a, b in zip(*grads, strict=True):
        if a is None or b is None:
            left = a if b is None else b
            assert left is None or not left.abs().max(), (what, p.log)
        else:
            agree(p, a, b, what, scale)


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_programs_agree(first):
    for seed in range(first, min(first + BATCH, FIRST + PROGRAMS)):
        program(seed)
