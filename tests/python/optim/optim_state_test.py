"""tests/python/optim/optim_state_test.py: what recorded paths do not show: derivatives through steps, late parameters, old state
dicts, settings refused, averages of weights."""

import adjoin
import pytest
from adjoin import nn, optim
from adjoin.optim import lr_scheduler, swa_utils

NAMES = "RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor Muon LBFGS".split()
DIFFERENTIABLE = [
    ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}), ("Adamax", {}),
    ("NAdam", {"weight_decay": 0.1}), ("RAdam", {"betas": (0.5, 0.6)}), ("ASGD", {"t0": 1}), ("Rprop", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), DIFFERENTIABLE, ids=str)
def test_steps_have_derivatives(name, settings):
    def steps(start, grad):
        p = start.clone()
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=True, **settings)
        for scale in (1.0, 0.5, 2.0, 1.5, 0.25, 1.0):
            p.grad = grad * scale
            optimizer.step()
        return p

    start = adjoin.tensor([0.3, -1.2], dtype=adjoin.float64, requires_grad=True)
    grad = adjoin.tensor([0.7, 0.4], dtype=adjoin.float64, requires_grad=True)
    assert adjoin.autograd.gradcheck(steps, (start, grad))


@pytest.mark.parametrize("name", NAMES)
def test_late_parameters_and_going_on(name):
    def make():
        params = [nn.Parameter(adjoin.tensor([[1.0, -2.0], [0.5, 3.0]])) for _ in range(2)]
        return params, getattr(optim, name)(params, lr=0.1)

    def go(params, optimizer, steps, used=2):
        def closure():
            optimizer.zero_grad()
            loss = sum((p**2).sum() for p in params[:used])
            loss.backward()
            return loss

        for _ in range(steps):
            optimizer.step(closure)
        return [p.tolist() for p in params]

    params, optimizer = make()
    go(params, optimizer, 2, used=1)
    go(params, optimizer, 1)
    others, other = make()
    with adjoin.no_grad():
        for a, b in zip(others, params, strict=True):
            a.copy_(b)
    other.load_state_dict(optimizer.state_dict())
    assert go(params, optimizer, 2) == go(others, other, 2)
    before = params[0].tolist()
    optimizer.zero_grad()
    assert params[0].grad is None
    if name != "LBFGS":
        optimizer.step()
        assert params[0].tolist() == before


def test_counts_that_were_numbers():
    p = nn.Parameter(adjoin.ones(2))
    optimizer = optim.NAdam([p])
    p.grad = adjoin.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0] = {k: v.item() if v.dim() == 0 else v for k, v in state["state"][0].items()}
    del state["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(state)
    assert isinstance(optimizer.state[p]["mu_product"], adjoin.Tensor)
    optimizer.step()


def test_added_groups():
    a, b = nn.Parameter(adjoin.ones(2)), nn.Parameter(adjoin.ones(3))
    optimizer = optim.Adagrad([a], initial_accumulator_value=0.5)
    optimizer.add_param_group({"params": [b], "lr": 1.0})
    assert optimizer.state[b]["sum"].tolist() == [0.5] * 3
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [a]}, {"params": [b]}])
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([a])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer = optim.LBFGS([a], line_search_fn="other")

        def closure():
            loss = (a**2).sum()
            a.grad = 2 * a.detach()
            return loss

        optimizer.step(closure)


def test_averages():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
    mean, ema = (
        swa_utils.AveragedModel(net),
        swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5)),
    )
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(net[0].weight, value)
        mean.update_parameters(net)
        ema.update_parameters(net)
    assert mean.module[0].weight.item() == 3 and ema.module[0].weight.item() == 3.75
    assert mean.n_averaged == 3 and "n_averaged" in mean.state_dict()
    swa_utils.update_bn([(adjoin.tensor([[1.0], [3.0]]), None), adjoin.tensor([[5.0], [7.0]])], mean)
    assert mean.module[1].running_mean.item() == pytest.approx(12.0) and mean.module[1].momentum == 0.1
    with pytest.raises(ValueError, match="Invalid decay value"):
        swa_utils.get_ema_avg_fn(2)


def test_a_schedule_of_tensor_rates_and_of_callable_objects():
    class Scale:
        def __init__(self):
            self.power = 1

        def __call__(self, x):
            return 0.5**self.power

    p = nn.Parameter(adjoin.ones(1))
    optimizer = optim.Adam([p], lr=adjoin.tensor(0.1))
    schedule = lr_scheduler.CyclicLR(optimizer, 0.1, 0.3, 2, scale_fn=Scale())
    schedule._scale_fn_custom.power = 3
    state = schedule.state_dict()
    assert state["_scale_fn_custom"] == {"power": 3}
    other = lr_scheduler.CyclicLR(optimizer, 0.1, 0.3, 2, scale_fn=Scale())
    other.load_state_dict(state)
    assert other.scale_fn(1) == 0.125
    p.grad = adjoin.ones(1)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"].item() == pytest.approx(0.1 + 0.2 / 2 * 0.125)
