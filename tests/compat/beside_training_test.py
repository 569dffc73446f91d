"""tests/compat/beside_training_test.py: networks from the same weights follow PyTorch's losses;
so do optimizers and schedules alone."""

import math

import pytest

torch = pytest.importorskip("torch")

torch.set_num_threads(1)  # its threads wait by spinning, which costs ours their cores

import adjoin
from beside import copy_weights, near, ours


def perceptron(nn):
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 5))


def convolutional(nn):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip


def transformer(nn):
    class Reader(nn.Module):
        """Word classes (N, 7) to one of five: embeddings, two encoder layers, the mean over
        positions."""

        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 16)
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.out = nn.Linear(16, 5)

        def forward(self, words):
            return self.out(self.encoder(self.embed(words)).mean(1))

    return Reader()


NETWORKS = {
    "MLP": (perceptron, lambda: torch.randn(64, 12)),
    "CNN": (convolutional, lambda: torch.randn(64, 1, 8, 8)),
    "transformer": (transformer, lambda: torch.randint(0, 11, (64, 7))),
}
OPTIMIZERS = {
    "SGD": lambda lib, params: lib.optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda lib, params: lib.optim.Adam(params, lr=2e-3),
    "AdamW": lambda lib, params: lib.optim.AdamW(params, lr=2e-3, weight_decay=0.05),
}


def train(lib, model, optimizer, x, y, steps):
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("network", NETWORKS)
def test_losses_follow(network, optimizer):
    build, inputs = NETWORKS[network]
    torch.manual_seed(0)
    other, mine = build(torch.nn), build(adjoin.nn)
    copy_weights(other, mine)
    x, y = inputs(), torch.randint(0, 5, (64,))
    make = OPTIMIZERS[optimizer]
    wanted = train(torch, other, make(torch, other.parameters()), x, y, 100)
    got = train(adjoin, mine, make(adjoin, mine.parameters()), ours(x), ours(y), 100)
    apart = [abs(a - b) for a, b in zip(got, wanted, strict=True)]
    assert max(apart[:20]) < 1e-4 and max(apart) < 1e-2
    assert wanted[-1] < 0.97 * wanted[0]  # there was something to follow


def minimize(lib, kind, settings, start):
    xs = [t.requires_grad_() for t in start]
    groups = [{"params": xs[:1]}, {"params": xs[1:], "lr": 0.03}]
    optimizer = getattr(lib.optim, kind)(groups, **settings)
    for i in range(30):
        optimizer.zero_grad()
        ((xs[0] ** 2).sum() * (i % 3 + 0.5) + (xs[1] ** 4).sum()).backward()
        optimizer.step()
    return xs, optimizer


@pytest.mark.parametrize(
    "kind, settings",
    [
        ("SGD", {"lr": 0.01}),
        ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.01, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
        ("Adam", {"weight_decay": 0.1}),
        ("Adam", {"amsgrad": True, "maximize": True}),
        ("AdamW", {"weight_decay": 0.3}),
    ],
)
def test_optimizers_take_the_same_path(kind, settings):
    torch.manual_seed(0)
    start = [torch.randn(3, 4), torch.randn(5)]
    mine, own = minimize(adjoin, kind, settings, [ours(t) for t in start])
    others, other = minimize(torch, kind, settings, [t.clone() for t in start])
    for a, b in zip(mine, others, strict=True):
        near(a, b, 1e-5)
    assert repr(own) == repr(other)
    a, b = own.state_dict(), other.state_dict()
    assert a["param_groups"] == b["param_groups"]
    for key in b["state"]:
        assert list(a["state"][key]) == list(b["state"][key])
        for name in b["state"][key]:
            near(a["state"][key][name], b["state"][key][name], 1e-5)


SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5]),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 10, 0.001),
    "LinearLR": lambda s, o: s.LinearLR(o),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 10)], [4]),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, cooldown=2),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_agree(name):
    paths = []
    for lib in (adjoin, torch):
        params = [lib.zeros(1, requires_grad=True), lib.zeros(1, requires_grad=True)]
        optimizer = lib.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}], lr=0.1)
        schedule = SCHEDULES[name](lib.optim.lr_scheduler, optimizer)
        path = []
        for i in range(25):
            optimizer.step()
            schedule.step(*([math.sin(i)] if name == "ReduceLROnPlateau" else []))
            path += [group["lr"] for group in optimizer.param_groups]
        paths.append((path, set(schedule.state_dict())))
    assert paths[0][0] == pytest.approx(paths[1][0], abs=1e-12)
    assert paths[0][1] == paths[1][1]
