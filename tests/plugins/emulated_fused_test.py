"""tests/plugins/emulated_fused_test.py: what a GPU does in one pass, beside the CPU: attention in sizes around its
tiles, cross entropy, activations' gradients, and that kernels serve and not the ops' bodies."""

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
