"""tests/python/graph/compile_test.py: adjoin.compile: the results of eager, what explain tells, fullgraph, and what is refused."""

import copy
import pickle

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import functional as F
from breaks_test import bits

N = 600


def chain(x, y):
    z = (x * 1.5 + y).tanh()
    z = z * z - x.sigmoid() * 0.5
    return z.exp() + y


def test_a_function_keeps_name_and_bits():
    f = adjoin.compile(chain)
    assert f.__name__ == "chain"
    for _ in range(20):
        x, y = adjoin.randn(N, N), adjoin.randn(N)
        assert bits(f(x, y)) == bits(chain(x, y))
    assert f(adjoin.ones(3), adjoin.ones(3)).tolist() == chain(adjoin.ones(3), adjoin.ones(3)).tolist()
    with pytest.raises(TypeError):
        f(1, 2, 3)


def test_what_wins_nothing_runs_as_it_is():
    calls = []

    @adjoin.compile
    def small(x):
        calls.append(adjoin._lazy.scope_is_open())
        return x * 2 + 1

    for i in range(40):
        assert small(adjoin.full((3,), float(i))).tolist() == [2 * i + 1] * 3
    assert calls[0] and sum(calls) < 20 and small.explain().verdict.startswith("runs as it is")


@pytest.mark.parametrize(
    "fused, single, wins",
    [(100_000, 1_000_000, True), (700_000, 1_000_000, True), (980_000, 1_000_000, False), (1_000, 4_000, False)],
)
def test_from_the_third_call_on_the_faster_way_is_taken(monkeypatch, fused, single, wins):
    scopes, written_down = [], adjoin._compile.Compiled.written_down

    def timed(state, args, kwargs, more=0):
        *told, times = written_down(state, args, kwargs, more)
        assert (min(times) > 0) is (more != 0)
        return *told, (fused, single) if more else times

    monkeypatch.setattr(adjoin._compile.Compiled, "written_down", timed)

    @adjoin.compile
    def f(x, y):
        scopes.append(adjoin._lazy.scope_is_open())
        return F.dropout(chain(x, y), 0.5)

    x, y = adjoin.randn(4, 5), adjoin.randn(5)
    adjoin.manual_seed(1)
    got = [bits(f(x, y)) for _ in range(3)]
    adjoin.manual_seed(1)
    assert got == [bits(F.dropout(chain(x, y), 0.5)) for _ in range(3)]
    assert scopes == [True, True, wins]


def test_python_runs_each_time():
    log, scale = [], [2.0]

    @adjoin.compile
    def f(x, up):
        log.append(len(log))
        if up:
            x = x + 1
        return x.exp() * scale[0] + len(log)

    for i in range(6):
        scale[0] = float(i)
        x = adjoin.randn(N, N)
        up = i % 2 == 0
        assert f(x, up).equal((x + 1 if up else x).exp() * float(i) + (i + 1))
    assert len(log) == 6


def test_modules_train():
    def train(wrap):
        adjoin.manual_seed(0)
        net = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Dropout(0.1), nn.Linear(512, 4))
        model = wrap(net)
        sgd = adjoin.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for _ in range(6):
            x = adjoin.randn(520, 512)
            loss = F.cross_entropy(model(x), adjoin.arange(520) % 4)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
        return losses, bits([p for p in net.parameters()])

    assert train(adjoin.compile) == train(lambda net: net)


def test_a_compiled_module_is_its_module():
    net = nn.Linear(3, 2)
    net.scale = 2
    made = adjoin.compile(net)
    assert isinstance(made, adjoin._dynamo.OptimizedModule) and isinstance(made, nn.Module)
    assert (
        list(made.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
        and made.scale == 2
        and made.weight is net.weight
    )
    x = adjoin.ones(1, 3)
    assert made(x).equal(net(x))
    made.eval()
    assert not net.training
    made.scale = 3
    assert net.scale == 3
    net.register_forward_hook(lambda m, i, o: o * 2)
    assert made(x).equal(net(x))


def test_a_whole_training_step():
    def make():
        adjoin.manual_seed(0)
        net = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512))
        return net, adjoin.optim.Adam(net.parameters(), lr=0.01)

    def step(net, adam, x):
        adam.zero_grad()
        loss = (F.gelu(net(x)) * 2 + 1).pow(2).mean()
        loss.backward()
        adam.step()
        return loss

    eager, lazily = make(), make()
    f = adjoin.compile(step)
    for _ in range(5):
        x = adjoin.randn(520, 512)
        assert bits(f(*lazily, x)) == bits(step(*eager, x))
    assert bits(list(eager[0].parameters())) == bits(list(lazily[0].parameters()))


def test_fullgraph_names_the_line_of_the_break():
    @adjoin.compile(fullgraph=True)
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y
        return -y

    line = f.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(RuntimeError, match=rf"fullgraph.*compile_test.py:{line}"):
        f(adjoin.ones(3))
    with pytest.raises(RuntimeError, match="nonzero"):
        adjoin.compile(lambda x: (x * 2).nonzero(), fullgraph=True)(adjoin.ones(3))
    g = adjoin.compile(chain, fullgraph=True)
    for n in (3, 3, 3, 4, N, N, N, N):
        x = adjoin.randn(n)
        assert bits(g(x, x)) == bits(chain(x, x))


def test_what_is_unknown_is_refused():
    for words, told in (
        ({"mode": "fast"}, "max-autotune"),
        ({"options": {"no_such": 1}}, "no_such"),
        ({"backend": "tvm"}, "tvm"),
        ({"backend": lambda g, x: g}, "symbolic_trace"),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match=told):
            adjoin.compile(chain, **words)
    with pytest.raises(TypeError, match="function"):
        adjoin.compile(3)
    for words in (
        {"mode": "max-autotune"},
        {"options": {"epilogue_fusion": True}},
        {"dynamic": True},
        {"backend": "inductor"},
    ):
        assert adjoin.compile(chain, **words)(adjoin.ones(2), 1).tolist() == chain(adjoin.ones(2), 1).tolist()
    assert adjoin.compile(chain, backend="eager") is chain and adjoin.compile(chain, disable=True) is chain


def test_disable_stance_and_reset():
    seen = []

    @adjoin.compiler.disable
    def apart(x):
        seen.append(adjoin._lazy.scope_is_open())
        return x.sum()

    @adjoin.compile
    def f(x):
        seen.append(adjoin._lazy.scope_is_open())
        return apart(x * 2) + 1

    x = adjoin.ones(4)
    assert f(x).item() == 9 and seen == [True, False]
    adjoin.compiler.reset()
    seen.clear()
    with adjoin.compiler.set_stance("force_eager"):
        assert f(x).item() == 9
    assert seen == [False, False] and f(x).item() == 9 and seen[2:] == [True, False]
    assert not adjoin.compiler.is_compiling() and adjoin.compiler.list_backends() == ["adjoin", "inductor"]
    with pytest.raises(RuntimeError, match="stance"):
        adjoin.compiler.set_stance("often")


def test_dynamo_explain_counts_programs_and_breaks():
    def f(x):
        y = x * 2
        n = y.sum().item()
        return y + n

    told = adjoin._dynamo.explain(f)(adjoin.ones(3))
    assert (told.graph_count, told.graph_break_count, told.op_count) == (2, 1, 3)
    assert "value" in told.break_reasons[0].reason and "compile_test.py" in told.break_reasons[0].line
    assert "Graph Break Count: 1" in str(told)


def test_check_option_and_recursion_of_scopes():
    inner = adjoin.compile(chain)
    outer = adjoin.compile(lambda x: inner(x, x) * 2, options={"check": True})
    x = adjoin.randn(N, N)
    assert bits(outer(x)) == bits(chain(x, x) * 2)


def test_draws_and_views_of_arguments_are_no_new_calls():
    @adjoin.compile
    def f(x):
        return nn.functional.dropout((x[0] + x[1]) * 2 + 1, 0.5, True)

    state, x = f._state, adjoin.randn(2, N)
    fresh = [state.written_down((x,), {})[1] for _ in range(3)]
    assert fresh[0] and not fresh[1] and not fresh[2]
    state.calls = 8
    state.together()  # the next calls are made in a scope, and stay there
    left = state.face.together
    for _ in range(3):
        f(x)
    assert left > 3 and state.face.together == left - 3


def test_an_exception_leaves_no_scope_open():
    @adjoin.compile
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(adjoin.ones(2))
    assert not adjoin._lazy.scope_is_open()


def test_a_module_compiles_itself_and_is_copied_as_it_was():
    adjoin.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    x = adjoin.randn(2, 4)
    wanted = net(x)
    assert net.compile(fullgraph=True) is None
    assert net(x).equal(wanted) and net.forward._state.calls == 1
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other(x).equal(wanted) and "forward" not in other.__dict__
    with pytest.raises(RuntimeError, match="mode"):
        net.compile(mode="fast")
