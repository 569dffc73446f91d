"""tests/python/autograd/walks_test.py: programs that walk over a graph: a leaf has one node, steps have the names that people know."""

import gc

import adjoin as torch
from adjoin import nn
from adjoin.nn import functional as F


def test_a_leaf_has_one_node_while_somebody_holds_it():
    x, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * x + other
    (a, _), (b, _) = y.grad_fn.next_functions[0][0].next_functions
    c = y.grad_fn.next_functions[1][0]
    assert a is b and a == b and len({a, b, c}) == 2 and c.variable is other
    assert (x + 1).grad_fn.next_functions[0][0] is a is torch.autograd.graph.get_gradient_edge(x).node
    a.metadata["noted"] = 1
    assert b.metadata == {"noted": 1}
    del a, b, x, y
    gc.collect()
    z = torch.ones(3, requires_grad=True)
    assert (z * 2).grad_fn.next_functions[0][0].variable is z


def test_a_walk_sees_each_node_once():
    x = torch.randn(3, requires_grad=True)
    seen, order, waiting = set(), [], [((x * x) + x).sum().grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            order.append(type(node).__name__)
            waiting += [n for n, _ in node.next_functions]
    assert sorted(order) == ["AccumulateGrad", "AddBackward0", "MulBackward0", "SumBackward0"]


def names(result):
    """The type of its node, and that by its name()."""
    return type(result.grad_fn).__name__, result.grad_fn.name()


def test_names_that_people_know():
    x = torch.randn(2, 4, 6, 6, requires_grad=True)
    v = torch.randn(4, 8, requires_grad=True)
    for result, name in (
        (nn.BatchNorm2d(4)(x), "NativeBatchNorm"),
        (nn.GroupNorm(2, 4)(x), "NativeGroupNorm"),
        (nn.LayerNorm(8)(v), "NativeLayerNorm"),
        (F.max_pool2d(x, 2), "MaxPool2DWithIndices"),
        (F.avg_pool2d(x, 2), "AvgPool2D"),
        (F.unfold(x, 2), "Im2Col"),
        (F.cross_entropy(v, torch.tensor([0, 1, 2, 3])), "NllLoss"),
        (F.logsigmoid(v), "LogSigmoid"),
        (torch.cat([v, v]), "Cat"),
        (v[[0, 2]], "Index"),
        (v.flatten(), "View"),
        (torch.fft.rfft(v), "FftR2C"),
        (torch.linalg.det(v @ v.mT), "LinalgDet"),
        (v.log1p(), "Log1P"),
    ):
        assert names(result) == (f"{name}Backward0",) * 2, name
    leaf = v.exp().grad_fn.next_functions[0][0]
    assert (type(leaf).__name__, leaf.name()) == ("AccumulateGrad", "torch::autograd::AccumulateGrad")
    w = v.clone()
    w[0] = 1
    assert names(w) == ("CopySlices", "torch::autograd::CopySlices") and "grad_fn=<CopySlices>" in repr(w)
