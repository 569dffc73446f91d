"""tests/python/optim/optim_test.py: optimizers and schedules against their formulas in plain Python."""

import copy
import math
import pickle
import warnings
from collections import OrderedDict

import adjoin
import pytest
from adjoin import nn, optim
from adjoin.optim import lr_scheduler


def run(make, steps=5, start=(1.0, -2.0)):
    """Minimizes sum(x^2 / 2), whose gradient is x; returns the values after each step."""
    x = nn.Parameter(adjoin.tensor(list(start), dtype=adjoin.float64))
    optimizer = make([x])
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        (x * x / 2).sum().backward()
        optimizer.step()
        path.append(x.tolist())
    return path


def sgd(x, steps, lr, momentum=0.0, dampening=0.0, decay=0.0, nesterov=False):
    path, buf = [], None
    for _ in range(steps):
        g = x + decay * x
        if momentum:
            buf = g if buf is None else momentum * buf + (1 - dampening) * g
            g = g + momentum * buf if nesterov else buf
        x = x - lr * g
        path.append(x)
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.5},
        {"momentum": 0.9, "nesterov": True},
        {"decay": 0.1, "momentum": 0.5},
    ],
)
def test_sgd(settings):
    own = {("weight_decay" if k == "decay" else k): v for k, v in settings.items()}
    path = run(lambda p: optim.SGD(p, lr=0.1, **own))
    for i, start in enumerate((1.0, -2.0)):
        assert [x[i] for x in path] == pytest.approx(sgd(start, 5, 0.1, **settings), rel=1e-12)


def adam(x, steps, lr, decay=0.0, decoupled=False, amsgrad=False):
    path, m, v, top = [], 0.0, 0.0, 0.0
    for t in range(1, steps + 1):
        g = x
        if decoupled:
            x = x * (1 - lr * decay)
        else:
            g = g + decay * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        top = max(top, v)
        used = top if amsgrad else v
        x = x - lr * m / (1 - 0.9**t) / (math.sqrt(used / (1 - 0.999**t)) + 1e-8)
        path.append(x)
    return path


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(amsgrad, decay, decoupled):
    kind = optim.AdamW if decoupled else optim.Adam
    path = run(lambda p: kind(p, lr=0.1, weight_decay=decay, amsgrad=amsgrad), 8)
    for i, start in enumerate((1.0, -2.0)):
        wanted = adam(start, 8, 0.1, decay, decoupled, amsgrad)
        assert [x[i] for x in path] == pytest.approx(wanted, rel=1e-10)


def test_maximize_climbs():
    assert run(lambda p: optim.SGD(p, lr=0.1, maximize=True), 1)[0][0] == pytest.approx(1.1)


def test_groups_and_settings():
    a, b = nn.Parameter(adjoin.ones(1)), nn.Parameter(adjoin.ones(1))
    optimizer = optim.SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == pytest.approx((0.5, 0.9))
    with pytest.raises(ValueError, match="appear in more than one parameter group"):
        optimizer.add_param_group({"params": [a]})
    with pytest.raises(TypeError, match="can only optimize Tensors"):
        optimizer.add_param_group({"params": [3]})
    with pytest.raises(ValueError, match="non-leaf"):
        optimizer.add_param_group({"params": [a * 2]})
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([])
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
        optim.SGD(a)
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optim.SGD([a], lr=-1)
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum"):
        optim.SGD([a], nesterov=True)
    assert "lr: 0.5" in repr(optimizer)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_saving_and_going_on(kind):
    settings = {"lr": 0.1, **({"momentum": 0.9} if kind is optim.SGD else {})}

    def start():
        x = nn.Parameter(adjoin.tensor([1.0, -2.0]))
        return x, kind([x], **settings)

    def steps(x, optimizer, count):
        for _ in range(count):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()
        return x.tolist()

    x, optimizer = start()
    steps(x, optimizer, 3)
    y, other = start()
    with adjoin.no_grad():
        y.copy_(x)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    revived = pickle.loads(pickle.dumps(optimizer))
    assert steps(x, optimizer, 3) == steps(y, other, 3)
    assert revived.param_groups[0]["lr"] == 0.1 and len(revived.state) == 1
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"] and state["param_groups"][0]["params"] == [0]
    with pytest.raises(ValueError, match="different number of parameter groups"):
        other.load_state_dict({"state": {}, "param_groups": []})


def test_closures_and_hooks():
    x, calls = nn.Parameter(adjoin.ones(1)), []
    optimizer = optim.SGD([x], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *_: calls.append("post"))

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with adjoin.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert calls == ["pre", "post"] and x.item() == pytest.approx(0.8)


def test_an_optimizer_of_ones_own():
    class Signed(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            return self._step_groups(closure)

        @staticmethod
        def _update(param, grad, state, *, lr):
            param.sub_(grad.sign() * lr)

    assert run(lambda p: Signed(p, 0.25), 2) == [[0.75, -1.75], [0.5, -1.5]]


def rates(make, steps=12, lr=1.0):
    optimizer = optim.SGD([nn.Parameter(adjoin.ones(1))], lr=lr)
    schedule = make(optimizer)
    path = [optimizer.param_groups[0]["lr"]]
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        path.append(schedule.get_last_lr()[0])
    return path


CLOSED = {
    "step": (lambda o: lr_scheduler.StepLR(o, 3, 0.5), lambda e: 0.5 ** (e // 3)),
    "multi": (
        lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 5], 0.5),
        lambda e: 0.5 ** ((e >= 2) + 2 * (e >= 5)),
    ),
    "exponential": (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "lambda": (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: 1 / (1 + e)),
    "product": (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.9), lambda e: 0.9**e),
    "cosine": (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 5, 0.1),
        lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * e / 5)) / 2,
    ),
    "linear": (
        lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 4),
        lambda e: 0.5 + 0.5 * min(e, 4) / 4,
    ),
    "constant": (lambda o: lr_scheduler.ConstantLR(o, 0.5, 4), lambda e: 0.5 if e < 4 else 1.0),
    "power": (lambda o: lr_scheduler.PolynomialLR(o, 8, 2.0), lambda e: max(0, 1 - e / 8) ** 2),
}


@pytest.mark.parametrize("name", CLOSED)
def test_schedule(name):
    make, closed = CLOSED[name]
    assert rates(make) == pytest.approx([closed(e) for e in range(13)], abs=1e-12)


def test_schedules_in_sequence():
    def make(optimizer):
        first = lr_scheduler.ConstantLR(optimizer, 0.1, 100)
        return lr_scheduler.SequentialLR(optimizer, [first, lr_scheduler.ExponentialLR(optimizer, 0.5)], [3])

    assert rates(make, 5) == pytest.approx([0.1, 0.1, 0.1, 1.0, 0.5, 0.25])


def test_plateau():
    optimizer = optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, min_lr=0.2)
    seen = []
    for metric in (3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        schedule.step(adjoin.tensor(metric))
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2]


def test_schedule_saved():
    optimizer = optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 2, 0.5)
    optimizer.step()
    schedule.step()
    other = lr_scheduler.StepLR(optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0), 7)
    other.load_state_dict(schedule.state_dict())
    assert (other.last_epoch, other.step_size) == (1, 2)


def test_the_order_of_steps_is_watched():
    schedule = lr_scheduler.StepLR(optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0), 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()


def test_schedules_of_older_programs_print_their_rates(capsys):
    make = lambda: optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0)  # noqa: E731
    with pytest.warns(UserWarning, match="verbose parameter is deprecated"):
        schedule = lr_scheduler.StepLR(make(), 1, 0.5, -1, True)
    schedule.optimizer.step()
    schedule.step()
    told = [f"StepLR: learning rate of group 0 is {rate}" for rate in ("1.0000e+00", "5.0000e-01")]
    assert capsys.readouterr().out.splitlines() == told
    with pytest.warns(UserWarning, match="verbose parameter is deprecated"):
        plateau = lr_scheduler.ReduceLROnPlateau(make(), patience=0, verbose=True)
    capsys.readouterr()
    for metric in (1.0, 1.0):
        plateau.step(metric)
    assert capsys.readouterr().out == "ReduceLROnPlateau: learning rate of group 0 is 1.0000e-01\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "verbose" not in lr_scheduler.StepLR(make(), 1).state_dict()


def test_a_group_that_comes_later_has_the_lowest_rate_too():
    optimizer = optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0)
    one, each = (lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=low) for low in (0.4, [0.4]))
    optimizer.add_param_group({"params": [nn.Parameter(adjoin.ones(1))], "lr": 2.0})
    for _ in range(2):
        one.step(1.0)
    assert [group["lr"] for group in optimizer.param_groups] == [0.4, 0.4]
    each.step(1.0)
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer` .2. differs"):
        each.step(1.0)


def test_a_chain_in_a_sequence():
    def make(optimizer):
        chain = lr_scheduler.ChainedScheduler(
            [lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 5), lr_scheduler.ConstantLR(optimizer, 0.1, 5)]
        )
        return lr_scheduler.SequentialLR(optimizer, [chain, lr_scheduler.ConstantLR(optimizer, 0.5, 5)], [5])

    assert rates(make, 6) == pytest.approx([0.01, 0.028, 0.046, 0.064, 0.082, 0.5, 0.5])


def test_a_schedule_keeps_what_it_was_given_when_its_owner_writes_it():
    highest, momentum = adjoin.tensor(0.2), adjoin.tensor(0.9)
    optimizer = optim.SGD([nn.Parameter(adjoin.ones(1))], lr=adjoin.tensor(0.1), momentum=0.5)
    lr_scheduler.CyclicLR(optimizer, 0.1, highest, max_momentum=momentum)
    momentum.mul_(0.5)
    assert optimizer.param_groups[0]["max_momentum"] == pytest.approx(0.9)


def test_an_averaging_schedule_steps_without_a_warning():
    optimizer = optim.SGD([nn.Parameter(adjoin.ones(1))], lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule = optim.swa_utils.SWALR(optimizer, 0.5)
        optimizer.step()
        schedule.step()


def test_lbfgs_loads_a_state_from_before_maximize():
    parameter = nn.Parameter(adjoin.ones(1))
    state = optim.LBFGS([parameter]).state_dict()
    del state["param_groups"][0]["maximize"]
    optimizer = optim.LBFGS([parameter])
    optimizer.load_state_dict(state)

    def closure():
        parameter.grad = adjoin.zeros(1)
        return (parameter * 0).sum()

    assert optimizer.step(closure) == 0


def test_a_parameter_list_is_an_iterable_of_tensors():
    rows = nn.ParameterList([nn.Parameter(adjoin.ones(1))])
    optimizer = optim.SGD(rows, lr=1.0)
    rows[0].grad = adjoin.ones(1)
    optimizer.step()
    assert rows[0].item() == 0
    with pytest.raises(TypeError, match="not a ModuleList; use its .parameters()"):
        optim.SGD(nn.ModuleList([nn.Linear(1, 1)]), lr=1.0)


def test_a_wrapper_that_skips_the_constructor():
    class Wrapper(optim.Optimizer):
        def __init__(self, optimizer):
            self._optimizer_step_post_hooks, self.optimizer = OrderedDict(), optimizer
            self._patch_step_function()
            self.param_groups, self.state, self.defaults = optimizer.param_groups, optimizer.state, optimizer.defaults

        def step(self, closure=None):
            return self.optimizer.step(closure)

    parameter, seen = nn.Parameter(adjoin.ones(1)), []
    parameter.grad = adjoin.ones(1)
    wrapper = Wrapper(optim.SGD([parameter], lr=1.0))
    wrapper.register_step_post_hook(lambda *_: seen.append(1))
    wrapper.step()
    assert parameter.item() == 0 and seen == [1]
