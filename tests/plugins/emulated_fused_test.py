"""tests/plugins/emulated_fused_test.py: what a GPU does in one pass, beside the CPU: attention in sizes around its
tiles, cross entropy, activations' gradients, and that kernels serve and not the ops' bodies."""

import itertools

import adjoin
import adjoin.nn.functional as F
import pytest

pytestmark = pytest.mark.skipif(
    not adjoin.amp.is_autocast_available("emulated"), reason="the plugin emulated is not built: no Boost.Context"
)


def moved(value):
    return (
        value.detach().to("emulated").requires_grad_(value.requires_grad) if isinstance(value, adjoin.Tensor) else value
    )


def beside(function, *args, tolerance=2e-5):
    """The same result and gradients on both devices."""
    outcomes = []
    for given in (args, [moved(a) for a in args]):
        out = function(*given)
        leaves = [a for a in given if isinstance(a, adjoin.Tensor) and a.requires_grad]
        weights = adjoin.linspace(-1, 1, out.numel()).reshape(out.shape).to(out.device, out.dtype)
        grads = adjoin.autograd.grad((out * weights).sum(), leaves)
        outcomes.append([t.cpu().double() for t in (out.detach(), *grads)])
    for expected, actual in zip(*outcomes, strict=True):
        scale = max(1.0, expected.abs().max().item())
        assert (actual - expected).abs().max().item() <= tolerance * scale


def heads(shape, dtype="float32"):
    return adjoin.randn(*shape).to(getattr(adjoin, dtype)).requires_grad_()


@pytest.fixture(autouse=True)
def seed():
    adjoin.manual_seed(0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys", "depth", "width"),
                         [(1, 1, 1, 1), (33, 70, 8, 5), (32, 32, 16, 33), (70, 33, 3, 130), (5, 64, 65, 64)])  # fmt: skip
def test_attention_around_tiles(queries, keys, depth, width, causal):
    q, k, v = heads((2, queries, depth)), heads((2, keys, depth)), heads((2, keys, width))
    beside(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), q, k, v)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float16", 4e-3), ("bfloat16", 3e-2)])
def test_attention_dtypes(dtype, tolerance):
    q, k, v = (heads((3, 40, 16), dtype) for _ in range(3))
    beside(F.scaled_dot_product_attention, q, k, v, tolerance=tolerance)


@pytest.mark.parametrize("shape", [(40, 50), (1, 50), (40, 1), (2, 1, 40, 50), (3, 1, 50), (1, 1), (50,)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_attention_masks(shape, kind):
    q, k, v = heads((2, 3, 40, 4)), heads((2, 3, 50, 4)), heads((2, 3, 50, 4))
    mask = adjoin.randn(*shape)
    if kind == "bool":
        mask = mask > 0
        mask[0] = False  # rows that see nothing
    beside(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask), q, k, v, mask)


def test_attention_of_strided_heads():
    x = heads((2, 37, 3, 3, 8))

    def attend(x):
        q, k, v = x.unbind(2)
        return F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))

    beside(attend, x)


def test_attention_of_many_leading_dimensions():
    q = heads((1, 2, 1, 2, 1, 1, 2, 5, 4))
    beside(lambda q: F.scaled_dot_product_attention(q, q, q), q)


def dropping(p=0.4, **settings):
    """Attention that drops weights, and what the generator gives after it, in the result's last element."""

    def attend(q, k, v, mask=None):
        adjoin.manual_seed(9)
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p, **settings)
        return adjoin.cat([out.flatten(), adjoin.rand(1, device=out.device).to(out.dtype)])

    return attend


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys", "depth", "width"),
                         [(1, 1, 1, 1), (33, 70, 8, 5), (32, 32, 16, 33), (70, 33, 3, 130), (5, 64, 65, 64)])  # fmt: skip
def test_attention_drops_the_same_weights(queries, keys, depth, width, causal):
    q, k, v = heads((2, 3, queries, depth)), heads((2, 3, keys, depth)), heads((2, 3, keys, width))
    beside(dropping(is_causal=causal), q, k, v)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float16", 8e-3), ("bfloat16", 6e-2)])
def test_attention_drops_in_every_dtype(dtype, tolerance):
    q, k, v = (heads((3, 40, 16), dtype) for _ in range(3))
    beside(dropping(), q, k, v, tolerance=tolerance)


def test_attention_drops_with_masks_shared_heads_and_all():
    q, k, v = heads((2, 4, 40, 8)), heads((2, 2, 35, 8)), heads((2, 2, 35, 8))
    beside(dropping(enable_gqa=True), q, k, v)
    mask = adjoin.rand(4, 40, 35) > 0.5
    mask[0, 0] = False
    beside(dropping(enable_gqa=True), q, k, v, mask)
    x = heads((2, 37, 3, 3, 8))
    beside(lambda x: dropping()(*(t.transpose(1, 2) for t in x.unbind(2))), x)
    beside(lambda q: dropping(p=1.0)(q, q, q), q)


def test_attention_that_drops_keeps_no_scores():
    """One call each way; with the scores it would be a dozen, and a matrix of them."""
    q = moved(heads((2, 2, 33, 4)))
    adjoin._C.trace(True)
    try:
        F.scaled_dot_product_attention(q, q, q, dropout_p=0.5).sum().backward()
    finally:
        lines = [line.split("\t") for line in adjoin._C.trace(False).splitlines()[1:]]
    names = [line[0] for line in lines if line[1] == "emulated"]
    assert {"_::attention", "_::attention_backward"} <= set(names)
    assert not {"softmax", "bmm", "dropout_philox"} & set(names), names


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_attention_refuses_a_wrong_share(device, p):
    q = heads((1, 3, 4)).to(device)
    with pytest.raises(ValueError, match="dropout_p must be between 0 and 1"):
        F.scaled_dot_product_attention(q, q, q, dropout_p=p)


def sequences(device, queries, keys, **settings):
    """Attention of sequences without padding: its parts, what it gives back, and how often the device was called for attention."""
    adjoin.manual_seed(4)
    leaves = [adjoin.randn(sum(n), 6, dtype=adjoin.float64).to(device).requires_grad_() for n in (queries, keys, keys)]
    sides = []
    for leaf, lengths in zip(leaves, (queries, keys, keys), strict=True):
        ends = adjoin.tensor([0, *itertools.accumulate(lengths)], device=device)
        t = adjoin.nested.nested_tensor_from_jagged(leaf, ends)
        sides.append(t.unflatten(-1, (2, 3)).transpose(1, 2))
    adjoin._C.trace(True)
    try:
        out = F.scaled_dot_product_attention(*sides, **settings)
    finally:
        lines = [line.split("\t") for line in adjoin._C.trace(False).splitlines()[1:]]
    grads = adjoin.autograd.grad((out.values() * adjoin.linspace(-1, 1, 3, device=device)).sum(), leaves)
    found = [t.detach().cpu() for t in (*out.unbind(), *grads)]
    return found, sum(int(line[3]) for line in lines if line[:2] == ["_::attention", device])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "calls"),
    [((3, 1, 5, 2), (3, 1, 5, 2), 1), ((3, 1, 5, 2), (4, 6, 3, 2), 1), ((2, 0, 3), (2, 0, 3), 1), ((40, 1, 1, 1, 1, 1), (40, 1, 1, 1, 1, 1), 6)],
)  # fmt: skip
def test_sequences_are_attended_at_once(queries, keys, calls, causal):
    """One call for all of them; one each where a long one would make most of it room."""
    wanted, _ = sequences("cpu", queries, keys, is_causal=causal)
    found, called = sequences("emulated", queries, keys, is_causal=causal)
    assert called == calls
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape and adjoin.allclose(a, b, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("classes", [3, 64, 65, 300])
def test_cross_entropy(classes, reduction):
    x = heads((150, classes))
    target = adjoin.randint(0, classes, (150,))
    target[::7] = -100
    beside(lambda x, t: F.cross_entropy(x, t, reduction=reduction), x, target)


def test_cross_entropy_of_nothing_and_of_wrong_classes():
    x, t = adjoin.zeros(2, 3, device="emulated"), adjoin.tensor([1, 2], device="emulated")
    assert F.cross_entropy(x, t, ignore_index=2, reduction="sum").item() > 0
    assert F.cross_entropy(x, t * 0 - 100).isnan().item()
    assert F.cross_entropy(x[:0], t[:0]).isnan().item()
    with pytest.raises(IndexError):
        F.cross_entropy(x, t + 1).item()
    adjoin.accelerator.synchronize("emulated")


@pytest.mark.parametrize("function", [F.relu, adjoin.tanh, adjoin.sigmoid, F.silu, F.gelu,
                                      lambda x: F.gelu(x, approximate="tanh")])  # fmt: skip
@pytest.mark.parametrize("shape", [(5000,), (7, 11)])
def test_slopes(function, shape):
    beside(function, heads(shape))
    beside(lambda x: function(x.t()), heads((7, 11)))


def test_kernels_serve():
    adjoin._C.trace(True)
    try:
        q = heads((2, 33, 4)).to("emulated").detach().requires_grad_()
        F.scaled_dot_product_attention(q, q, q).sum().backward()
        F.cross_entropy(q[0], adjoin.zeros(33, dtype=adjoin.int64, device="emulated")).backward()
        F.gelu(q).sum().backward()
    finally:
        lines = adjoin._C.trace(False).splitlines()[1:]
    served = {line.split("\t")[0]: line.split("\t")[2] for line in lines if line.split("\t")[1] == "emulated"}
    for name in ("attention", "attention_backward", "softmax_nll", "softmax_nll_backward", "gelu_backward"):
        assert served["_::" + name] == "emulated"


DTYPES = [
    getattr(adjoin, name) for name in "bool uint8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()
]


@pytest.mark.parametrize("n", [3, 16, 1003])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_that_lie_one_after_the_other(dtype, n):
    """They are moved 16 bytes at a time: whole packs, what is left behind them, and what does not begin at one."""

    def both(f, *inputs):
        want, got = f(*inputs), f(*(x.to("emulated") for x in inputs))
        assert got.dtype == want.dtype and adjoin.equal(got.cpu(), want), f

    x, y = ((adjoin.randn(n + 1) * 9).to(dtype) for _ in range(2))
    functions = [
        lambda a, b: a + b,
        lambda a, b: a == b,
        lambda a, _: a * True,
        lambda a, b: a.to(adjoin.float32) if not a.is_complex() else b,
    ]
    functions += [lambda a, _: a.to(adjoin.float16), lambda a, _: a.to(adjoin.bfloat16)] if not x.is_complex() else []
    functions += [
        lambda a, _: adjoin.full_like(a, 1),
        lambda a, _: a.clone().fill_(1),
        lambda a, b: a.clone().copy_(b),
        lambda a, _: a.isnan(),
    ]
    for f in functions:
        both(f, x[:n], y[:n])
        both(f, x[1:], y[:n])  # not where a pack begins
    if x.is_floating_point():
        both(lambda a, b: adjoin.addcmul(a, a, b, value=0.5), x[:n], y[:n])
        special = adjoin.tensor(
            [float("inf"), -float("inf"), float("nan"), -0.0, 65519.0, 65520.0, 6e-8, 1e-30, 3.4e38] * 2
        )
        for to in (adjoin.float16, adjoin.bfloat16):
            adjoin.testing.assert_close(
                special.to("emulated").to(to).cpu(), special.to(to), rtol=0, atol=0, equal_nan=True
            )


@pytest.mark.parametrize("dtype", [adjoin.float16, adjoin.bfloat16], ids=str)
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (33, 17, 70), (64, 40, 32), (7, 100, 5)])
def test_products_of_halves_around_tiles(m, k, n, dtype):
    """By the units that multiply matrices, simulated: sums in float, rounded once."""
    x, y = adjoin.randn(m, k).to(dtype), adjoin.randn(k, n).to(dtype)
    bound = {"rtol": 8e-3, "atol": 2e-2} if dtype is adjoin.bfloat16 else {"rtol": 1e-3, "atol": 2e-3}
    for warp in (32, 64):
        adjoin.ops.emulated.configure(f"warp={warp}")
        for a, b in ((x, y), (x.t().contiguous().t(), y), (x, y.t().contiguous().t())):
            adjoin.testing.assert_close(
                (a.to("emulated") @ b.to("emulated")).cpu(), (x.float() @ y.float()).to(dtype), **bound
            )
    adjoin.ops.emulated.configure("warp=32")


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("hidden, batch, steps", [(8, 3, 6), (3, 4, 6), (70, 2, 4), (8, 140, 2), (4, 2, 300)])
def test_sequences_in_one_launch(kind, hidden, batch, steps):
    """Units in packs and one by one; one sequence of a block and several; more steps than a launch has; packed ones."""
    sizes = sorted((adjoin.randint(1, steps + 1, (batch,)).tolist()), reverse=True)
    sizes[0] = steps
    net = getattr(adjoin.nn, kind)(5, hidden, bidirectional=hidden == 8, bias=hidden != 3).double()
    twin = getattr(adjoin.nn, kind)(5, hidden, bidirectional=hidden == 8, bias=hidden != 3).double()
    twin.load_state_dict(net.state_dict())
    twin.to("emulated")
    x = adjoin.randn(steps, batch, 5).double()

    def results(net, x, packed):
        x = x.detach().requires_grad_()
        y, h = net(adjoin.nn.utils.rnn.pack_padded_sequence(x, sizes) if packed else x)
        y, states = y.data if packed else y, h if isinstance(h, tuple) else (h,)
        ((y * y).sum() + sum((s * s.sin()).sum() for s in states)).backward()
        return [y, *states, x.grad, *(p.grad for p in net.parameters())]

    for packed in (False, True):
        for got, want in zip(results(twin, x.to("emulated"), packed), results(net, x, packed), strict=True):
            adjoin.testing.assert_close(got.cpu(), want, rtol=1e-8, atol=1e-8)


def test_lists_longer_than_a_launch():
    """Tensors of all sizes, one of them empty, one not dense, one twice."""

    def tensors(where):
        adjoin.manual_seed(4)
        made = [adjoin.randn(n).to(where) for n in [5] * 400 + [0, 5000, 3]]
        return [*made, adjoin.randn(6, 4).to(where).t(), made[2], made[2]]

    for order in (1.0, 2.0, float("inf")):
        norms = [adjoin.nn.utils.get_total_norm(tensors(where), order).cpu() for where in ("cpu", "emulated")]
        adjoin.testing.assert_close(*norms)
    scaled = []
    for where in ("cpu", "emulated"):
        mine = tensors(where)
        adjoin._C.find_op("fused_scale_")(mine, adjoin.tensor(0.5).to(where))
        scaled.append([t.cpu() for t in mine])
    assert all(adjoin.equal(a, b) for a, b in zip(*scaled, strict=True))


@pytest.mark.parametrize("dtype", [adjoin.float16, adjoin.bfloat16, adjoin.float32, adjoin.int64], ids=str)
def test_reductions_with_four_loads_under_way(dtype):
    """Lines longer than a block's steps, columns, more parts than four of a thread, steps between elements."""
    x = (adjoin.randn(700, 45) * 3).round().to(dtype)
    for given, dims in ((x, (0,)), (x, (1,)), (x.t(), (1,)), (x[::2, ::3], (0,)), (x.reshape(-1), (0,))):
        for f in (adjoin.sum, adjoin.amax, adjoin.argmax):
            dim = dims if f is not adjoin.argmax else dims[0]
            want, got = f(given, dim), f(given.to("emulated"), dim).cpu()
            adjoin.testing.assert_close(got, want, rtol=4e-3 if dtype.is_floating_point else 0, atol=1e-2)
    long = adjoin.ones(600 * 16384 + 5, dtype=adjoin.uint8)  # parts of 16,384
    assert dtype is not adjoin.int64 or long.to("emulated").sum().item() == long.numel()
