"""tests/python/tensor/image_order_test.py: images that lie channels-last behind the user's back: where they are turned, and that
nobody sees it."""

import os
import subprocess
import sys
import textwrap
import threading

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import nn


def run(program, **environment):
    """What a program printed, and how often it turned a tensor to C order."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "ADJOIN_LOG": "trace", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    turned = [line for line in done.stderr.splitlines() if "is turned to C order" in line]
    return done.stdout, turned


BLOCK = """
    import adjoin, sys
    from adjoin import nn
    adjoin.manual_seed(3)
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c)
            self.c2, self.b2 = nn.Conv2d(c, c, 3, 1, 1), nn.BatchNorm2d(c)
            self.relu = nn.ReLU(inplace=True)
        def forward(self, x):
            y = self.relu(self.b1(self.c1(x)))
            return self.relu(self.b2(self.c2(y)) + x)
    net = nn.Sequential(nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(), nn.MaxPool2d(2), Block(16), Block(16), nn.AvgPool2d(2))
    head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, 10))
    x = adjoin.randn(8, 3, 32, 32)
    for step in range(3):
        print("step", file=sys.stderr)
        y = net(x)
        print("head", file=sys.stderr)
        loss = head(y).square().mean()
        loss.backward()
    print([float(p.grad.square().sum()) for p in net.parameters()])
"""


def test_a_residual_network_is_turned_at_its_end_alone():
    _, turned = run(BLOCK)
    assert len(turned) == 3, turned  # one a step: what the head flattens
    assert all("[8, 16, 4, 4]" in line for line in turned)


def test_without_it_the_gradients_are_the_same():
    with_it, turned = run(BLOCK)
    without, none = run(BLOCK, ADJOIN_FREE_ORDER="0")
    assert turned and not none
    adjoin.testing.assert_close(adjoin.tensor(eval(with_it)), adjoin.tensor(eval(without)), rtol=1e-4, atol=1e-5)


def images(n=4):
    conv = nn.Conv2d(3, 16, 3, padding=1)
    adjoin.manual_seed(1)
    return conv, conv(adjoin.randn(n, 3, 16, 16))


def c_strides(t):
    steps = [1]
    for n in reversed(t.shape[1:]):
        steps.insert(0, steps[0] * n)
    return tuple(steps)


def test_strides_and_memory_are_those_of_c_order():
    for look in (
        lambda t: t.stride() == c_strides(t),
        lambda t: t.is_contiguous(),
        lambda t: not t.is_contiguous(memory_format=adjoin.channels_last),
        lambda t: t.detach().numpy().flags.c_contiguous,
        lambda t: adjoin.from_dlpack(t.detach()).stride() == c_strides(t),
        lambda t: memoryview(t.detach()).c_contiguous,
        lambda t: t.contiguous() is t or t.contiguous().data_ptr() == t.data_ptr(),
        lambda t: t.view(-1).stride() == (1,),
        lambda t: t[1].stride() == c_strides(t)[1:],
        lambda t: t.untyped_storage().nbytes() == t.numel() * 4,
        lambda t: t.storage_offset() == 0,
    ):
        conv, out = images()
        for t in (out, F.relu(out), F.batch_norm(out, None, None, training=True), F.max_pool2d(out, 2), out + 1):
            assert look(t)


def test_asked_for_channels_last_stays_channels_last():
    conv, _ = images()
    x = adjoin.randn(4, 3, 16, 16).contiguous(memory_format=adjoin.channels_last)
    for t in (conv(x), F.relu(conv(x)), conv.to(memory_format=adjoin.channels_last)(adjoin.randn(4, 3, 16, 16))):
        assert t.is_contiguous(memory_format=adjoin.channels_last) and not t.is_contiguous()


CUTS = {
    "rows": lambda x: x[:, :, 1:8],
    "columns": lambda x: x[:, :, :, 2:11],
    "channels": lambda x: x[:, 1:5],
    "every second row": lambda x: x[:, :, ::2],
    "one image": lambda x: x[:1, :, 2:9, 1:],
}
LAYERS = {
    "max_pool2d": lambda t: F.max_pool2d(t, 2),
    "places of max_pool2d": lambda t: F.max_pool2d(t, 2, return_indices=True)[1],
    "avg_pool2d": lambda t: F.avg_pool2d(t, 2),
    "adaptive_avg_pool2d": lambda t: F.adaptive_avg_pool2d(t, 3),
    "batch_norm": lambda t: F.batch_norm(t, None, None, training=True),
    "group_norm": lambda t: F.group_norm(t, 1),
    "pad": lambda t: F.pad(t, (1, 1)),
    "interpolate": lambda t: F.interpolate(t, scale_factor=2),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("layer", LAYERS)
def test_parts_of_channels_last_images_give_such_images(layer, cut):
    x = adjoin.randn(2, 6, 10, 12).contiguous(memory_format=adjoin.channels_last)
    part = CUTS[cut](x)
    made, wanted = LAYERS[layer](part), LAYERS[layer](part.contiguous())
    adjoin.testing.assert_close(made, wanted)
    assert made.is_contiguous(memory_format=adjoin.channels_last) and wanted.is_contiguous()


def test_a_detached_tensor_shares_its_memory():
    _, out = images()
    before = out.detach()
    with adjoin.no_grad():
        before.zero_()
    assert not out.abs().max()
    out.data.fill_(2)
    assert float(out.sum()) == 2 * out.numel()


def test_writes_after_a_use_are_still_refused():
    conv, out = images()
    y = out.tanh()
    with adjoin.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_grad_of_a_kept_tensor_and_of_a_leaf():
    conv, out = images()
    out.retain_grad()
    x = adjoin.randn(4, 3, 16, 16, requires_grad=True)
    (conv(x).relu().sum() + out.relu().sum()).backward()
    assert x.grad.stride() == c_strides(x) and out.grad.stride() == c_strides(out)
    assert conv.weight.grad.stride() == c_strides(conv.weight)
    with adjoin.no_grad():
        leaf = conv(x)
    leaf.requires_grad_().square().sum().backward()
    assert leaf.grad.stride() == c_strides(leaf)
    assert adjoin.equal(leaf.grad, 2 * leaf)


def test_threads_may_look_while_others_compute():
    conv, _ = images()
    x = adjoin.randn(8, 3, 32, 32)
    with adjoin.no_grad():
        wanted = conv(x).relu().numpy().copy()
        for _ in range(30):
            out, wrong = conv(x), []

            def look(out=out, wrong=wrong):
                if out.stride() != c_strides(out) or (out.numpy().clip(0) != wanted).any():
                    wrong.append("seen")

            def compute(out=out, wrong=wrong):
                with adjoin.no_grad():
                    for _ in range(3):
                        if (out.relu().numpy() != wanted).any():
                            wrong.append("computed")

            threads = [threading.Thread(target=f) for f in (compute, look, compute, look)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert not wrong


def kept(name):
    F_ = F
    return {
        "constant": lambda x: F_.pad(x, (1, 2, 1, 0), value=3.0),
        "cut": lambda x: F_.pad(x, (-1, 2), value=3.0),
        "reflect": lambda x: F_.pad(x, (1, 2, 1, 0), mode="reflect"),
        "replicate": lambda x: F_.pad(x, (1, 2, 1, 0), mode="replicate"),
        "reflect and cut": lambda x: F_.pad(x, (-1, 2, 1, 0), mode="reflect"),
        "group norm": lambda x: F_.group_norm(x, 2),
        "adaptive maxima": lambda x: F_.adaptive_max_pool2d(x, 3),
        "their places": lambda x: F_.adaptive_max_pool2d(x, 3, return_indices=True)[1],
        "nearest": lambda x: F_.interpolate(x, scale_factor=2),
        "bilinear": lambda x: F_.interpolate(x, size=5, mode="bilinear"),
        "pixels": lambda x: F_.pixel_shuffle(x, 2),
        "pixels back": lambda x: F_.pixel_unshuffle(x, 2),
        "channels": lambda x: F_.channel_shuffle(x, 2),
        "dropout": lambda x: F_.dropout(x, 0.5),
        "cat": lambda x: adjoin.cat([x, x * 2], 1),
        "cat of rows": lambda x: adjoin.cat([x, x * 2], -1),
        "cat of images": lambda x: adjoin.cat([x, x * 2]),
        "flip": lambda x: x.flip(1, 2),
        "roll": lambda x: x.roll((1, 2), (1, 3)),
        "unpool": lambda x: F_.max_unpool2d(*F_.max_pool2d(x, 2, return_indices=True), 2),
    }[name]


KEEP = (
    "constant,cut,reflect,replicate,reflect and cut,group norm,adaptive maxima,their places,nearest,bilinear,pixels,pixels back,"
    "channels,dropout,cat,cat of rows,cat of images,flip,roll,unpool"
).split(",")


@pytest.mark.parametrize("name", KEEP)
def test_an_order_that_the_user_chose_stays(name):
    x, call = adjoin.randn(2, 8, 6, 4, dtype=adjoin.float64), kept(name)
    last = x.to(memory_format=adjoin.channels_last).requires_grad_()
    adjoin.manual_seed(1)
    a = call(last)
    adjoin.manual_seed(1)
    b = call(x.requires_grad_())
    assert a.is_contiguous(memory_format=adjoin.channels_last) and b.is_contiguous()
    assert adjoin.allclose(a, b, 1e-12, 1e-12)
    if a.is_floating_point():
        weights = adjoin.randn_like(b)
        for out in (a, b):
            (out * weights).sum().backward()
        assert adjoin.allclose(last.grad, x.grad, 1e-9, 1e-12)
        with adjoin.device("meta"):
            meta = call(adjoin.empty(2, 8, 6, 4).to(memory_format=adjoin.channels_last)) if name != "unpool" else None
        assert meta is None or meta.shape == a.shape


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_parts_of_images_keep_their_order_when_resized(mode):
    x = adjoin.arange(2.0 * 3 * 8 * 8).reshape(2, 3, 8, 8).contiguous(memory_format=adjoin.channels_last)
    for part in (x, x[:, :, 1:-1, 1:-1], x[:, :, ::2, ::2]):
        resized = F.interpolate(part, size=(5, 6), mode=mode)
        assert resized.is_contiguous(memory_format=adjoin.channels_last)
        assert resized.equal(F.interpolate(part.contiguous(), size=(5, 6), mode=mode))
    assert F.interpolate(x[0][None], size=(5, 6), mode=mode).is_contiguous()  # its strides are those of no batch
    volume = adjoin.rand(3, 4, 4, 4).contiguous(memory_format=adjoin.channels_last)
    assert F.adaptive_max_pool3d(volume, 2).is_contiguous()
