"""tests/python/autograd/graph_test.py: what a node tells those who draw graphs: its saved values by name, the edges of tensors."""

import pytest

import adjoin as T
from adjoin.autograd.graph import GradientEdge, get_gradient_edge


def names(node):
    return sorted(name for name in dir(node) if name.startswith("_saved_"))


def test_saved_values_by_name():
    x, w = T.ones(2, 3, requires_grad=True), T.ones(2, 3, requires_grad=True)
    y = x * w
    assert names(y.grad_fn) == ["_saved_other", "_saved_self"]
    assert y.grad_fn._saved_self is x and y.grad_fn._saved_other is w
    y = (x * 2).exp()
    assert names(y.grad_fn) == ["_saved_result"] and T.equal(y.grad_fn._saved_result, y)
    assert y.grad_fn._saved_result.grad_fn is not None
    with pytest.raises(AttributeError, match="_saved_self"):
        y.grad_fn._saved_self  # noqa: B018
    with pytest.raises(AttributeError, match="nothing"):
        y.grad_fn.nothing  # noqa: B018
    assert "name" in dir(y.grad_fn) and names((x + w).grad_fn) == ["_saved_alpha"]
    assert names(x.max(1)[0].grad_fn) != []
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already freed"):
        y.grad_fn._saved_result  # noqa: B018


def test_every_name_can_be_asked_for():
    x = T.rand(2, 2, 4, 4, requires_grad=True)
    for y in (
        T.nn.functional.layer_norm(x, (4,)),
        T.nn.functional.max_pool2d(x, 2),
        T.softmax(x, 1),
        x @ x,
        x[:, 0],
        x.sum(),
        x.prod(1),
    ):
        for name in names(y.grad_fn):
            getattr(y.grad_fn, name)


def test_edges():
    x = T.ones(3, requires_grad=True)
    a, b = (x * 2).split([1, 2])
    edge = get_gradient_edge(b)
    node, number, _ = edge
    assert isinstance(edge, GradientEdge) and node == b.grad_fn and number == 1 == edge.output_nr
    edge = get_gradient_edge(x)
    assert edge.node.variable is x and edge.node.name().endswith("AccumulateGrad")
    with pytest.raises(RuntimeError, match="does not require grad"):
        get_gradient_edge(T.ones(3))
