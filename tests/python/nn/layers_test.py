"""tests/python/nn/layers_test.py: what layers compute, against NumPy and closed forms."""

import math

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn import functional as F

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def near(actual, expected, tolerance=1e-5):
    actual = actual.detach().numpy() if isinstance(actual, adjoin.Tensor) else actual
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def set_to(parameter, value):
    with adjoin.no_grad():
        parameter.copy_(adjoin.from_numpy(value))


def erf(x):
    return np.vectorize(math.erf)(x)


ACTIVATIONS = {
    "ReLU": lambda x: np.maximum(x, 0),
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "LeakyReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "CELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "GELU": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "SiLU": lambda x: x / (1 + np.exp(-x)),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "LogSigmoid": lambda x: -np.log1p(np.exp(-x)),
    "Hardtanh": lambda x: np.clip(x, -1, 1),
    "Hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "Hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Tanhshrink": lambda x: x - np.tanh(x),
    "Hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "Softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "PReLU": lambda x: np.where(x > 0, x, 0.25 * x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    x = array(3, 4) * 3
    layer = getattr(nn, name)()
    near(layer(adjoin.from_numpy(x)), ACTIVATIONS[name](x))
    if "inplace" in layer.__dict__:
        given = adjoin.from_numpy(x.copy())
        assert getattr(nn, name)(inplace=True)(given).data_ptr() == given.data_ptr()
        near(given, ACTIVATIONS[name](x))


def test_softmaxes():
    x = array(2, 3)
    soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    near(nn.Softmax(dim=1)(adjoin.from_numpy(x)), soft)
    near(nn.LogSoftmax(dim=1)(adjoin.from_numpy(x)), np.log(soft))
    near(nn.Softmin(dim=1)(adjoin.from_numpy(-x)), soft)


def test_linear_and_bilinear():
    layer = nn.Linear(3, 4)
    x = array(2, 5, 3)
    near(
        layer(adjoin.from_numpy(x)),
        x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy(),
    )
    assert nn.Linear(3, 4, bias=False).bias is None
    pair = nn.Bilinear(2, 3, 4)
    a, b = array(5, 2), array(5, 3)
    wanted = np.einsum("bi,kij,bj->bk", a, pair.weight.detach().numpy(), b)
    near(pair(adjoin.from_numpy(a), adjoin.from_numpy(b)), wanted + pair.bias.detach().numpy())


def convolved(x, weight, bias, stride, padding, dilation):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, _, height, width = x.shape
    out, _, kh, kw = weight.shape
    oh = (height - dilation * (kh - 1) - 1) // stride + 1
    ow = (width - dilation * (kw - 1) - 1) // stride + 1
    result = np.zeros((n, out, oh, ow), np.float64)
    for i in range(oh):
        for j in range(ow):
            r, c = i * stride, j * stride
            window = x[:, :, r : r + dilation * (kh - 1) + 1 : dilation,
                       c : c + dilation * (kw - 1) + 1 : dilation]  # fmt: skip
            result[:, :, i, j] = np.einsum("nchw,ochw->no", window, weight)
    return result + bias[None, :, None, None]


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_conv2d(stride, padding, dilation):
    layer = nn.Conv2d(3, 4, 3, stride=stride, padding=padding, dilation=dilation)
    x = array(2, 3, 7, 6)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    wanted = convolved(x, weight, bias, stride, padding, dilation)
    near(layer(adjoin.from_numpy(x)), wanted, 1e-4)


def test_conv_paddings():
    x = array(1, 2, 6)
    same = nn.Conv1d(2, 3, 4, padding="same")
    assert same(adjoin.from_numpy(x)).shape == (1, 3, 6)
    assert nn.Conv1d(2, 3, 4, padding="valid")(adjoin.from_numpy(x)).shape == (1, 3, 3)
    ring = nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular")
    rolled = np.roll(x, 2, axis=2)
    near(np.roll(ring(adjoin.from_numpy(x)).detach().numpy(), 2, axis=2),
         ring(adjoin.from_numpy(rolled)).detach().numpy())  # fmt: skip
    with pytest.raises(ValueError, match="not supported for strided convolutions"):
        nn.Conv1d(2, 3, 3, stride=2, padding="same")
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.Conv1d(3, 4, 1, groups=2)


def test_a_pad_value_of_zero_goes_with_every_mode():
    x = adjoin.arange(6.0).reshape(1, 6)
    assert F.pad(x, (2, 1), "reflect", value=0.0).tolist() == [[2, 1, 0, 1, 2, 3, 4, 5, 4]]
    assert F.pad(x, (1, 1), "replicate", 0).tolist() == [[0, 0, 1, 2, 3, 4, 5, 5]]
    with pytest.raises(RuntimeError, match="takes no value"):
        F.pad(x, (1, 1), "circular", value=1.0)


def test_pools():
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    near(nn.MaxPool2d(2)(adjoin.from_numpy(x)), [[[[5, 7], [13, 15]]]])
    near(nn.AvgPool2d(2)(adjoin.from_numpy(x)), [[[[2.5, 4.5], [10.5, 12.5]]]])
    near(nn.AdaptiveAvgPool2d(1)(adjoin.from_numpy(x)), [[[[7.5]]]])
    assert nn.AdaptiveAvgPool2d((2, None))(adjoin.from_numpy(x)).shape == (1, 1, 2, 4)


def test_pools_as_functions():
    """What a row's signature cannot say: a second result on demand, None for a size that is kept."""
    x = adjoin.arange(24.0).reshape(1, 2, 3, 4)
    out, at = F.max_pool2d(x, 2, return_indices=True)
    near(out, [[[[5, 7]], [[17, 19]]]])
    assert at.tolist() == [[[[5, 7]], [[5, 7]]]]
    near(F.max_pool2d(x, 2, stride=1, padding=1)[0, 0, 0], [0, 1, 2, 3, 3])
    out, at = nn.MaxPool1d(2, return_indices=True)(x[0])
    near(out[0], [[1, 3], [5, 7], [9, 11]])
    assert at.shape == (2, 3, 2)
    assert F.adaptive_avg_pool2d(x, (None, 2)).shape == (1, 2, 3, 2)
    assert F.adaptive_max_pool2d(x, [1, None]).shape == (1, 2, 1, 4)
    near(F.adaptive_max_pool2d(x, 1), [[[[11]], [[23]]]])
    assert F.adaptive_avg_pool1d(x[0], 2).shape == (2, 3, 2)


def test_batch_norm_keeps_running_statistics():
    layer = nn.BatchNorm1d(3, momentum=0.25)
    x = array(8, 3) * 2 + 5
    near(layer(adjoin.from_numpy(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), 1e-4)
    near(layer.running_mean, 0.25 * x.mean(0))
    near(layer.running_var, 0.75 + 0.25 * x.var(0, ddof=1))
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    mean, var = layer.running_mean.numpy(), layer.running_var.numpy()
    near(layer(adjoin.from_numpy(x)), (x - mean) / np.sqrt(var + 1e-5), 1e-4)
    plain = nn.BatchNorm1d(3, momentum=None)
    plain(adjoin.from_numpy(x))
    plain(adjoin.from_numpy(x + 2))
    near(plain.running_mean, x.mean(0) + 1)
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        layer(adjoin.ones(3))


def test_batch_norm_learns_nothing_from_nothing():
    layer = nn.BatchNorm1d(3)
    assert layer(adjoin.empty(0, 3, 2)).shape == (0, 3, 2)
    assert layer.running_var.tolist() == [1, 1, 1] and layer.running_mean.tolist() == [0, 0, 0]
    assert layer.num_batches_tracked == 1


@pytest.mark.parametrize("training", [True, False])
def test_norms_of_nothing(training):
    nothing = adjoin.empty(0, requires_grad=True)
    F.batch_norm(nothing, None, None, training=training).sum().backward()
    assert nothing.grad.shape == (0,)
    assert F.batch_norm(adjoin.empty(2, 0), adjoin.zeros(0), adjoin.ones(0), training=training).shape == (2, 0)
    for shape in ((0, 3, 2), (2, 3, 0), (2, 0, 3), (0, 3, 2, 2)):
        running = adjoin.zeros(shape[1]), adjoin.ones(shape[1])
        weight = adjoin.ones(shape[1], requires_grad=True)
        made = F.instance_norm(adjoin.empty(shape), *running, weight, use_input_stats=training)
        made.sum().backward()
        assert made.shape == shape and weight.grad.tolist() == running[0].tolist() == [0] * shape[1]
    for shape in ((0, 3, 1), (2, 3, 1)):
        with pytest.raises(ValueError, match="more than one value"):
            F.instance_norm(adjoin.empty(shape))
    with pytest.raises(ValueError, match="more than one value"):
        F.batch_norm(adjoin.ones(1, 3), None, None, training=True)


def test_layer_norm():
    x = array(2, 3, 4)
    layer = nn.LayerNorm((3, 4))
    set_to(layer.weight, array(3, 4))
    set_to(layer.bias, array(3, 4))
    mean, var = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    wanted = (x - mean) / np.sqrt(var + 1e-5) * layer.weight.detach().numpy()
    near(layer(adjoin.from_numpy(x)), wanted + layer.bias.detach().numpy())


def test_embedding():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.padding_idx == 4 and layer.weight[4].tolist() == [0.0] * 3
    index = adjoin.tensor([[0, 4], [0, 2]])
    out = layer(index)
    near(out, layer.weight.detach().numpy()[index.numpy()])
    out.sum().backward()
    near(layer.weight.grad, np.array([2, 0, 1, 0, 0], np.float32)[:, None].repeat(3, 1))
    assert nn.Embedding.from_pretrained(adjoin.ones(2, 2)).weight.requires_grad is False


def test_dropouts():
    adjoin.manual_seed(0)
    x = adjoin.ones(50, 40, 3, 3)
    kept = nn.Dropout(0.25)(x)
    assert set(kept.flatten().tolist()) == {0.0, adjoin.tensor(1 / 0.75).item()}
    assert abs(kept.mean().item() - 1) < 0.05
    whole = nn.Dropout2d(0.5)(x).flatten(2)
    assert bool((whole == whole[:, :, :1]).all()) and 0 < whole.mean().item() < 2
    assert nn.Dropout(0.5).eval()(x).mean().item() == 1.0
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        nn.Dropout(2)


def test_losses():
    x, y = array(4, 3), array(4, 3)
    p, q = 1 / (1 + np.exp(-x)), RNG.random((4, 3)).astype(np.float32)
    t = adjoin.from_numpy
    near(nn.MSELoss()(t(x), t(y)), ((x - y) ** 2).mean())
    near(nn.L1Loss(reduction="sum")(t(x), t(y)), np.abs(x - y).sum())
    apart = np.abs(x - y)
    near(nn.SmoothL1Loss(reduction="none")(t(x), t(y)),
         np.where(apart < 1, 0.5 * apart**2, apart - 0.5))  # fmt: skip
    near(nn.HuberLoss(delta=0.5)(t(x), t(y)),
         np.where(apart < 0.5, 0.5 * apart**2, 0.5 * (apart - 0.25)).mean())  # fmt: skip
    entropy = -(q * np.log(p) + (1 - q) * np.log(1 - p))
    near(nn.BCEWithLogitsLoss()(t(x), t(q)), entropy.mean())
    near(nn.BCELoss(reduction="sum")(t(p), t(q)), entropy.sum(), 1e-4)
    near(nn.KLDivLoss(reduction="batchmean")(t(np.log(p)), t(q)),
         (q * (np.log(q) - np.log(p))).sum() / 4)  # fmt: skip


def test_classification_losses():
    x = array(4, 3)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    target = np.array([0, 2, -100, 1])
    weight = np.array([1.0, 2.0, 3.0], np.float32)
    kept = [0, 1, 3]
    picked = -logs[kept, target[kept]]
    logits, classes = adjoin.from_numpy(x), adjoin.from_numpy(target)
    near(nn.CrossEntropyLoss()(logits, classes), picked.mean())
    near(nn.NLLLoss(reduction="none")(adjoin.from_numpy(logs), classes)[2], 0)
    factors = weight[target[kept]]
    near(nn.CrossEntropyLoss(weight=adjoin.from_numpy(weight))(logits, classes),
         (picked * factors).sum() / factors.sum())  # fmt: skip
    smooth = nn.CrossEntropyLoss(label_smoothing=0.1)(logits, classes)
    near(smooth, (0.9 * picked + 0.1 * -logs[kept].mean(1)).mean())
    shares = np.full((4, 3), 1 / 3, np.float32)
    near(nn.CrossEntropyLoss()(logits, adjoin.from_numpy(shares)), -logs.mean(1).mean())


def test_attention():
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = array(2, 3, 4)
    out, weights = layer(*[adjoin.from_numpy(x)] * 3)
    w, b = layer.in_proj_weight.detach().numpy(), layer.in_proj_bias.detach().numpy()
    q, k, v = np.split(x @ w.T + b, 3, axis=2)
    heads = []
    shares = 0
    for h in (slice(0, 2), slice(2, 4)):
        scores = q[..., h] @ k[..., h].transpose(0, 2, 1) / math.sqrt(2)
        soft = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        heads.append(soft @ v[..., h])
        shares = shares + soft / 2
    projection = layer.out_proj
    wanted = np.concatenate(heads, -1) @ projection.weight.detach().numpy().T
    near(out, wanted + projection.bias.detach().numpy())
    near(weights, shares)
    fast, none = layer(*[adjoin.from_numpy(x)] * 3, need_weights=False)
    near(fast, out.detach().numpy())
    assert none is None


def test_attention_masks():
    layer = nn.MultiheadAttention(4, 1, batch_first=True)
    x = adjoin.from_numpy(array(2, 3, 4))
    later = adjoin.ones(3, 3, dtype=adjoin.bool).triu(1)
    _, weights = layer(x, x, x, attn_mask=later)
    assert bool((weights.masked_fill(later.logical_not(), 0) == 0).all())
    padding = adjoin.tensor([[False, False, True], [False, True, True]])
    _, weights = layer(x, x, x, key_padding_mask=padding)
    assert weights[0, :, 2].tolist() == [0.0] * 3 and weights[1, 0, 0].item() == pytest.approx(1)


def test_transformer_layer_learns_from_every_parameter():
    for norm_first in (False, True):
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, norm_first=norm_first)
        stack = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))
        out = stack(adjoin.rand(3, 2, 8))
        assert out.shape == (3, 2, 8)
        (out * out.sin()).sum().backward()
        assert all(p.grad is not None for p in stack.parameters())


def test_functional_finds_ops():
    assert F.linear is F.linear  # the op itself, no new wrapper on each access
    with pytest.raises(AttributeError, match="has no attribute 'no_such_function'"):
        F.no_such_function  # noqa: B018


def test_composite_functions():
    x = array(3, 4)
    t = adjoin.from_numpy(x)
    near(F.normalize(t), x / np.linalg.norm(x, axis=1, keepdims=True))
    near(F.cosine_similarity(t, t), np.ones(3))
    assert F.one_hot(adjoin.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    near(F.glu(t), x[:, :2] / (1 + np.exp(-x[:, 2:])))


# The loss of a last linear layer


def _reference(x, w, target, bias=None, **options):
    if options.pop("ignore_index", None) is not None:
        options["ignore_index"] = 1
    logits = F.linear(x, w.reshape(-1, w.shape[-1]), None if bias is None else bias.reshape(-1))
    return F.cross_entropy(logits.reshape(*x.shape[:-1], *w.shape[:-1]), target, **options)


@pytest.mark.parametrize(
    "parts", [None, {}, {"batch_chunk_size": 2}, {"chunking_method": "aspect_ratio:4"}, {"chunking_method": None}]
)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", ["classes", "weighed", "ignoring", "shares", "deep"])
def test_cross_entropy_of_a_linear_layer(parts, reduction, kind):
    adjoin.manual_seed(0)
    x = adjoin.randn(5, 3, dtype=adjoin.float64, requires_grad=True)
    shape = (4, 2) if kind == "deep" else (4,)
    w, b = (adjoin.randn(*shape, *more, dtype=adjoin.float64, requires_grad=True) for more in ((3,), ()))
    target = adjoin.randint(0, 4, (5, *shape[1:]))
    given = {"label_smoothing": 0.1, "reduction": reduction}
    if kind == "shares":
        target = adjoin.rand(5, 4, dtype=adjoin.float64).softmax(-1)
    if kind in ("weighed", "ignoring"):
        given["weight"] = adjoin.tensor([0.5, 1, 2, 3], dtype=adjoin.float64)
    if kind == "ignoring":
        given["ignore_index"] = 1
    options = None if parts is None else nn.LinearCrossEntropyOptions(**parts)
    found = F.linear_cross_entropy(x, w, target, linear_bias=b, options=options, **given)
    wanted = _reference(x, w, target, b, **given)
    assert adjoin.allclose(found, wanted) and found.shape == wanted.shape
    tensors = (x, w, b)
    for a, c in zip(*(adjoin.autograd.grad(loss.sum(), tensors) for loss in (found, wanted)), strict=True):
        assert adjoin.allclose(a, c)


def test_logits_of_one_part_are_there_at_a_time():
    seen, shapes = [], []

    class Seeing(adjoin.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if func is F.linear:
                seen.append(tuple(out.shape))
            return out

    x, w = adjoin.ones(8, 2, requires_grad=True), adjoin.ones(16, 2, requires_grad=True)
    options = nn.LinearCrossEntropyOptions()
    with adjoin.autograd.graph.saved_tensors_hooks(lambda t: shapes.append(t.numel()) or t, lambda t: t), Seeing():
        loss = F.linear_cross_entropy(x, w, adjoin.zeros(8, dtype=adjoin.int64), options=options)
    assert seen == [(1, 16)] * 8 and options.rows(8, 2, 16) == 1 and options.rows(8, 16, 16) == 8
    loss.backward()
    assert max(shapes, default=0) < 8 * 16


def test_mistakes_of_a_linear_loss():
    x, w = adjoin.ones(2, 3), adjoin.ones(4, 3)
    for wrong, message in (
        ((adjoin.ones(1, 2, 3), w, None), "dimensionality 1 or 2, got 3"),
        ((x, adjoin.ones(4), None), "dimensionality at least 2"),
        ((x, adjoin.ones(4, 2), None), "in_features.*got 3 and 2"),
        ((x[0], adjoin.ones(4, 2, 3), None), "requires batched input"),
    ):
        with pytest.raises(RuntimeError, match=message):
            F.linear_cross_entropy(*wrong)
    with pytest.raises(RuntimeError, match="ignore_index cannot be specified"):
        F.linear_cross_entropy(x, w, adjoin.ones(2, 4) / 4, ignore_index=1)
    for wrong, message in (({"batch_chunk_size": 0}, "at least 1"), ({"acc_policy": "fast"}, "acc_policy is 'fast'")):
        with pytest.raises(ValueError, match=message):
            nn.LinearCrossEntropyOptions(**wrong)
    with pytest.raises(ValueError, match="chunking_method is 'wide'"):
        nn.LinearCrossEntropyOptions(chunking_method="wide")
    assert F.linear_cross_entropy(x[0], w, adjoin.tensor(1)).item() == pytest.approx(math.log(4))


def test_the_layer_of_a_linear_loss():
    layer = nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True, weight=adjoin.ones(4))
    x, target = adjoin.randn(5, 3), adjoin.randint(0, 4, (5, 2))
    logits = layer.linear(x).reshape(5, 4, 2)
    assert adjoin.allclose(layer(x, target), F.cross_entropy(logits, target))
    assert list(layer.state_dict()) == ["weight", "linear.weight", "linear.bias"]
    assert "num_classes=4, out_features=(2,), bias=True" in repr(layer)
    with pytest.raises(RuntimeError, match="expected weight shape to be"):
        nn.LinearCrossEntropyLoss(3, 4, weight=adjoin.ones(3))


# Groups


def test_products_of_groups():
    a, b = (adjoin.randn(*shape, dtype=adjoin.float64, requires_grad=True) for shape in ((6, 3), (2, 3, 4)))
    offs = adjoin.tensor([2, 5], dtype=adjoin.int32)
    found = F.grouped_mm(a, b, offs=offs)
    assert adjoin.allclose(found, adjoin.cat([a[:2] @ b[0], a[2:5] @ b[1], adjoin.zeros(1, 4, dtype=a.dtype)]))
    assert adjoin.allclose(F.grouped_mm(b.mT, a.mT, offs=offs), found.mT)  # by columns
    c = adjoin.randn(6, 5, dtype=a.dtype)
    assert adjoin.allclose(F.grouped_mm(a.mT, c, offs=offs), adjoin.stack([a[:2].mT @ c[:2], a[2:5].mT @ c[2:5]]))
    assert adjoin.allclose(F.grouped_mm(b, b.mT), b @ b.mT)
    assert adjoin.autograd.gradcheck(lambda a, b: F.grouped_mm(a, b, offs=offs), (a, b))
    wrong = (
        ({}, "Have to provide offsets"), ({"offs": offs.long()}, "have to be int32"), ({"offs": offs[:1]}, "2 matrices and 1 offsets"),
        ({"offs": offs.flip(0)}, "do not rise"), ({"offs": offs * 2}, "do not rise from 0 to at most 6"),
        ({"offs": offs, "out_dtype": adjoin.float32}, "must match `mat_a` dtype"),
    )  # fmt: skip
    for given, message in wrong:
        with pytest.raises(RuntimeError, match=message):
            F.grouped_mm(a, b, **given)
    with pytest.raises(NotImplementedError, match="add it to the result"):
        F.grouped_mm(a, b, offs=offs, bias=c)


# How functions give way


def test_functions_give_way():
    class Seen:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, args, kwargs

    x, seen = adjoin.ones(2), Seen()
    assert F.has_torch_function((x, seen)) and not F.has_torch_function((x,))
    assert F.has_torch_function_unary(seen) and not F.has_torch_function_variadic(x, 3)

    def own(a, b):
        if F.has_torch_function_variadic(a, b):
            return F.handle_torch_function(own, (a, b), a, b=b)
        return a + b

    assert own(1, 2) == 3 and own(x, seen) == ("own", (x,), {"b": seen})


def test_a_number_or_two():
    for good in (3, (1, 2), [4, 5]):
        F.assert_int_or_pair(good, "size", "{} is an int or two")
    with pytest.raises(AssertionError, match="size is an int or two"):
        F.assert_int_or_pair((1, 2, 3), "size", "{} is an int or two")


def test_functions_by_a_flag():
    def both(x, flag=False):
        """Says what it does."""
        return x, "both"

    def one(x, flag=False):
        return x, "one"

    chosen = F.boolean_dispatch("flag", 1, False, both, one, "here", "chosen")
    assert chosen(1) == (1, "one") and chosen(1, True) == chosen(1, flag=True) == (1, "both")
    assert chosen.__doc__ == "Says what it does." and (chosen.__module__, chosen.__name__) == ("here", "chosen")
    with pytest.raises(RuntimeError, match="only one function can have a docstring"):
        F.boolean_dispatch("flag", 1, False, both, both, None, None)
