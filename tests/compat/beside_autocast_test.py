"""tests/compat/beside_autocast_test.py: dtypes and values of ops under autocast, and scaled training,
beside PyTorch's."""

import math

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import adjoin
from beside import copy_weights, dtype_name, near, ours

# Each takes the library, its functional module, a square matrix x and another y, positive and below 1.
OPS = {
    "mm": lambda lib, f, x, y: lib.mm(x, y),
    "matmul": lambda lib, f, x, y: lib.matmul(x, y),
    "@": lambda lib, f, x, y: x @ y,
    "matmul of vectors": lambda lib, f, x, y: lib.matmul(x[0], y[0]),
    "bmm": lambda lib, f, x, y: lib.bmm(x[None], y[None]),
    "addmm": lambda lib, f, x, y: lib.addmm(x, x, y),
    "baddbmm": lambda lib, f, x, y: lib.baddbmm(x[None], x[None], y[None]),
    "addbmm": lambda lib, f, x, y: lib.addbmm(x, x[None], y[None]),
    "linear": lambda lib, f, x, y: f.linear(x, y),
    "linear with bias": lambda lib, f, x, y: f.linear(x, y, x[0]),
    "einsum": lambda lib, f, x, y: lib.einsum("ij,jk->ik", x, y),
    "tensordot": lambda lib, f, x, y: lib.tensordot(x, y, 1),
    "conv1d": lambda lib, f, x, y: f.conv1d(x[None], y[:, :, None]),
    "conv2d": lambda lib, f, x, y: f.conv2d(x[None, None], y[None, None]),
    "conv_transpose2d": lambda lib, f, x, y: f.conv_transpose2d(x[None, None], y[None, None]),
    "attention": lambda lib, f, x, y: f.scaled_dot_product_attention(x[None], y[None], x[None]),
    "exp": lambda lib, f, x, y: lib.exp(x),
    "log": lambda lib, f, x, y: lib.log(x),
    "log1p": lambda lib, f, x, y: lib.log1p(x),
    "rsqrt": lambda lib, f, x, y: lib.rsqrt(x),
    "reciprocal": lambda lib, f, x, y: lib.reciprocal(x),
    "tan": lambda lib, f, x, y: lib.tan(x),
    "acos": lambda lib, f, x, y: lib.acos(x),
    "pow": lambda lib, f, x, y: lib.pow(x, 3),
    "pow of two": lambda lib, f, x, y: x**y,
    "sqrt": lambda lib, f, x, y: lib.sqrt(x),
    "tanh": lambda lib, f, x, y: lib.tanh(x),
    "sigmoid": lambda lib, f, x, y: lib.sigmoid(x),
    "relu": lambda lib, f, x, y: f.relu(x),
    "gelu": lambda lib, f, x, y: f.gelu(x),
    "silu": lambda lib, f, x, y: f.silu(x),
    "softplus": lambda lib, f, x, y: f.softplus(x),
    "add": lambda lib, f, x, y: x + y,
    "mul": lambda lib, f, x, y: x * y,
    "div": lambda lib, f, x, y: x / y,
    "addcmul": lambda lib, f, x, y: lib.addcmul(x, x, y),
    "atan2": lambda lib, f, x, y: lib.atan2(x, y),
    "where": lambda lib, f, x, y: lib.where(x > y, x, y),
    "sum": lambda lib, f, x, y: x.sum(),
    "mean": lambda lib, f, x, y: x.mean(0),
    "prod": lambda lib, f, x, y: x.prod(),
    "cumsum": lambda lib, f, x, y: x.cumsum(0),
    "var": lambda lib, f, x, y: x.var(),
    "norm": lambda lib, f, x, y: x.norm(),
    "max": lambda lib, f, x, y: x.max(),
    "logsumexp": lambda lib, f, x, y: x.logsumexp(1),
    "trace": lambda lib, f, x, y: x.trace(),
    "softmax": lambda lib, f, x, y: f.softmax(x, -1),
    "log_softmax": lambda lib, f, x, y: f.log_softmax(x, -1),
    "layer_norm": lambda lib, f, x, y: f.layer_norm(x, (4,)),
    "group_norm": lambda lib, f, x, y: f.group_norm(x[None], 2),
    "batch_norm": lambda lib, f, x, y: f.batch_norm(x, None, None, training=True),
    "cat": lambda lib, f, x, y: lib.cat([x, y]),
    "stack": lambda lib, f, x, y: lib.stack([x, y]),
    "cross_entropy": lambda lib, f, x, y: f.cross_entropy(x, lib.tensor([0, 1, 2, 3])),
    "nll_loss": lambda lib, f, x, y: f.nll_loss(x, lib.tensor([0, 1, 2, 3])),
    "mse_loss": lambda lib, f, x, y: f.mse_loss(x, y),
    "l1_loss": lambda lib, f, x, y: f.l1_loss(x, y),
    "smooth_l1_loss": lambda lib, f, x, y: f.smooth_l1_loss(x, y),
    "huber_loss": lambda lib, f, x, y: f.huber_loss(x, y),
    "kl_div": lambda lib, f, x, y: f.kl_div(x, y, reduction="sum"),
    "binary_cross_entropy": lambda lib, f, x, y: f.binary_cross_entropy(x, y),
    "binary_cross_entropy_with_logits": lambda lib, f, x, y: f.binary_cross_entropy_with_logits(x, y),
    "poisson_nll_loss": lambda lib, f, x, y: f.poisson_nll_loss(x, y),
    "cosine_similarity": lambda lib, f, x, y: f.cosine_similarity(x, y),
    "embedding": lambda lib, f, x, y: f.embedding(lib.tensor([0, 2]), x),
    "dropout": lambda lib, f, x, y: f.dropout(x, 0.0),
    "avg_pool2d": lambda lib, f, x, y: f.avg_pool2d(x[None, None], 2),
    "max_pool2d": lambda lib, f, x, y: f.max_pool2d(x[None, None], 2),
}
DTYPES = [("float32", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32"), ("float16", "float32")]


def outcome(lib, name, x, y, low):
    with lib.autocast("cpu", dtype=getattr(lib, low)):
        return OPS[name](lib, lib.nn.functional, x, y)


@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("dtypes", DTYPES, ids="-".join)
@pytest.mark.parametrize("name", OPS)
def test_dtypes_and_values(name, dtypes, low):
    generator = torch.Generator().manual_seed(0)
    values = [0.1 + 0.8 * torch.rand(4, 4, generator=generator) for _ in dtypes]
    theirs = [v.to(getattr(torch, d)) for v, d in zip(values, dtypes, strict=True)]
    own = [ours(v).to(getattr(adjoin, d)) for v, d in zip(values, dtypes, strict=True)]
    try:
        expected = outcome(torch, name, *theirs, low)
    except RuntimeError:  # mixed dtypes that PyTorch has no kernel for
        pytest.skip("PyTorch refuses it")
    actual = outcome(adjoin, name, *own, low)
    assert dtype_name(actual) == dtype_name(expected)
    half = {"bfloat16": 0.02, "float16": 0.004}
    near(actual.float(), expected.float(), max(half.get(d, 1e-5) for d in (low, *dtypes)))


def network(lib):
    layers = lib.nn
    return layers.Sequential(layers.Conv2d(1, 4, 3), layers.BatchNorm2d(4), layers.ReLU(), layers.Flatten(),
                             layers.Linear(4 * 36, 10))  # fmt: skip


def test_training_with_a_scaler():
    """The same losses, scales and skipped steps."""
    torch.manual_seed(0)
    nets = [network(torch), network(adjoin)]
    copy_weights(nets[0], nets[1])
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 10, (8,))
    curves = []
    for lib, net, data, target in zip((torch, adjoin), nets, (x, ours(x)), (y, adjoin.tensor(y.tolist())), strict=True):
        optimizer = lib.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        scaler = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
        curve = []
        for step in range(8):
            optimizer.zero_grad()
            with lib.autocast("cpu", dtype=lib.float16):
                loss = lib.nn.functional.cross_entropy(net(data), target)
            scaler.scale(loss if step != 4 else loss * math.inf).backward()
            if step % 2:
                scaler.unscale_(optimizer)
                lib.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=False)
            scaler.step(optimizer)
            scaler.update()
            curve.append((loss.item(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
        curves.append(curve)
    for (a, *scale_a), (b, *scale_b) in zip(*curves, strict=True):
        assert abs(a - b) < 0.02
        assert scale_a == scale_b


def test_state_goes_both_ways():
    a, b = torch.amp.GradScaler("cpu", init_scale=8.0), adjoin.amp.GradScaler("cpu")
    b.load_state_dict(a.state_dict())
    assert b.get_scale() == 8.0
    b.set_growth_interval(7)
    a.load_state_dict(b.state_dict())
    assert a.state_dict() == b.state_dict() and a.get_growth_interval() == 7


def test_signatures():
    import inspect

    for name in ("autocast", "GradScaler", "custom_fwd", "custom_bwd"):
        theirs, own = getattr(torch.amp, name), getattr(adjoin.amp, name)
        pairs = [{n: (p.kind, p.default) for n, p in inspect.signature(f).parameters.items()} for f in (theirs, own)]
        assert pairs[0] == pairs[1]
    public = {n for n in dir(torch.amp.GradScaler) if not n.startswith("_")}
    assert public <= set(dir(adjoin.amp.GradScaler))
