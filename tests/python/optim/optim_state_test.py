"""tests/python/optim/optim_state_test.py: what recorded paths do not show: derivatives through steps, late parameters, old state
dicts, settings refused, averages of weights."""

import copy

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


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad])
@pytest.mark.parametrize("fused", [False, True])
def test_other_tensors_for_a_while(kind, fused):
    adjoin.manual_seed(0)
    settings = {"momentum": 0.9} if kind is optim.SGD else {}
    if fused and kind in (optim.SGD, optim.Adam, optim.AdamW):
        settings["fused"] = True
    net, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = kind(net.parameters(), lr=0.1, **settings)

    def step(net):
        for p in net.parameters():
            p.grad = p.detach() + 1
        optimizer.step()

    step(net)
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0]["lr"] = 0.5
    alone = nn.Linear(2, 2)
    alone.load_state_dict(other.state_dict())
    same = kind(alone.parameters(), lr=0.1, **settings)
    same.load_state_dict(copy.deepcopy(saved))
    for p in alone.parameters():
        p.grad = p.detach() + 1
    same.step()
    before = [p.clone() for p in net.parameters()]
    state = {p: dict(s) for p, s in optimizer.state.items()}
    with optim.swap_in_optimizer_params_and_state(optimizer, dict(other.named_parameters()), saved):
        assert optimizer.param_groups[0]["lr"] == 0.5
        step(other)
    assert all(adjoin.allclose(a, b) for a, b in zip(other.parameters(), alone.parameters(), strict=True))
    assert all(a.equal(b) for a, b in zip(net.parameters(), before, strict=True))
    assert (
        optimizer.param_groups[0]["lr"] == 0.1
        and {p: dict(s) for p, s in optimizer.state.items()}.keys() == state.keys()
    )
    step(net)
    assert all(not a.equal(b) for a, b in zip(net.parameters(), before, strict=True))


def test_other_tensors_that_do_not_fit():
    net = nn.Linear(2, 2)
    optimizer, swap = optim.Adam(net.parameters()), optim.swap_in_optimizer_params_and_state
    named = dict(net.named_parameters())
    with pytest.raises(RuntimeError, match="no state yet"), swap(optimizer, named, optimizer.state_dict()):
        pass
    net(adjoin.ones(1, 2)).sum().backward()
    optimizer.step()
    good = optimizer.state_dict()
    group = good["param_groups"][0]
    for tensors, state, message in (
        (named, [], "a state dict is wanted, not a list"), (named, {"state": {}}, "must have 'state'"),
        (named, {**good, "param_groups": []}, "has 0 groups and the optimizer 1"), ({}, good, "0 parameters and the groups have 2"),
        (named, {**good, "param_groups": [{"params": [0, 1]}]}, "settings of group 0 differ"),
        (named, {**good, "param_groups": [{**group, "params": [0]}]}, "group 0 has 1 parameters"),
        (named, {**good, "state": {7: {}}}, "entries of no parameter: .7."),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message), swap(optimizer, tensors, state):
            pass
    with pytest.raises(KeyError), swap(optimizer, named, good):
        raise KeyError
    assert optimizer.param_groups[0]["params"] == list(net.parameters())


def test_parameters_in_no_order_are_warned_of():
    params = {nn.Parameter(adjoin.ones(2)), nn.Parameter(adjoin.ones(3))}
    with pytest.warns(FutureWarning, match="ordered collections"):
        optim.SGD(params)


@pytest.mark.parametrize("way", [{}, {"momentum": 0.5}], ids=str)
def test_only_what_needs_state_has_some(way):
    p = nn.Parameter(adjoin.ones(2, dtype=adjoin.complex64))
    optimizer = optim.SGD([p], lr=0.1, **way)
    p.grad = adjoin.ones_like(p)
    optimizer.step()
    assert p.tolist() == pytest.approx([0.9, 0.9]) and bool(optimizer.state_dict()["state"]) == ("momentum" in way)


def test_muon_scales_by_rows_over_columns_unclamped():
    moved = []
    for way in ("original", "spectral_unclamped"):
        p = nn.Parameter(adjoin.zeros(2, 8))
        p.grad = adjoin.eye(8)[:2]
        optim.Muon([p], lr=1.0, weight_decay=0.0, adjust_lr_fn=way).step()
        moved.append(p.detach())
    adjoin.testing.assert_close(moved[1], moved[0] * 0.5)


def test_what_adam_refuses():
    p, half = nn.Parameter(adjoin.ones(2)), adjoin.tensor(0.5)
    for kind in (optim.Adam, optim.AdamW):
        with pytest.raises(ValueError, match="both floats or both Tensors"):
            kind([p], betas=(half, 0.9))
        with pytest.raises(ValueError, match="betas as Tensors"):
            kind([p], betas=(half, half), foreach=True)
    with pytest.raises(ValueError, match="complex parameters"):
        optim.SparseAdam([adjoin.ones(2, dtype=adjoin.complex64)])


def test_adagrad_of_rows_is_adagrad_of_the_dense_gradient():
    table = adjoin.randn(6, 3, dtype=adjoin.float64)
    rows, dense = (adjoin.nn.Parameter(table.clone()) for _ in range(2))
    one, two = (adjoin.optim.Adagrad([p], lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2) for p in (rows, dense))
    for step in range(3):
        index = adjoin.tensor([[0, step, 4, 4]])
        grad = adjoin.sparse_coo_tensor(index, adjoin.randn(4, 3, dtype=adjoin.float64), (6, 3))
        rows.grad, dense.grad = grad, grad.to_dense()
        one.step(), two.step()
    assert adjoin.allclose(rows, dense, rtol=1e-14) and not adjoin.allclose(dense, table)
    decay = adjoin.optim.Adagrad([rows], weight_decay=0.1)
    with pytest.raises(RuntimeError, match="not compatible with sparse gradients"):
        decay.step()


def test_derivatives_through_the_state_of_nadam():
    product = adjoin.tensor(0.9, dtype=adjoin.float64)

    def after(product):
        param = adjoin.ones(2, dtype=adjoin.float64).requires_grad_()
        start = param.clone()
        opt = adjoin.optim.NAdam([start], lr=0.5, differentiable=True)
        opt.state[start] = {
            "step": adjoin.tensor(10.0), "mu_product": product.clone(),
            "exp_avg": adjoin.full_like(param, 0.3), "exp_avg_sq": adjoin.full_like(param, 0.2),
        }  # fmt: skip
        start.grad = adjoin.tensor([0.1, -0.4], dtype=adjoin.float64)
        opt.step()
        return start

    assert adjoin.autograd.gradcheck(after, (product.requires_grad_(),))


def test_schedules_of_old_state_dicts():
    from adjoin.optim.lr_scheduler import OneCycleLR

    def schedule(how):
        opt = adjoin.optim.SGD([adjoin.nn.Parameter(adjoin.ones(1))], lr=0.1)
        return OneCycleLR(opt, 1.0, total_steps=10, anneal_strategy=how, cycle_momentum=False)

    def rates(made):
        out = []
        for _ in range(8):
            made.optimizer.step(), made.step()
            out.append(made.get_last_lr()[0])
        return out

    wanted = {how: rates(schedule(how)) for how in ("cos", "linear")}
    assert wanted["cos"] != wanted["linear"]
    for how, function in (("cos", OneCycleLR._annealing_cos), ("linear", OneCycleLR._annealing_linear)):
        old = schedule(how)
        state = old.state_dict()
        del state["_anneal_func_type"], old._anneal_func_type
        old.load_state_dict({**state, "anneal_func": function})
        assert rates(old) == wanted[how]
