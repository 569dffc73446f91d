"""tests/python/legacy/legacy_trees_test.py: trees of modules in the Lua style, modules of one's own, and the methods of adjoin.legacy.optim."""

import io

import adjoin as torch
import pytest
from adjoin.legacy import nn, optim


def net():
    inside = nn.ConcatTable().add(nn.Linear(5, 3)).add(nn.Sequential().add(nn.Linear(5, 3)).add(nn.Tanh()))
    return nn.Sequential().add(nn.Linear(4, 5)).add(nn.ReLU()).add(inside).add(nn.CAddTable())


def test_one_vector_of_all_parameters():
    m, x = net(), torch.randn(6, 4)
    weight, before = m.get(0).weight, m.forward(x).clone()
    p, g = m.flattenParameters()
    assert p.numel() == g.numel() == 4 * 5 + 5 + 2 * (5 * 3 + 3) and m.get(0).weight is weight
    assert torch.equal(m.forward(x), before)
    p.zero_()
    assert not m.forward(x).any() and not weight.any()
    g.fill_(2)
    assert (m.get(0).gradWeight == 2).all()
    m.zeroGradParameters()
    p.uniform_(-1, 1)
    m.forward(x)
    m.backward(x, torch.ones(6, 3))
    assert g.norm() > 0 and torch.equal(g[:20].view(5, 4), m.get(0).gradWeight)


def test_shared_parameters_stay_shared():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    b.share(a, "weight", "gradWeight")
    both = nn.Sequential().add(a).add(b)
    p, g = both.getParameters()
    assert p.numel() == g.numel() == 9 + 3 + 3
    a.weight.fill_(7)
    assert (b.weight == 7).all()
    twin = a.clone("weight")
    a.weight.fill_(5)
    assert (twin.weight == 5).all() and twin.bias.data_ptr() != a.bias.data_ptr()


def test_looking_through_a_tree():
    m = net()
    found, places = m.findModules("nn.Linear")
    assert len(found) == 3 and places == [m, m.get(2), m.get(2).get(1)]
    assert m.findModules(nn.Tanh)[0] == [m.get(2).get(1).get(1)]
    assert len(m.listModules()) == 9 and m.size() == 4
    m.evaluate()
    assert not any(x.train for x in m.listModules())
    m.training()
    assert all(x.train for x in m.listModules())
    m.replace(lambda x: nn.Sigmoid() if isinstance(x, (nn.ReLU, nn.Tanh)) else x)
    assert len(m.findModules(nn.Sigmoid)[0]) == 2 and m.findModules(nn.ReLU)[0] == []
    m.insert(nn.Identity(), 0)
    assert type(m.get(0)) is nn.Identity
    m.remove(0)
    assert (
        repr(nn.Sequential(nn.Linear(2, 3), nn.Tanh()))
        == "nn.Sequential {\n  (0): nn.Linear(2 -> 3)\n  (1): nn.Tanh\n}"
    )
    kept, file = m.forward(torch.ones(1, 4)).clone(), io.BytesIO()
    m.write(file)
    file.seek(0)
    other = net()
    other.read(file)
    assert torch.equal(other.forward(torch.ones(1, 4)), kept)
    first = m.get(0).weight.clone()
    m.reset(0.01)
    assert not torch.equal(first, m.get(0).weight) and m.get(0).weight.abs().max() <= 0.01 * 3**0.5
    wide = nn.Linear(100, 100)
    wide.reset(0.01)
    assert wide.weight.std().item() == pytest.approx(0.01, rel=0.1)


class ByHand(nn.Module):
    """y = w x**2, as one wrote it."""

    def __init__(self):
        super().__init__()
        self.weight, self.gradWeight = torch.Tensor([1.5]), torch.zeros(1)

    def updateOutput(self, input):
        self.output = input * input * self.weight
        return self.output

    def updateGradInput(self, input, gradOutput):
        self.gradInput = 2 * input * gradOutput * self.weight
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):
        self.gradWeight.add_(scale * (input * input * gradOutput).sum())


class ByFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.gradWeight = torch.Tensor([1.5]), torch.zeros(1)

    def compute(self, input, weight):
        return input**2 * weight


@pytest.mark.parametrize("kind", [ByHand, ByFunction])
def test_modules_of_ones_own_in_containers(kind):
    own, x = kind(), torch.randn(4, 3)
    m = nn.Sequential().add(nn.Concat(1).add(own).add(nn.Linear(3, 2))).add(nn.Linear(5, 1))
    out, inside = m(x, torch.ones(4, 1))
    assert out.shape == (4, 1) and inside.shape == x.shape
    weight = m.get(1).weight[0, :3]
    assert torch.allclose(own.gradWeight, (x * x * weight).sum().reshape(1))
    assert torch.allclose(own.gradInput, 3 * x * weight)
    m.accUpdateGradParameters(x, torch.ones(4, 1), 0.1)
    assert torch.allclose(own.weight, torch.tensor([1.5]) - 0.1 * own.gradWeight)
    before = own.weight.clone()
    m.sharedAccUpdateGradParameters(x, torch.ones(4, 1), 0.1)
    assert torch.allclose(own.weight, before - 0.1 * own.gradWeight) and not torch.equal(own.weight, before)


def test_conversions_reach_everything():
    m = net().double()
    assert m.forward(torch.ones(2, 4).double()).dtype is torch.float64 and m.type() == "torch.DoubleTensor"
    m.type("torch.FloatTensor")
    assert m.get(2).get(1).get(0).gradBias.dtype is torch.float32
    norm = nn.SpatialBatchNormalization(2).double()
    assert norm.running_mean.dtype is torch.float64
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="cuda"):
            m.cuda(**{"async": True})


def test_a_network_learns():
    torch.manual_seed(0)
    x = torch.randn(64, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    m = nn.Sequential().add(nn.Linear(2, 16)).add(nn.Tanh()).add(nn.Linear(16, 2)).add(nn.LogSoftMax())
    criterion = nn.ClassNLLCriterion()
    first = criterion.forward(m.forward(x), y)
    for _ in range(200):
        m.zeroGradParameters()
        loss = criterion.forward(m.forward(x), y)
        m.backward(x, criterion.backward(m.output, y))
        m.updateParameters(0.5)
    assert loss < 0.3 * first


def quadratic(x):
    scale = torch.arange(1, 5, dtype=torch.float64)
    return (scale * x * x).sum().item() / 2, scale * x


def modern(kind, steps=12, **settings):
    x = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
    method = kind([x], **settings)
    for _ in range(steps):
        x.grad = quadratic(x.detach())[1]
        method.step()
    return x.detach()


def old(method, steps=12, **config):
    x, state = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64), {}
    for _ in range(steps):
        x_before = x.clone()
        got, fx, *_ = method(quadratic, x, config, state)
        assert got is x
        if method not in (optim.nag, optim.rprop):
            assert fx == quadratic(x_before)[0]
    assert state and "evalCounter" not in config
    return x


SAME = [
    ("sgd", dict(learningRate=0.1), torch.optim.SGD, dict(lr=0.1)),
    ("sgd", dict(learningRate=0.1, momentum=0.9, weightDecay=0.01), torch.optim.SGD,
     dict(lr=0.1, momentum=0.9, dampening=0.9, weight_decay=0.01)),
    ("sgd", dict(learningRate=0.05, momentum=0.9, dampening=0, nesterov=True), torch.optim.SGD,
     dict(lr=0.05, momentum=0.9, nesterov=True)),
    ("adam", dict(learningRate=0.1, beta1=0.8, beta2=0.9), torch.optim.Adam, dict(lr=0.1, betas=(0.8, 0.9), eps=1e-8)),
    ("adamax", dict(learningRate=0.1), torch.optim.Adamax, dict(lr=0.1, eps=1e-38)),
    ("adagrad", dict(learningRate=0.1, learningRateDecay=0.1), torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.1)),
    ("adadelta", dict(rho=0.8, weightDecay=0.1), torch.optim.Adadelta, dict(lr=1.0, rho=0.8, weight_decay=0.1)),
    ("rmsprop", dict(learningRate=0.1, alpha=0.9), torch.optim.RMSprop, dict(lr=0.1, alpha=0.9)),
    ("asgd", {"eta0": 0.1, "lambda": 0.01}, torch.optim.ASGD, dict(lr=0.1, lambd=0.01)),
    ("rprop", dict(stepsize=0.1), torch.optim.Rprop, dict(lr=0.1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "kind", "settings"), SAME, ids=str)
def test_steps_are_those_of_todays_optimizers(name, config, kind, settings):
    # Adam's epsilon stands beside another root today: a relative 1e-7.
    assert torch.allclose(old(getattr(optim, name), **config), modern(kind, **settings), rtol=1e-6, atol=1e-6)


def test_rates_of_their_own():
    rates = torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    x = old(optim.sgd, learningRate=0.1, learningRates=rates)
    assert x[1] == -2 and x[0].abs() < 0.5
    x = old(optim.sgd, learningRate=0.1, weightDecays=rates * 0.1)
    assert torch.allclose(x, modern(torch.optim.SGD, lr=0.1, weight_decay=0.1), rtol=1e-9) is False
    assert x[0] == modern(torch.optim.SGD, lr=0.1, weight_decay=0.1)[0]
    assert old(optim.nag, learningRate=0.05, steps=60).norm() < 0.05


def valley(x):
    with torch.enable_grad():
        place = x.detach().requires_grad_()
        f = ((1 - place[:-1]) ** 2 + 100 * (place[1:] - place[:-1] ** 2) ** 2).sum()
        return f.item(), torch.autograd.grad(f, place)[0]


@pytest.mark.parametrize(
    ("method", "config"),
    [
        ("cg", dict(maxIter=150)),
        ("lbfgs", dict(maxIter=100, lineSearch=True, tolFun=1e-9)),
        ("lbfgs", dict(maxIter=200, learningRate=0.5, tolFun=1e-9)),
    ],
)
def test_methods_that_search_come_down_a_valley(method, config):
    x = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    got, values, count = getattr(optim, method)(valley, x, config)
    assert got is x and (x - 1).abs().max() < 1e-3 and values[-1] < 1e-6 < values[0] and count > 5
    if method == "cg" or config.get("lineSearch"):
        assert all(a >= b for a, b in zip(values, values[1:]))


def test_lbfgs_goes_on_and_takes_a_search_of_ones_own():
    x, state, calls = torch.tensor([-1.2, 1.0], dtype=torch.float64), {}, []

    def halving(opfunc, x, t, d, f, g, gtd, options):
        calls.append(options)
        for _n in range(1, 30):
            new = x + t * d
            value, gradient = opfunc(new)
            if value <= f + 1e-4 * t * gtd:
                break
            t /= 2
        return value, gradient, new, t, _n

    for _ in range(12):
        optim.lbfgs(valley, x, {"maxIter": 5, "lineSearch": halving, "lineSearchOptions": "mine"}, state)
    assert (x - 1).abs().max() < 1e-3 and set(calls) == {"mine"} and len(state["memory"]) > 5


def test_wrong_uses_of_methods_are_told():
    with pytest.raises(ValueError, match="sgd: config is wanted"):
        optim.sgd(quadratic, torch.ones(4).double())
    with pytest.raises(ValueError, match="nesterov wants momentum above 0"):
        optim.sgd(quadratic, torch.ones(4).double(), {"nesterov": True})
    with pytest.raises(ValueError, match="nag: momentum is 0"):
        optim.nag(quadratic, torch.ones(4).double(), {"momentum": 0})


def test_a_network_in_one_vector_learns_by_every_method():
    for name in ("sgd", "adadelta", "adagrad", "adam", "adamax", "asgd", "cg", "lbfgs", "nag", "rmsprop", "rprop"):
        torch.manual_seed(0)
        x = torch.randn(40, 3)
        y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
        m, criterion = nn.Sequential().add(nn.Linear(3, 1)), nn.MSECriterion()
        p, g = m.flattenParameters()

        def opfunc(at):
            assert at is p
            g.zero_()
            loss = criterion.forward(m.forward(x), y)
            m.backward(x, criterion.backward(m.output, y))
            return loss, g

        first, config = opfunc(p)[0], {"eta0": 0.1, "maxIter": 10, "eps": 1e-2}
        config["learningRate"] = {"lbfgs": 1, "adagrad": 0.5}.get(name, 0.1)
        for _ in range(60):
            getattr(optim, name)(opfunc, p, config)
        assert opfunc(p)[0] < 0.1 * first, name
