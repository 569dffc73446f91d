"""tests/python/graph/fx_programs_test.py: graphs of adjoin.fx from programs, and back."""

import adjoin
import pytest
from adjoin import fx, jit, nn
from adjoin.export import Dim, export
from adjoin.nn import functional as F
from breaks_test import bits


def net():
    adjoin.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5), nn.Softmax(-1)
    ).eval()


def test_a_module_goes_there_and_back():
    model, x = net(), adjoin.randn(2, 3, 6, 6)
    traced = jit.trace(model, x)
    graph = fx.from_program(traced)
    graph.graph.lint()
    assert bits(graph(x)) == bits(model(x)) and graph.get_parameter("0.weight") is model[0].weight
    assert sum(n.op == "call_function" for n in graph.graph.nodes) == traced.graph.count("@")
    back = fx.to_program(graph, (x,))
    calls = lambda p: [line.split(" = ")[1].split("(")[0] for line in p.graph.splitlines() if "@" in line]  # noqa: E731
    assert bits(back(x)) == bits(model(x)) and calls(back) == calls(traced)


def writes_and_lists(x, y):
    x = x * 2
    x[0].add_(1)
    a, b = x.split(1)
    top = adjoin.topk(x, 2, dim=1)
    out = adjoin.zeros(2, 3, dtype=adjoin.float64, device=x.device)
    x.sub_(y, alpha=0.5)
    return (
        {"a": a.to(adjoin.float64) + out.sum(), "b": [b.mean(0), x.clamp(-1, max=float("inf"))]},
        top.values,
        top.indices,
        y.detach(),
    )


def masks(x, y):
    z = adjoin.where(x > y, x, 2.5).masked_fill(y > 0, -1)
    return (
        z[:, [0, 2]],
        adjoin.cat([x, y]).permute(1, 0).contiguous(),
        F.pad(x, (1, 2), value=3.0),
        x.sum(),
        adjoin.arange(5),
    )


@pytest.mark.parametrize("f", [writes_and_lists, masks])
def test_writes_lists_numbers_and_dtypes(f):
    x, y = adjoin.randn(2, 3), adjoin.randn(2, 3)
    graph = fx.from_program(jit.trace(f, (x, y)))
    assert bits(graph(x.clone(), y)) == bits(f(x.clone(), y))
    assert "def forward(self, x0, x1)" in graph.code


def test_sizes_with_a_name_are_read_off_the_inputs():
    class Heads(nn.Module):
        def forward(self, x):
            n, t, c = x.shape
            return x.view(n * t, c).repeat(2, 1)[: n * 2 + 1].view(1, -1) + adjoin.zeros(c * (n * 2 + 1))

    program = export(Heads(), (adjoin.randn(3, 4, 5),), dynamic_shapes=({0: Dim("n"), 1: Dim("t")},))
    graph = fx.from_program(program)
    for shape in ((3, 4, 5), (2, 7, 5), (6, 2, 5)):
        x = adjoin.randn(shape)
        assert bits(graph(x)) == bits(Heads()(x))


def test_what_a_graph_cannot_hold_is_refused():
    def branch(x):
        return jit.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))

    with pytest.raises(NotImplementedError, match="branches"):
        fx.from_program(jit.trace(branch, adjoin.ones(3)))

    def quiet(x):
        with adjoin.no_grad():
            y = x * 2
        return y + x

    with pytest.raises(NotImplementedError, match="no_grad"):
        fx.from_program(jit.trace(quiet, adjoin.ones(3)))
    with pytest.raises(TypeError, match="jit.trace"):
        fx.from_program(net())
    with pytest.raises(TypeError, match="GraphModule"):
        fx.to_program(net(), (adjoin.ones(1),))
