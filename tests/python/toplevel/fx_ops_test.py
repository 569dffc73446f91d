"""tests/python/toplevel/fx_ops_test.py: make_fx: the graph of the ops that a function calls."""

import pickle

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import nn
from adjoin.func import grad, jvp, vmap
from adjoin.fx.experimental.proxy_tensor import decompose, get_isolated_graphmodule, get_proxy_mode, make_fx

aten = adjoin.ops.aten
_SECOND = vmap(grad(grad(lambda x: x**3)))


def _ops(module):
    return [
        str(n.target)
        for n in module.graph.nodes
        if n.op == "call_function" and isinstance(n.target, type(aten.add.Tensor))
    ]


def _same(a, b):
    return adjoin.allclose(a, b, rtol=1e-6, atol=1e-7)


def test_ops_become_nodes():
    def f(x, y):
        return adjoin.sin(x) * y + 2, x.sum()

    module = make_fx(f)(adjoin.randn(3), adjoin.randn(3))
    assert _ops(module) == ["aten.sin.default", "aten.mul.Tensor", "aten.add.Tensor", "aten.sum.default"]
    assert [n.name for n in module.graph.nodes if n.op == "placeholder"] == ["x_1", "y_1"]
    x, y = adjoin.randn(3), adjoin.randn(3)
    for made in (module, pickle.loads(pickle.dumps(module))):
        assert all(map(_same, made(x, y), f(x, y)))
    node = next(n for n in module.graph.nodes if n.name == "sin")
    assert node.target is aten.sin.default and node.meta["tensor_meta"].shape == (3,)


@pytest.mark.parametrize(
    "f",
    [
        vmap(grad(lambda x: (adjoin.tanh(x) ** 2).sum())),
        _SECOND,
        lambda x: jvp(adjoin.sin, (x,), (adjoin.ones_like(x),))[1],
        vmap(lambda row: (row * row).sum()),
        lambda x: adjoin.linalg.svd(x)[1],
        lambda x: adjoin.split(x, 1)[1] + x[..., -1:],
        lambda x: F.layer_norm(x, x.shape[-1:]),
        lambda x: adjoin.where(x > 0, x, -x).sort().values.cumsum(-1),
    ],
    ids=range(8),
)
def test_values_are_those_of_the_function(f):
    shape = (3,) if f is _SECOND else (2, 4)
    x, other = (adjoin.randn(*shape, dtype=adjoin.float64) for _ in range(2))
    assert _same(make_fx(f)(x)(other), f(other))


def test_a_backward_pass_is_part_of_the_graph():
    def f(x):
        x = x.clone().requires_grad_()
        (x * x).sum().backward()
        return x.grad

    module = make_fx(f)(adjoin.randn(3))
    first, second = module(adjoin.ones(3)), module(2 * adjoin.ones(3))
    assert first.tolist() == [2, 2, 2] and second.tolist() == [4, 4, 4]


def test_nested_arguments_and_results():
    def f(d):
        return {"a": d["x"] + 1, "b": [d["y"][0].view(-1)]}

    module = make_fx(f)({"x": adjoin.randn(3), "y": [adjoin.randn(2, 2)]})
    made = module({"x": adjoin.ones(3), "y": [adjoin.ones(2, 2)]})
    assert made["a"].tolist() == [2, 2, 2] and made["b"][0].tolist() == [1, 1, 1, 1]


def test_writes():
    def in_place(x):
        x.add_(1)
        y = x.view(-1)
        y.mul_(2)
        return x

    assert make_fx(in_place)(adjoin.zeros(2, 2))(adjoin.ones(2, 2)).tolist() == [[4, 4], [4, 4]]

    def to_what_it_makes(x):
        c = adjoin.tensor([1.0, 2.0])
        return c.add_(x)

    module = make_fx(to_what_it_makes)(adjoin.ones(2))
    assert [module(adjoin.ones(2)).tolist() for _ in range(2)] == [[2, 3], [2, 3]]
    norm = nn.BatchNorm1d(2)
    module = make_fx(lambda x: norm(x))(adjoin.randn(4, 2))
    before = norm.running_mean.clone()
    module(adjoin.randn(4, 2) + 5)
    assert norm.num_batches_tracked == 2 and not adjoin.equal(before, norm.running_mean)


def test_modules_keep_their_parameters():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    module = make_fx(net)(adjoin.randn(2, 3))
    x = adjoin.randn(2, 3)
    assert _same(module(x), net(x)) and len(list(module.parameters())) == 4
    module(x).sum().backward()
    assert net[0].weight.grad is not None


def test_each_call_draws_its_own_numbers():
    def f(x):
        return F.dropout(x) + adjoin.rand(8)

    module = make_fx(f)(adjoin.ones(8))
    adjoin.manual_seed(3)
    wanted = [f(adjoin.ones(8)), f(adjoin.ones(8))]
    adjoin.manual_seed(3)
    assert all(adjoin.equal(module(adjoin.ones(8)), w) for w in wanted) and not adjoin.equal(*wanted)
    module = make_fx(grad(lambda x: (F.dropout(x) * x).sum()))(adjoin.ones(64))
    made = module(adjoin.ones(64))
    assert set(made.tolist()) == {0.0, 4.0}  # both uses of one mask


def test_decompositions_serve_instead_of_ops():
    table = {aten.sinh.default: lambda x: (x.exp() - (-x).exp()) / 2}
    module = make_fx(lambda x: x.sinh() + 1, table)(adjoin.randn(3))
    assert "aten.sinh.default" not in _ops(module) and _ops(module).count("aten.exp.default") == 2
    x = adjoin.randn(3)
    assert _same(module(x), x.sinh() + 1)

    def f(x):
        assert get_proxy_mode() is not None
        with decompose(table):
            return x.sinh()

    assert "aten.exp.default" in _ops(make_fx(f)(x)) and get_proxy_mode() is None
    assert _ops(get_isolated_graphmodule(lambda a, b: a - b, (x, x.clone()), {})) == ["aten.sub.Tensor"]


def test_what_no_graph_can_hold_is_refused():
    with pytest.raises(RuntimeError, match="where"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(adjoin.ones(2))
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        make_fx(adjoin.sin, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="below the tape"):
        make_fx(adjoin.sin, pre_dispatch=True)
    with pytest.raises(RuntimeError, match="no make_fx"), decompose({}):
        pass
