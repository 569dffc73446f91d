"""tests/python/nested/parts_test.py: nested tensors of the strided layout, whose parts may differ in every dimension."""

import adjoin
import pytest
from adjoin import nested
from adjoin.nn import functional as F


def parts(grad=False):
    adjoin.manual_seed(0)
    return nested.nested_tensor([adjoin.randn(2, 3), adjoin.randn(4, 3)], requires_grad=grad)


OPS = {
    "add": lambda t: t + 1,
    "mul": lambda t: t * t,
    "relu": F.relu,
    "softmax": lambda t: t.softmax(-1),
    "linear": lambda t: F.linear(t, adjoin.arange(6.0).reshape(2, 3)),
    "layer_norm": lambda t: F.layer_norm(t, (3,)),
    "double": lambda t: t.double(),
}


@pytest.mark.parametrize("name", OPS)
def test_each_part_alone(name):
    nt, f = parts(), OPS[name]
    for a, b in zip(f(nt).unbind(), [f(p) for p in nt.unbind()], strict=True):
        assert a.dtype is b.dtype and adjoin.allclose(a, b)


def test_ops_that_name_dimensions():
    nt = parts()
    a, b = nt.unbind()
    for made, want in (
        (nt.transpose(1, 2), [a.T, b.T]),
        (nt.sum(-1, keepdim=True), [a.sum(-1, keepdim=True), b.sum(-1, keepdim=True)]),
        (nt @ nt.transpose(1, 2), [a @ a.T, b @ b.T]),
        (adjoin.cat([nt, nt], -1), [adjoin.cat([a, a], -1), adjoin.cat([b, b], -1)]),
        (adjoin.cat([nt, nt]), [a, b, a, b]),
        (nt.unsqueeze(1), [a.unsqueeze(0), b.unsqueeze(0)]),
        (nt.chunk(3, -1)[2], [a[:, 2:], b[:, 2:]]),
        (nt.reshape(2, -1, 3, 1), [a.unsqueeze(-1), b.unsqueeze(-1)]),
    ):
        assert all(adjoin.allclose(x, y) and x.shape == y.shape for x, y in zip(made.unbind(), want, strict=True))
    assert nt.size(0) == 2 and nt.size(2) == 3 and nt.dim() == 3 and adjoin.equal(nt[1, 0], b[0]) and nt.is_nested
    padded = nt.to_padded_tensor(0.5, (3, 5, 4))
    assert adjoin.equal(padded[1, :4, :3], b) and padded[0, 3, 0] == 0.5 and padded[2, 0, 0] == 0.5
    assert repr(nt).startswith("nested_tensor([\n  tensor([[") and repr(nt).endswith("\n])")


def test_parts_of_any_size():
    nt = nested.nested_tensor([adjoin.ones(2, 5), adjoin.ones(3, 1)])
    assert (nt + nt).unbind()[0].shape == (2, 5) and nt.to_padded_tensor(0).shape == (2, 3, 5)
    assert nested.nested_tensor([[1, 2], [3]]).unbind()[1].tolist() == [3]


def test_gradients():
    nt = parts(grad=True)
    (nt.softmax(-1) * nt).to_padded_tensor(0.0).sum().backward()
    pieces = [p.detach().requires_grad_() for p in nt.unbind()]
    sum((p.softmax(-1) * p).sum() for p in pieces).backward()
    assert nt.grad.is_nested
    assert all(adjoin.allclose(g, p.grad, atol=1e-6) for g, p in zip(nt.grad.unbind(), pieces, strict=True))


def test_what_is_refused():
    nt = parts()
    for wrong in (
        lambda: nt.shape,
        lambda: nt.size(1),
        lambda: nt + adjoin.ones(3),
        lambda: nt.sum(0),
        nt.numpy,
        lambda: nt.unbind(1),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(NotImplementedError, match="sort: not there for nested tensors"):
        adjoin.sort(nt)
    with pytest.raises(NotImplementedError, match="to_padded_tensor"):
        adjoin.ones(2).to_padded_tensor(0.0)
