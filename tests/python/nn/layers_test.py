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
