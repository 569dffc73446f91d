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
    with pytest.raises(RuntimeError, match="already been freed"):
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


def test_gradients_are_asked_for_at_places_in_the_graph():
    leaf = T.tensor([1.0, 2.0], requires_grad=True)
    x = leaf * 3
    where, root = get_gradient_edge(x), (x * x).sum()
    for asked in (where, (where,), [x.grad_fn], GradientEdge(x.grad_fn, 0)):
        (got,) = T.autograd.grad(root, asked, retain_graph=True)
        assert got.tolist() == [6, 12]
    at_leaf, at_x = T.autograd.grad(root, (get_gradient_edge(leaf), where), retain_graph=True)
    assert at_leaf.tolist() == [18, 36] and at_x.tolist() == [6, 12]
    ran = []
    x.grad_fn.register_hook(lambda *grads: ran.append(1))
    T.autograd.grad(root, where, retain_graph=True)
    assert not ran  # what lies behind the place is not computed

    x *= 2  # x is the result of another node now
    before, after = T.autograd.grad(x.sum(), (where, x))
    assert before.tolist() == [2, 2] and after.tolist() == [1, 1]

    second = leaf.unbind()[1]
    edge = get_gradient_edge(second)
    assert edge.output_nr == 1 and T.autograd.grad(second * 5, edge)[0].item() == 5
    y = leaf * 2
    T.autograd.backward(y.sum(), inputs=(get_gradient_edge(leaf), y.grad_fn))
    assert leaf.grad.tolist() == [2, 2]


def test_places_in_the_graph_that_are_none():
    leaf = T.ones(2, requires_grad=True)
    x = leaf * 3
    edge = get_gradient_edge(x)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        T.autograd.grad(leaf.sum(), edge)
    assert T.autograd.grad(leaf.sum(), edge, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        T.autograd.grad(leaf.sum(), (leaf, edge), allow_unused=True, materialize_grads=True)
    with pytest.raises(RuntimeError, match="no result 3"):
        T.autograd.grad(x.sum(), edge._replace(output_nr=3))
    with pytest.raises((TypeError, OverflowError)):
        T.autograd.grad(x.sum(), edge._replace(output_nr="one"))


def test_a_hook_that_packs_may_not_write():
    x = T.ones(3, requires_grad=True) * 2

    def pack(value):
        value += 1
        return value

    with T.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
            x.exp()
    with T.autograd.graph.saved_tensors_hooks(lambda value: value.clone().add_(1).sub_(1), lambda value: value):
        y = x.sin()
    y.sum().backward()
