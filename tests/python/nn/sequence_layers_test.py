"""tests/python/nn/sequence_layers_test.py: losses of sequences and margins, bags, lazy and parametrized layers, transformers."""

import copy
import itertools
import math

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn import functional as F
from adjoin.nn.utils import parametrizations, parametrize


def near(actual, expected, tolerance=1e-5):
    expected = expected.detach().numpy() if isinstance(expected, adjoin.Tensor) else expected
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def collapsed(path, blank=0):
    return [k for k, _ in itertools.groupby(path) if k != blank]


def test_ctc_is_the_sum_over_all_paths():
    logs = F.log_softmax(adjoin.randn(4, 2, 3, dtype=adjoin.float64), -1)
    p = logs.exp().numpy()
    for labels in ([1], [1, 1], [2, 1], []):
        whole = sum(
            math.prod(p[t, 1, k] for t, k in enumerate(path))
            for path in itertools.product(range(3), repeat=4)
            if collapsed(path) == labels
        )
        given = adjoin.tensor([[1, 2], [*labels, 0, 0][:2]])
        loss = F.ctc_loss(logs, given, (4, 4), (2, len(labels)), reduction="none")
        near(loss[1], -math.log(whole))
    x = adjoin.randn(4, 2, 3, dtype=adjoin.float64, requires_grad=True)
    rows = adjoin.tensor([[1, 2], [2, 2]])
    assert adjoin.autograd.gradcheck(lambda t: F.ctc_loss(F.log_softmax(t, -1), rows, (4, 3), (2, 2)), (x,))
    assert math.isinf(F.ctc_loss(logs[:2], rows, (2, 2), (2, 2), reduction="sum").item())
    assert not F.ctc_loss(logs[:2], rows[1:].expand(2, 2), (2, 2), (2, 2), zero_infinity=True).item()
    twice = lambda t: F.ctc_loss(F.log_softmax(t, -1), rows, (4, 3), (2, 1), reduction="sum")
    assert adjoin.autograd.gradgradcheck(twice, (x,))
    barred = F.log_softmax(adjoin.cat([x, adjoin.full((4, 2, 1), -math.inf, dtype=x.dtype)], 2), -1)
    loss = F.ctc_loss(barred, rows, (4, 3), (2, 1), reduction="sum")
    near(adjoin.autograd.grad(loss, x)[0], adjoin.autograd.grad(twice(x), x)[0])
    none = adjoin.zeros(0, 2, 3, requires_grad=True)
    F.ctc_loss(none, rows, (0, 0), (0, 0), reduction="sum").backward()
    assert none.grad.shape == none.shape


def test_margins_by_hand():
    x, target = np.random.default_rng(1).standard_normal((5, 4)), [0, 3, 1, 1, 2]
    each = [sum(max(0, 1 - r[t] + r[j]) ** 2 for j in range(4) if j != t) / 4 for r, t in zip(x, target, strict=True)]
    near(F.multi_margin_loss(adjoin.tensor(x), adjoin.tensor(target), p=2, reduction="none"), each)
    targets, row = [3, 0, -1, 1], adjoin.tensor([0.1, 0.2, 0.4, 0.8])
    near(F.multilabel_margin_loss(row, adjoin.tensor(targets)), 0.85)
    with pytest.raises(IndexError):
        F.multilabel_margin_loss(row, adjoin.tensor([4, 0, -1, 1]))
    with pytest.raises(ValueError):
        nn.MultiMarginLoss(p=3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    table, index, begins = adjoin.randn(7, 3), [1, 2, 2, 5, 0, 6], [0, 2, 2]
    rows = [table[index[a:b]] for a, b in ((0, 2), (2, 2), (2, 6))]
    expected = [getattr(np, mode)(r.numpy(), axis=0) if r.numel() else np.zeros(3) for r in rows]
    near(F.embedding_bag(adjoin.tensor(index), table, adjoin.tensor(begins), mode=mode), np.stack(expected))
    for wrong in ([1, 2], [0, 3, 2], [0, 9]):
        with pytest.raises((RuntimeError, ValueError)):
            F.embedding_bag(adjoin.tensor(index), table, adjoin.tensor(wrong), mode=mode)


def test_gumbel_softmax_and_rrelu():
    x = adjoin.randn(2000, 3, requires_grad=True)
    hard = F.gumbel_softmax(adjoin.tensor([1.0, 2.0, 0.0]).expand(20000, 3), hard=True)
    near(hard.mean(0), F.softmax(adjoin.tensor([1.0, 2.0, 0.0]), 0), 0.02)
    F.gumbel_softmax(x, tau=0.5, hard=True).sum().backward()
    assert x.grad is not None
    y = -adjoin.ones(1000)
    slopes = -nn.RReLU(0.1, 0.3)(y)
    assert 0.1 <= slopes.min() and slopes.max() <= 0.3 and abs(slopes.mean() - 0.2) < 0.02
    near(nn.RReLU(0.1, 0.3).eval()(y), -0.2 * np.ones(1000))
    z = adjoin.randn(400, 50, 3)
    dropped = nn.FeatureAlphaDropout(0.3)(z)
    assert abs(dropped.mean()) < 0.1 and abs(dropped.std() - 1) < 0.1


def test_lazy_layers_learn_their_size():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert isinstance(net[0].weight, nn.UninitializedParameter)
    with pytest.raises(RuntimeError, match="uninitialized"):
        _ = net[0].weight.shape
    again = copy.deepcopy(net)
    out = net(adjoin.randn(3, 2, 5, 5))
    assert out.shape == (3, 2) and type(net[0]) is nn.Conv2d and net[0].weight.shape == (4, 2, 3, 3)
    again.load_state_dict(net.state_dict())
    x = adjoin.randn(1, 2, 5, 5)
    near(again.eval()(x), net.eval()(x))
    opt = adjoin.optim.SGD(net.parameters(), lr=0.1)
    net.train()(adjoin.randn(3, 2, 5, 5)).sum().backward()
    opt.step()


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


def test_parametrization():
    layer = nn.Linear(3, 3)
    start = (layer.weight + layer.weight.mT).detach()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert parametrize.is_parametrized(layer, "weight") and type(layer).__name__ == "ParametrizedLinear"
    layer.weight = start
    near(layer.weight, start)
    layer(adjoin.randn(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    near(twin.weight, layer.weight)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and not parametrize.is_parametrized(layer)
    near(layer.weight, start)
    assert parametrize.is_parametrized(twin, "weight")
    with pytest.raises(ValueError, match="does not have"):
        parametrize.register_parametrization(layer, "what", Symmetric())
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(layer, "bias", nn.Unflatten(0, (3, 1)))


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(kind, shape):
    for trivialization in (True, False):
        layer = nn.Linear(*shape, dtype=adjoin.float64)
        parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivialization)
        for _ in range(2):
            q = layer.weight.detach()
            q = q if q.size(0) >= q.size(1) else q.mT
            near(q.mT @ q, np.eye(q.size(1)))
            adjoin.optim.SGD(layer.parameters(), lr=0.1).zero_grad()
            layer(adjoin.randn(5, shape[0], dtype=adjoin.float64)).pow(2).sum().backward()
            with adjoin.no_grad():
                layer.parametrizations.weight.original.sub_(layer.parametrizations.weight.original.grad, alpha=0.01)


def test_spectral_and_weight_norm():
    layer = nn.utils.spectral_norm(nn.Linear(5, 4), n_power_iterations=30)
    for made in (layer, parametrizations.spectral_norm(nn.Linear(5, 4), n_power_iterations=30)):
        made(adjoin.randn(2, 5))
        near(adjoin.tensor(np.linalg.norm(made.weight.detach().numpy(), 2)), 1.0, 1e-3)
    layer = parametrizations.weight_norm(nn.Linear(5, 4))
    layer.parametrizations.weight.original0.data.fill_(2.0)
    near(layer.weight.norm(dim=1), 2 * np.ones(4))
    old = nn.utils.weight_norm(nn.Linear(5, 4))
    layer.load_state_dict(old.state_dict())
    near(layer.weight, old.weight)


def test_fused_layers_and_stateless_calls():
    for conv, bn, x in (
        (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), adjoin.randn(2, 3, 6, 6)),
        (nn.ConvTranspose1d(3, 4, 3, bias=False), nn.BatchNorm1d(4), adjoin.randn(2, 3, 6)),
        (nn.Linear(3, 4), nn.BatchNorm1d(4), adjoin.randn(2, 3)),
    ):
        bn(conv(x))
        conv.eval(), bn.eval()
        if isinstance(conv, nn.Linear):
            fused = nn.utils.fuse_linear_bn_eval(conv, bn)
        else:
            fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose=isinstance(conv, nn.ConvTranspose1d))
        near(fused(x), bn(conv(x)), 1e-4)
    layer = nn.Linear(3, 4)
    got = nn.utils.stateless.functional_call(layer, {"weight": adjoin.zeros(4, 3)}, adjoin.ones(1, 3))
    near(got, layer.bias.detach().numpy()[None])
    assert layer.weight.abs().sum() > 0 and nn.utils.skip_init(nn.Linear, 3, 4).weight.shape == (4, 3)


def test_transformer_sees_no_future():
    net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    src, tgt = adjoin.randn(2, 4, 8), adjoin.randn(2, 5, 8)
    mask = net.generate_square_subsequent_mask(5)
    first = net(src, tgt, tgt_mask=mask, tgt_is_causal=True)
    tgt[:, 3:] = 7.0
    near(net(src, tgt, tgt_mask=mask)[:, :3], first[:, :3])
    assert not adjoin.allclose(net(src, tgt)[:, :3], first[:, :3])
    with pytest.raises(RuntimeError, match="batch number"):
        net(src[:1], tgt)


def test_adaptive_softmax_sums_to_one():
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10])
    x = adjoin.randn(6, 16)
    logs = layer.log_prob(x)
    near(logs.exp().sum(1), np.ones(6))
    out, loss = layer(x, adjoin.arange(6) * 3)
    near(out, logs.gather(1, (adjoin.arange(6) * 3).unsqueeze(1)).squeeze(1))
    near(loss, -out.mean())


def test_sync_batch_norm_is_batch_norm_of_one_process():
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
    x = adjoin.randn(4, 2, 3, 3)
    expected = copy.deepcopy(net)(x)
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(net[1]) is nn.SyncBatchNorm
    near(net(x), expected)


def test_lazy_norms_know_their_channels_from_a_state_dict():
    for lazy, shape in ((nn.LazyInstanceNorm1d, (3, 2, 6)), (nn.LazyBatchNorm2d, (3, 2, 4, 4))):
        seen, fresh = (lazy(affine=True, track_running_stats=True) for _ in range(2))
        x = adjoin.randn(*shape)
        seen(x)
        fresh.load_state_dict(seen.state_dict())
        assert fresh.eval()(x).equal(seen.eval()(x)) and fresh.num_features == 2
        if lazy is nn.LazyInstanceNorm1d:
            with pytest.raises(ValueError, match=r"num_features \(2\)"):
                fresh(adjoin.randn(3, 5, 6))
