"""tests/plugins/pieces_test.py: activations and losses that the cpu backend computes in one pass, and their gradients,
beside the bodies of their rows, which the reference backend runs; whatever the layout, the dtype and the place."""

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest

DTYPES = ["float32", "float64", "float16", "bfloat16"]
SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 0.5, -0.5, 3.0, -3.0, 1e4, -1e4]
ACTIVATIONS = {
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "nan_to_num": adjoin.nan_to_num,
    "nan_to_num_given": lambda x: adjoin.nan_to_num(x, 1.0, 2.0, 3.0),
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
    "softplus": lambda x: F.softplus(x, 2, 3),
    "logsigmoid": F.logsigmoid,
    "prelu": lambda x: F.prelu(x, adjoin.tensor([0.3], dtype=x.dtype, device=x.device)),
    "rrelu": lambda x: F.rrelu(x, training=False),
}
LOSSES = {
    "huber": lambda x, y, how: F.huber_loss(x, y, reduction=how, delta=0.7),
    "smooth_l1": lambda x, y, how: F.smooth_l1_loss(x, y, reduction=how, beta=0.7),
    "bce_logits": lambda x, y, how: F.binary_cross_entropy_with_logits(x, y, reduction=how),
    "multilabel_soft_margin": lambda x, y, how: F.multilabel_soft_margin_loss(x, y, reduction=how),
}


def numbers(shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape) * 3
    x.ravel()[: len(SPECIAL)] = SPECIAL[: x.size]
    return x


def run(function, device, dtype, *arrays, layout=lambda t: t):
    leaves = [layout(adjoin.tensor(a).to(getattr(adjoin, dtype)).to(device)).detach().requires_grad_() for a in arrays]
    out = function(*leaves)
    slope = adjoin.tensor(np.linspace(0.5, 2, max(out.numel(), 1))[: out.numel()].reshape(tuple(out.shape)))
    out.backward(slope.to(out.dtype).to(device))
    return [t.detach().cpu().to(adjoin.float64).numpy() for t in (out, *(leaf.grad for leaf in leaves))]


def beside(function, dtype, *arrays, **how):
    tol = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    for got, want in zip(
        run(function, "cpu", dtype, *arrays, **how), run(function, "reference", dtype, *arrays, **how)
    ):
        np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, dtype):
    for shape in ((), (3,), (17,), (40, 33)):
        beside(ACTIVATIONS[name], dtype, numbers(shape))
    beside(ACTIVATIONS[name], dtype, numbers((40, 33)), layout=lambda t: t.t())
    beside(ACTIVATIONS[name], dtype, numbers((40, 33)), layout=lambda t: t[:, ::2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, how, dtype):
    x, y = np.random.default_rng(1).standard_normal((2, 37, 41)) * 2

    def loss(a, b):
        return LOSSES[name](a, b, how)

    beside(loss, dtype, x, y)
    beside(loss, dtype, x, y, layout=lambda t: t.t())
    beside(loss, dtype, x[:0], y[:0])


@pytest.mark.parametrize("shape, weights", [((5, 7), 7), ((5, 7, 9), 7), ((2, 3, 5, 4), 3), ((5, 7), 1), ((4,), 1)])
def test_prelu_of_channels(shape, weights):
    beside(F.prelu, "float64", np.nan_to_num(numbers(shape, 3)), np.linspace(-1, 2, weights))


def test_gradients_of_gradients():
    for name, function in ACTIVATIONS.items():
        x = adjoin.tensor(np.random.default_rng(4).standard_normal(12) * 2, requires_grad=True)
        assert adjoin.autograd.gradgradcheck(function, (x,)), name
    for loss in LOSSES.values():
        x, y = (adjoin.tensor(a, requires_grad=True) for a in np.random.default_rng(5).standard_normal((2, 3, 4)))
        assert adjoin.autograd.gradgradcheck(lambda a, b: loss(a, b, "mean"), (x, y))


def listed_margins(x, target):
    """The loss of one row, as it is defined."""
    stop = list(target).index(-1) if -1 in target else len(target)
    wanted = target[:stop]
    others = [i for i in range(len(x)) if i not in wanted]
    return sum(max(0.0, 1 - (x[j] - x[i])) for j in wanted for i in others) / len(x)


def test_multilabel_margins_of_few_and_many_targets():
    random = np.random.default_rng(6)
    x = random.standard_normal((9, 12))
    for most in (0, 1, 3, 12):
        target = random.integers(0, 12, (9, 12))
        for row in range(9):
            target[row, min(most, row) :] = -1
        want = [listed_margins(a, t.tolist()) for a, t in zip(x, target)]
        leaf = adjoin.tensor(x, requires_grad=True)
        got = F.multilabel_margin_loss(leaf, adjoin.tensor(target), reduction="none")
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12)
        assert adjoin.autograd.gradcheck(lambda t: F.multilabel_margin_loss(t, adjoin.tensor(target)), (leaf,))


@pytest.mark.parametrize(
    "left, right",
    [
        ((6, 5), (4, 3)),
        ((6, 5), (4, 200)),
        ((3,), (5,)),
        ((2, 3, 4), (5, 2)),
        ((2,), (3, 4, 5)),
        ((), (2, 2)),
        ((0, 3), (2, 2)),
    ],
)
def test_kron(left, right):
    x, y = (adjoin.tensor(np.random.default_rng(7).standard_normal(s), requires_grad=True) for s in (left, right))
    np.testing.assert_array_equal(adjoin.kron(x, y).detach().numpy(), np.kron(x.detach().numpy(), y.detach().numpy()))
    if x.numel() and y.numel() < 60:
        assert adjoin.autograd.gradcheck(adjoin.kron, (x, y))


def test_an_element_does_not_depend_on_its_neighbours():
    """Sums that end when all are small enough would; bits are the same in every place of a vector."""
    random = np.random.default_rng(8)
    a, x = random.uniform(0.05, 40, 500), random.uniform(0.05, 60, 500)
    y = random.uniform(-30, 30, 500)
    for dtype in (adjoin.float32, adjoin.float64):
        s, t, e = (adjoin.tensor(v).to(dtype) for v in (a, x, y))
        for function in (
            adjoin.igamma,
            adjoin.igammac,
            lambda p, q: adjoin.special.bessel_y0(q),
            lambda p, q: adjoin.pow(p, e[: len(q)]),
        ):
            whole = function(s, t).numpy()
            for n in (1, 3, 8, 17):
                assert np.array_equal(function(s[:n], t[:n]).numpy(), whole[:n])


def test_powers_of_doubles():
    random = np.random.default_rng(9)
    special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, np.inf, -np.inf, np.nan, 1e308, 5e-324, 1e-310, -3.0]
    x = np.concatenate(
        [np.exp(random.uniform(-700, 700, 3000)), random.uniform(0, 3, 3000), np.repeat(special, len(special))]
    )
    y = np.concatenate([random.uniform(-1.1, 1.1, 3000), random.uniform(-80, 80, 3000), np.tile(special, len(special))])
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = adjoin.pow(adjoin.tensor(x), adjoin.tensor(y)).numpy()
    odd = ~((got == want) | (np.isnan(got) & np.isnan(want)))
    assert np.all(np.abs(got[odd] - want[odd]) <= 2 * np.spacing(np.abs(want[odd])))
    assert np.array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_bessel_functions(name):
    special = pytest.importorskip("scipy.special")
    random = np.random.default_rng(10)
    x = np.concatenate(
        [random.uniform(0, 60, 3000), np.exp(random.uniform(-20, 5, 3000)), 8 + random.uniform(-1e-3, 1e-3, 100)]
    )
    if name[0] == "j":
        x = np.concatenate([x, -x])
    ours = getattr(adjoin.special, "bessel_" + name)
    theirs = getattr(special, name)
    np.testing.assert_allclose(ours(adjoin.tensor(x)).numpy(), theirs(x), rtol=4e-15, atol=4e-15)
    narrow = x.astype(np.float32)
    np.testing.assert_allclose(
        ours(adjoin.tensor(narrow)).numpy(), theirs(narrow.astype(np.float64)), rtol=2e-7, atol=2e-15
    )
    odd = adjoin.tensor([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e300, 5e-324, 1e10])
    np.testing.assert_allclose(ours(odd.double()).numpy(), ours(odd.double().to("reference")).cpu().numpy(), rtol=1e-12)


@pytest.mark.parametrize("name, theirs", [("igamma", "gammainc"), ("igammac", "gammaincc")])
def test_incomplete_gamma_functions(name, theirs):
    special = pytest.importorskip("scipy.special")
    random = np.random.default_rng(11)
    a = np.concatenate([random.uniform(0, 12, 1500), random.uniform(0, 1, 1500), np.exp(random.uniform(-9, 9, 500))])
    x = np.concatenate(
        [random.uniform(0, 18, 1500), random.uniform(0, 1.5, 1500), a[3000:] * random.uniform(0.5, 1.5, 500)]
    )
    odd = [0.0, 1.0, 0.5, np.inf, -1.0, np.nan, 1e6, 20.0, 1e30]
    a, x = np.concatenate([a, np.repeat(odd, len(odd))]), np.concatenate([x, np.tile(odd, len(odd))])
    got = getattr(adjoin, name)(adjoin.tensor(a), adjoin.tensor(x)).numpy()
    np.testing.assert_allclose(got, getattr(special, theirs)(a, x), rtol=5e-11, atol=1e-200)
    a, x = a.astype(np.float32), x.astype(np.float32)
    got = getattr(adjoin, name)(adjoin.tensor(a), adjoin.tensor(x)).numpy()
    np.testing.assert_allclose(
        got, getattr(special, theirs)(a.astype(np.float64), x.astype(np.float64)), rtol=3e-7, atol=1e-37
    )
