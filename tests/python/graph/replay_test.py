"""tests/python/graph/replay_test.py: compile(fn, replay=True): the results of eager, what is looked at before each run, what is refused."""

import cProfile
import math
import pstats
import random

import adjoin
import pytest
from adjoin import _replay, nn
from adjoin.nn import functional as F
from breaks_test import bits


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Programs run even where the function would be faster, as it is on such small tensors."""
    monkeypatch.setattr(_replay, "TRIALS", 0)


calls = []
scale = 2.0
box = {"k": 3.0}


def chain(x, y):
    z = (x * 1.5 + y).tanh()
    return z * z - x.sigmoid() * 0.5


def python_runs(g):
    """How many of a compiled function's calls ran its Python."""
    return g._state.calls


def test_the_program_runs_in_its_place():
    g = adjoin.compile(chain, replay=True)
    for _ in range(40):
        x, y = adjoin.randn(5, 7), adjoin.randn(7)
        assert bits(g(x, y)) == bits(chain(x, y))
    assert python_runs(g) < 9 and "runs" in str(g.explain())
    x = adjoin.randn(3)  # other sizes are another program
    assert bits(g(x, x.clone())) == bits(chain(x, x))


class Clock:
    """Tells that the function and its program take so many nanoseconds, in turns."""

    def __init__(self, *took):
        self.reads, self.took = 0, took

    def __call__(self):
        self.reads += 1
        return 0 if self.reads % 2 else self.took[(self.reads // 2 - 1) % 2]


@pytest.mark.parametrize("program, runs", [(500_000, True), (940_000, True), (960_000, False), (2_000_000, False)])
def test_from_the_third_call_on_the_faster_way_is_taken(monkeypatch, program, runs):
    monkeypatch.setattr(_replay, "TRIALS", 5)
    monkeypatch.setattr(_replay, "now", Clock(1_000_000, program))
    seen = []

    def own(x, y):
        return F.dropout(chain(x, y), 0.5)

    g = adjoin.compile(own, replay=True)
    adjoin.manual_seed(2)
    got, x = [], adjoin.randn(5)
    for _ in range(5):
        before = g._state.calls
        got.append(bits(g(x, x.clone())))
        seen.append(g._state.calls != before)
    assert seen == [True, True, False, False, False]  # the trials are no calls of anybody's
    adjoin.manual_seed(2)
    adjoin.randn(5)
    assert got == [bits(own(x, x)) for _ in range(5)]
    assert ("its program runs" if runs else "runs as it is: its program takes") in str(g.explain())


def test_what_writes_is_done_once(monkeypatch):
    monkeypatch.setattr(_replay, "TRIALS", 5)

    def own(x, y):
        x.add_(y)
        return x * y

    g = adjoin.compile(own, replay=True)
    x, z, y = adjoin.zeros(4), adjoin.zeros(4), adjoin.ones(4)
    for _ in range(14):
        assert bits(g(x, y)) == bits(own(z, y)) and bits(x) == bits(z) and x._version == z._version


def test_one_program_serves_all_sizes():
    def f(x, w):
        n = x.shape[0]
        y = x.reshape(n // 2, 2, -1).sum(1) if n % 2 == 0 else x
        return (y @ w).softmax(-1) * n + x.mean(0, keepdim=True)[:, : w.shape[1]]

    def g_(x, w):
        return (x @ w).softmax(-1) * x.shape[0] + x.new_zeros(x.shape[0], w.shape[1])

    w = adjoin.randn(4, 3)
    g = adjoin.compile(g_, replay=True)
    for n in (5, 5, 7, 9, 2, 33, 6, 8, 5, 12, 40):
        x = adjoin.randn(n, 4)
        assert bits(g(x, w)) == bits(g_(x, w))
    assert python_runs(g) < 7
    for n in (1, 0, 1):  # are another matter
        assert bits(g(adjoin.ones(n, 4), w)) == bits(g_(adjoin.ones(n, 4), w))
    apart = adjoin.compile(g_, replay=True, dynamic=False)
    for n in (5, 7, 9, 11):
        apart(adjoin.randn(n, 4), w)
    assert python_runs(apart) == 4
    h = adjoin.compile(f, replay=True)  # whose calls differ with the sizes: each has its own program
    for n in (4, 4, 4, 6, 6, 5, 7, 4, 6, 5, 5, 8):
        x = adjoin.randn(n, 4)
        assert bits(h(x, w)) == bits(f(x, w))


def test_sizes_that_are_one_stay_one():
    def f(a, b):
        return a.sum(0) + b.sum(0)

    g = adjoin.compile(f, replay=True)
    for n, m in ((3, 3), (5, 5), (7, 7), (4, 6), (6, 4), (9, 9), (4, 4)):
        a, b = adjoin.randn(n, 2), adjoin.randn(m, 2)
        assert bits(g(a, b)) == bits(f(a, b))


def test_nested_arguments_names_and_results():
    def f(pair, *, more, k=2, flag=True):
        a, b = pair
        total = a * k + more["z"][0] if flag else a
        return {"sum": total, "parts": (a - b, [b, None, k])}

    g = adjoin.compile(f, replay=True)
    for i in range(20):
        a, b, z = (adjoin.randn(4) for _ in range(3))
        words = {"more": {"z": [z]}, "k": 2 + i % 2}
        got, wanted = g((a, b), **words), f((a, b), **words)
        assert bits(got["sum"]) == bits(wanted["sum"]) and bits(got["parts"][0]) == bits(wanted["parts"][0])
        assert got["parts"][1][1:] == wanted["parts"][1][1:] and got["parts"][1][0] is not None
    assert python_runs(g) < 14


def test_dtypes_layouts_and_grad_mode_are_other_programs():
    g = adjoin.compile(chain, replay=True)
    for _ in range(3):
        for dtype in (adjoin.float32, adjoin.float64, adjoin.float16):
            x = adjoin.randn(4, 6).to(dtype)
            for a in (x, x.t().contiguous().t(), x[:, ::2], x[:0]):
                for _ in range(5):
                    assert bits(g(a, a.clone())) == bits(chain(a, a))
                    with adjoin.no_grad():
                        assert bits(g(a, a.clone())) == bits(chain(a, a))


def train(wrap, steps=14):
    adjoin.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 3))
    model = wrap(net)
    sgd = adjoin.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for i in range(steps):
        if i == steps // 2:
            net.eval()
            losses.append(model(adjoin.ones(2, 6)).sum().item())
            net.train()
        loss = F.cross_entropy(model(adjoin.randn(5, 6)), adjoin.arange(5) % 3)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses, bits(list(net.state_dict().values())), adjoin.get_rng_state().tolist()


def test_a_module_trains_as_in_eager():
    assert train(lambda net: adjoin.compile(net, replay=True)) == train(lambda net: net)


def test_parameters_and_attributes_are_looked_at():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.k, self.norm = nn.Linear(3, 3), 2.0, nn.LayerNorm(3)

        def forward(self, x):
            x = self.l(x) * self.k
            return self.norm(x) if self.training else x

    net = Net()
    g = adjoin.compile(net, replay=True)
    x = adjoin.randn(2, 3)

    def same():
        for _ in range(6):
            assert bits(g(x)) == bits(net(x))

    same()
    net.k = 3.0
    same()
    net.eval()
    same()
    net.l.weight = nn.Parameter(adjoin.ones(3, 3))
    same()
    net.l = nn.Linear(3, 3, bias=False)
    same()
    with adjoin.no_grad():
        net.l.weight.mul_(2)
    same()
    net.register_forward_hook(lambda m, i, o: o + 1)
    same()
    net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})
    same()
    hook = nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 2)
    same()
    hook.remove()
    same()
    net.l.register_full_backward_hook(lambda m, i, o: None)
    with pytest.raises(RuntimeError, match="Linear has backward hooks"):
        g(x)


def test_globals_and_closures_are_looked_at():
    global scale
    shift = 1.0

    def f(x):
        return x * scale + shift + math.sqrt(box["k"])

    g = adjoin.compile(f, replay=True)
    x = adjoin.ones(3)
    for value in (2.0, 3.0, 2.0):
        scale, shift, box["k"] = value, value + 1, value * 2
        for _ in range(6):
            assert bits(g(x)) == bits(f(x))
    scale, box["k"] = 2.0, 3.0


def test_random_numbers_are_eagers():
    def f(x):
        return F.dropout(x, 0.5) + adjoin.rand(4)

    g = adjoin.compile(f, replay=True)
    x = adjoin.ones(4)
    adjoin.manual_seed(3)
    got = [bits(g(x)) for _ in range(12)]
    adjoin.manual_seed(3)
    assert got == [bits(f(x)) for _ in range(12)]


def test_writes_to_inputs_happen():
    def f(x, y):
        x.mul_(2)
        y.add_(1)
        return x.sum()

    g = adjoin.compile(f, replay=True)
    for _ in range(9):
        x, y = adjoin.randn(4), adjoin.randn(4)
        other = x.clone()
        version, before = x._version, other._version
        assert bits(g(x, y)) == bits(f(other, y)) and bits(x) == bits(other)
        assert x._version - version == other._version - before
    base = adjoin.randn(8)
    for _ in range(6):  # what is written shares memory with another input: not what was recorded
        other = base.clone()
        assert bits(g(base[:4], base[2:6])) == bits(f(other[:4], other[2:6])) and bits(base) == bits(other)


def _log(x):
    calls.append(1)
    return x * 2


def _attribute(x):
    chain.last = 1
    return x * 2


def _print(x):
    print("here")
    return x * 2


def _random(x):
    return x * random.random()


def _global(x):
    global scale
    scale = 2.0
    return x * 2


def _inner(x):
    return _log(x) + 1


@pytest.mark.parametrize(
    "f, word",
    [
        (_log, "list"),
        (_attribute, "last"),
        (_print, "print"),
        (_random, "random"),
        (_global, "scale"),
        (_inner, "list"),
    ],
)
def test_what_does_more_than_tensors_is_refused(f, word):
    with pytest.raises(RuntimeError, match=rf"replay=True.*replay_test.py:\d+.*{word}"):
        adjoin.compile(f, replay=True)(adjoin.ones(2))


def test_a_decision_by_a_value_is_refused():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(RuntimeError, match="traced tensor") as told:
        adjoin.compile(f, replay=True)(adjoin.ones(2))
    assert told.traceback[-1].lineno + 1 >= f.__code__.co_firstlineno  # where it stands


def test_another_recording_is_an_error():
    class Hidden:
        __slots__ = ("k",)

    hidden = Hidden()
    hidden.k = 2.0

    def f(x):
        return x * hidden.k

    g = adjoin.compile(f, replay=True)
    x = adjoin.ones(2)
    for _ in range(4):
        g(x)
    hidden.k = 5.0
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(RuntimeError, match=rf"mul.*2.*mul.*5.*replay_test.py:{line}"):
        for _ in range(10):
            g(x)


def test_an_argument_that_cannot_be_looked_at_is_refused():
    class Config:
        k = 2

    g = adjoin.compile(lambda x, c: x * c.k, replay=True)
    with pytest.raises(TypeError, match="Config"):
        g(adjoin.ones(2), Config())


def test_a_profiler_sees_it_and_goes_on():
    def mine(x):
        return x * 2 + python_only(x)

    g, seen = adjoin.compile(mine, replay=True), cProfile.Profile()
    x = adjoin.randn(3)
    seen.enable()
    for _ in range(12):
        assert bits(g(x)) == bits(mine(x))
    python_only(x)
    seen.disable()
    assert any(name == "python_only" for _, _, name in pstats.Stats(seen).stats)


def python_only(x):
    return x - 1


def test_it_is_a_function():
    g = adjoin.compile(chain, replay=True)
    assert g.__name__ == "chain" and g.__wrapped__ is chain and "x" in str(adjoin.compile(chain).__signature__)

    class Holder:
        @adjoin.compile
        def times(self, x):
            return x * self.k

        k = 3

    h = Holder()
    for _ in range(30):
        assert h.times(adjoin.ones(1)).item() == 3
    with pytest.raises(ValueError, match="fused"):
        adjoin.compile(chain, replay=True, options={"fused": False})
