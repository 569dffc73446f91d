"""tests/python/graph/step_test.py: compile(fn, replay=True) of whole steps of training: forward, backward and optimizer as one program."""

import adjoin
import pytest
import random_programs
from adjoin import _C, _replay, _stepped, nn
from adjoin.nn import functional as F
from breaks_test import bits


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """A step's program runs even where its calls would be faster, as they are for such small models."""
    monkeypatch.setattr(_replay, "TRIALS", 0)


def perceptron():
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4))


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Linear(3, 4)

    def forward(self, x):
        y = F.relu(self.norm(self.conv(x.reshape(-1, 1, 2, 3))))
        return self.head((y + 0.1 * y.sigmoid()).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.Linear(8, 20), nn.Linear(5, 4)

    def forward(self, x):
        h = c = adjoin.zeros(x.shape[0], 5)
        for t in range(2):
            i, forget, g, o = self.cell(adjoin.cat([x[:, 3 * t : 3 * t + 3], h], 1)).chunk(4, 1)
            c = forget.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return self.head(h)


def sgd(p):
    return adjoin.optim.SGD(p, lr=0.05, momentum=0.9)


def adam(p):
    return adjoin.optim.AdamW(p, lr=0.01)


class Twin:
    """A model and its optimizer, with a step of training."""

    def __init__(self, make=perceptron, optimizer=adam, step=None, replay=False):
        adjoin.manual_seed(3)
        self.model = make()
        self.optimizer = optimizer(self.model.parameters())
        own = (step or plain)(self.model, self.optimizer)
        self.step = adjoin.compile(own, replay=True) if replay else own

    def state(self):
        model, optimizer = self.model.state_dict(), self.optimizer.state_dict()["state"]
        grads = [p.grad for p in self.model.parameters()]
        kept = [v for own in optimizer.values() for v in own.values()]
        return [t if t is None else bits(t) for t in (*model.values(), *grads, *kept)]

    def recorded(self):
        return self.step._state.calls


def plain(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batch(n=7):
    return adjoin.randn(n, 6), adjoin.randint(0, 4, (n,))


def alike(a, b, steps=24, n=7):
    for i in range(steps):
        given = batch(n)
        assert bits(a.step(*given)) == bits(b.step(*given)), i
        assert a.state() == b.state(), i


@pytest.mark.parametrize("optimizer", [sgd, adam])
@pytest.mark.parametrize("make", [perceptron, Pictures, Recurrent])
def test_a_step_is_one_program(make, optimizer):
    a, b = Twin(make, optimizer), Twin(make, optimizer, replay=True)
    alike(a, b)
    assert b.recorded() < 9 and "its program runs" in str(b.step.explain())
    versions = [[p.grad._version for p in t.model.parameters()] for t in (a, b)]
    assert versions[0] == versions[1], versions


def test_the_loss_says_that_its_derivative_is_taken():
    a = Twin(replay=True)
    for _ in range(12):
        loss = a.step(*batch())
    assert loss.requires_grad and not loss.is_leaf and loss.grad_fn is not None
    with pytest.raises(RuntimeError, match="its backward pass with it; take derivatives inside"):
        loss.backward()


def clears_later(model, optimizer):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        (0.5 * F.cross_entropy(model(x * 2), y)).backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def fills_with_zeros(model, optimizer):
    def step(x, y):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return loss

    return step


def by_hand(model, optimizer):
    params = list(model.parameters())

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        with adjoin.no_grad():
            for p, g in zip(params, adjoin.autograd.grad(loss, params), strict=True):
                p.sub_(g, alpha=0.1)
        return loss

    return step


@pytest.mark.parametrize("step", [clears_later, fills_with_zeros, by_hand])
def test_gradients_are_kept_as_the_step_keeps_them(step):
    a, b = Twin(step=step), Twin(step=step, replay=True)
    alike(a, b)
    assert b.recorded() < 12, b.step.explain()


def test_a_gradient_that_is_there_already_is_added_to():
    def adds(model, optimizer):
        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    a, b = Twin(step=adds), Twin(step=adds, replay=True)
    alike(a, b)
    given = batch()
    for twin in (a, b):
        for p in twin.model.parameters():
            p.grad = adjoin.ones_like(p)
        twin.step(*given)
    assert a.state() == b.state()
    alike(a, b, 3)


def test_settings_and_state_that_others_change():
    a, b = Twin(optimizer=sgd), Twin(optimizer=sgd, replay=True)
    alike(a, b, 10)
    recorded = b.recorded()
    for twin in (a, b):
        twin.optimizer.param_groups[0]["weight_decay"] = 0.1
    alike(a, b, 10)
    assert recorded < b.recorded() < recorded + 6
    for twin in (a, b):
        twin.optimizer.load_state_dict(twin.optimizer.state_dict())
        twin.model.load_state_dict({k: v * 0.5 for k, v in twin.model.state_dict().items()})
    alike(a, b, 10)
    for twin in (a, b):
        twin.optimizer.param_groups[0]["momentum"] = 0.0
        twin.model[0].weight.requires_grad_(False)
    alike(a, b, 10)


def test_what_changes_between_recordings_is_seen():
    told = {"scale": 1.0}

    def scaled(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y) * told["scale"]
            loss.backward()
            optimizer.step()
            return loss

        return step

    a, b = Twin(step=scaled), Twin(step=scaled, replay=True)
    for i, scale in enumerate((1, 1, 2, 2, 2, 2, 2, 0.5, 2, 2, 0.5, 0.5, 0.5, 0.5, 0.5)):
        told["scale"] = float(scale)
        if i in (3, 11):
            for twin in (a, b):
                twin.model[1] = nn.ReLU() if i == 3 else nn.Tanh()
        alike(a, b, 1)
    for twin in (a, b):
        adjoin.manual_seed(8)
        twin.model[2] = nn.Linear(9, 4)
    alike(a, b, 9)


def test_other_sizes_are_another_program():
    a, b = Twin(), Twin(replay=True)
    for n in (7, 3, 7, 3, 7):
        alike(a, b, 8, n)
    assert b.recorded() < 20


def test_hooks_are_called():
    a, b = Twin(), Twin(replay=True)
    strange = adjoin.ones(1, requires_grad=True)
    strange.register_hook(lambda g: g)  # of nobody here
    alike(a, b, 12)
    assert b.recorded() < 12
    seen = []
    handles = [t.model[0].weight.register_hook(lambda g, t=t: seen.append(t) or g * 2) for t in (a, b)]
    alike(a, b, 5)
    assert seen == [a, b] * 5
    for h in handles:
        h.remove()
    alike(a, b, 3)


def asks(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if loss > 0:
            optimizer.step()
        return loss

    return step


def picks(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        some = (x[:, 0] > 0).nonzero()[:, 0]
        loss = F.cross_entropy(model(x), y) + x[some].sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


def draws_from_its_own(model, optimizer):
    own = adjoin.Generator().manual_seed(adjoin.initial_seed())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x + adjoin.randn(x.shape, generator=own)), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def seeds(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        adjoin.manual_seed(8)
        loss = F.cross_entropy(F.dropout(model(x)), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("step", [asks, draws_from_its_own, seeds, picks])
def test_what_is_no_program_runs_as_it_is(step):
    a, b = Twin(step=step), Twin(step=step, replay=True)
    for _ in range(20):
        given = batch()
        adjoin.manual_seed(5)
        first = bits(a.step(*given)), adjoin.get_rng_state().tolist()
        adjoin.manual_seed(5)
        assert first == (bits(b.step(*given)), adjoin.get_rng_state().tolist())
        assert a.state() == b.state()
    assert "runs as it is" in str(b.step.explain())


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(6, 9), nn.Linear(9, 4), nn.Dropout(0.3)

    def forward(self, x):
        x = x + 0.1 * adjoin.randn_like(x)
        x = self.drop(self.first(x).tanh())
        return self.last(F.rrelu(x, training=True) * adjoin.rand(9)) + F.dropout2d(x[:, :4, None])[:, :, 0]


def test_random_numbers_are_those_that_eager_would_draw():
    (a, b), steps = (Twin(Drawing), Twin(Drawing, replay=True)), set()
    for i in range(24):
        given = batch()
        if i % 5 == 4:  # any seed, and what others have drawn
            adjoin.manual_seed(-1 - i if i % 2 else i)
        if i % 3 == 2:
            adjoin.rand(7)
        state = adjoin.get_rng_state()
        first = bits(a.step(*given)), adjoin.get_rng_state().tolist()
        adjoin.set_rng_state(state)
        assert first == (bits(b.step(*given)), adjoin.get_rng_state().tolist()), i
        assert a.state() == b.state(), i
        steps.update(id(known.step) for known in b.step._state.known.values() if known.step)
    assert b.recorded() < 9 and "its program runs" in str(b.step.explain())
    assert len(steps) == 1  # compiled once


@pytest.mark.parametrize("optimizer", [sgd, adam])
def test_a_rate_that_changes_in_each_step(optimizer):
    def parts(params):
        first, *others = params
        made = optimizer([first])
        made.add_param_group({"params": others, "lr": 0.02})
        return made

    a, b = Twin(optimizer=parts), Twin(optimizer=parts, replay=True)
    schedules = [adjoin.optim.lr_scheduler.OneCycleLR(t.optimizer, [0.1, 0.3], total_steps=40) for t in (a, b)]
    for i in range(24):
        given = batch()
        assert bits(a.step(*given)) == bits(b.step(*given)), i
        assert a.state() == b.state(), i
        for schedule in schedules:
            schedule.step()
    assert b.recorded() < 9 and "its program runs" in str(b.step.explain())
    for lr in (1, adjoin.tensor(0.25), 0.0, 0.5):  # of another kind, and back
        for twin in (a, b):
            twin.optimizer.param_groups[1]["lr"] = lr
        alike(a, b, 4)


def reads_the_rate(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * (2 if optimizer.param_groups[0]["lr"] > 0.03 else 3)
        loss.backward()
        optimizer.step()
        return loss

    return step


def reads_a_group(model, optimizer):
    group = optimizer.param_groups[0]

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * (2 if group["lr"] > 0.03 else 3)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("step", [reads_the_rate, reads_a_group])
def test_who_reads_the_rate_is_asked_again(step):
    a, b = Twin(optimizer=sgd, step=step), Twin(optimizer=sgd, step=step, replay=True)
    for lr in (0.05, 0.02, 0.05):
        for twin in (a, b):
            twin.optimizer.param_groups[0]["lr"] = lr
        alike(a, b, 8)


def test_what_a_program_would_not_do_is_refused():
    adjoin.manual_seed(0)
    model = perceptron()
    optimizer = sgd(model.parameters())
    schedule = adjoin.optim.lr_scheduler.StepLR(optimizer, 2)

    def step(x, y):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        schedule.step()

    with pytest.raises(RuntimeError, match="'schedule', a StepLR, whose steps its program would not make"):
        adjoin.compile(step, replay=True)(*batch())
    hooked = Twin(replay=True)
    hooked.optimizer.register_step_post_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="AdamW has hooks"):
        hooked.step(*batch())


def test_an_argument_that_is_written():
    def step(x, w):
        (x * w).square().sum().backward()
        with adjoin.no_grad():
            w.sub_(w.grad, alpha=0.01)
            x.mul_(0.5)
        w.grad = None
        return w.detach().clone()

    g = adjoin.compile(step, replay=True)
    adjoin.manual_seed(1)
    w = adjoin.randn(4, requires_grad=True)
    v = w.detach().clone().requires_grad_()
    for _ in range(12):
        x = adjoin.randn(3, 4)
        y = x.clone()
        assert bits(step(x, w)) == bits(g(y, v)) and bits(x) == bits(y)
        assert bits(w) == bits(v) and v.grad is None


@pytest.mark.parametrize(
    "rehearsed, program, stays",
    [(0, 500, True), (0, 940, True), (0, 999, False), (0, 1_100, False), (1_050, 900, True), (1_200, 900, False)],
)
def test_the_faster_way_is_taken(monkeypatch, rehearsed, program, stays):
    """Microseconds; the calls take 1,000."""
    time, run, calls = [0], _stepped.Step.run, _replay.Tried.calls

    def takes(microseconds, f):
        def taking(*args):
            time[0] += 1_000 * microseconds
            return f(*args)

        return taking

    monkeypatch.setattr(_replay, "TRIALS", 5)
    monkeypatch.setattr(_replay, "now", lambda: time[0])
    monkeypatch.setattr(_stepped.Step, "rehearsed", lambda step, given: 1_000 * rehearsed)
    monkeypatch.setattr(_stepped.Step, "run", takes(program, run))
    monkeypatch.setattr(_replay.Tried, "calls", takes(1_000, calls))
    a, b = Twin(), Twin(replay=True)
    alike(a, b, 16)
    assert ("its program runs" if stays else "runs as it is: its program takes") in str(b.step.explain())


def test_a_rehearsal_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(_replay, "TRIALS", 5)
    rehearsals, rehearsed = [], _stepped.Step.rehearsed

    def kept(step, given):
        rehearsals.append(rehearsed(step, given))
        return rehearsals[-1]

    monkeypatch.setattr(_stepped.Step, "rehearsed", kept)
    a, b = Twin(Pictures), Twin(Pictures, replay=True)
    alike(a, b, 9)
    assert bits(adjoin.get_rng_state()) and len(rehearsals) == 1 and 0 < rehearsals[0] < 1 << 60


def test_random_steps():
    for seed in range(40, 52):  # more of them: random_programs.py
        _, f, inputs = random_programs.case(seed)
        assert random_programs.steps(f, inputs, seed, False)[:2] == random_programs.steps(f, inputs, seed, True)[:2], (
            seed
        )


def stepped(step):
    """The program of a step, after its first run: later ones are measured in turns with their calls."""
    run = adjoin.compile(step, replay=True)
    for _ in range(5):
        run()
    (known,) = [k for k in run._state.known.values() if k.step]
    return known.step.program


def test_sums_of_gradients_are_values_and_join_chains():
    adjoin.manual_seed(5)
    x, w = adjoin.randn(40, 50), adjoin.randn(50, 50, requires_grad=True)

    def step():
        w.grad = None
        y = x
        for _ in range(3):
            y = (y @ w).tanh() * 0.5 + y
        (y * y).mean().backward()

    program = stepped(step)
    assert " into " not in _C.program_text(program)
    calls, passes, groups, fused = _C.program_stats(program)
    assert groups >= 5 and fused >= 2 * groups and passes < calls - 8, (calls, passes, groups, fused)
    got = w.grad
    step()
    assert bits(got) == bits(w.grad)


def test_a_sum_waits_for_no_later_product():
    """Sums of gradients are made one by one: what is added is not kept until the last one is there."""
    w = adjoin.randn(64, 64, requires_grad=True)
    xs = [adjoin.randn(8, 64) for _ in range(10)]

    def step():
        w.grad = None
        sum(((x @ w).relu() * 0.5).sum() for x in xs).backward()

    program = stepped(step)
    text = _C.program_text(program)
    sums = [line for line in text.splitlines() if " = add(" in line and "[64, 64]" in line]
    calls, passes, groups, fused = _C.program_stats(program)
    assert len(sums) == 9 and passes >= len(sums) + 20, (text, passes)


@pytest.mark.parametrize("affine", [True, False])
def test_a_layer_norm_that_keeps_its_statistics_is_fused(affine):
    adjoin.manual_seed(6)
    x, y = (adjoin.randn(6, 200, requires_grad=True) for _ in range(2))
    w, b = (adjoin.randn(200, requires_grad=True) if affine else None for _ in range(2))
    given = [t for t in (x, y, w, b) if t is not None]

    def step():
        for t in given:
            t.grad = None
        F.layer_norm(x + y, (200,), w, b).square().sum().backward()

    program = stepped(step)
    assert "layer_norm_stats" in _C.program_text(program)
    _, _, groups, fused = _C.program_stats(program)
    assert groups >= 1 and fused >= 3, (groups, fused)
    got = [t.grad for t in given]
    step()
    assert [bits(g) for g in got] == [bits(t.grad) for t in given]
