"""tests/python/autograd/func_test.py: modules called with other parameters, derivatives as functions."""

import adjoin
import pytest
from adjoin import nn
from adjoin.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(2, 2, bias=False)
        self.two = nn.Linear(2, 2, bias=False)
        self.two.weight = self.one.weight
        self.register_buffer("shift", adjoin.zeros(2))

    def forward(self, x, scale=1.0):
        self.shift.add_(1)
        return scale * self.two(self.one(x)) + self.shift


either = pytest.mark.parametrize("functional_call", [functional_call, nn.utils.stateless.functional_call])


@either
def test_functional_call(functional_call):
    module = Tied()
    own = module.one.weight.tolist()
    weight, shift = adjoin.eye(2) * 3, adjoin.ones(2)
    out = functional_call(module, {"one.weight": weight, "shift": shift}, (adjoin.ones(1, 2),), {"scale": 2.0})
    assert out.tolist() == [[20.0, 20.0]]  # 2 * 3 * 3 + 1 + 1
    assert shift.tolist() == [2.0, 2.0] and module.shift.tolist() == [0.0, 0.0]
    assert module.one.weight.tolist() == own and module.two.weight is module.one.weight
    loose = functional_call(module, {"one.weight": weight}, adjoin.ones(1, 2), tie_weights=False)
    assert loose.tolist() != out.tolist()
    both = functional_call(module, ({"one.weight": weight}, {"shift": adjoin.zeros(2)}), (adjoin.ones(1, 2),))
    assert both.tolist() == [[10.0, 10.0]]


@either
def test_functional_call_refuses(functional_call):
    module, x = Tied(), adjoin.ones(1, 2)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(module, ({"shift": x}, {"shift": x}), (x,))
    with pytest.raises(ValueError, match="multiple values for keys"):
        functional_call(module, {"one.weight": adjoin.eye(2), "two.weight": adjoin.zeros(2, 2)}, (x,))
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): more.*Missing key\(s\)"):
        functional_call(module, {"more": x}, (x,), strict=True)
    with pytest.raises(AttributeError, match="`nothing`"):
        functional_call(module, {"one.nothing": x}, (x,))
    with pytest.raises(TypeError):
        functional_call(module, {"one.weight": adjoin.eye(2)}, (x, 1, 2))
    assert module(x).shape == (1, 2)


def test_gradients_reach_what_was_given():
    module = nn.Linear(2, 1)
    given = {"weight": adjoin.ones(1, 2, requires_grad=True), "bias": adjoin.zeros(1, requires_grad=True)}
    functional_call(module, given, (adjoin.tensor([[1.0, 2.0]]),)).sum().backward()
    assert given["weight"].grad.tolist() == [[1.0, 2.0]] and module.weight.grad is None


def test_grad():
    x = adjoin.tensor([1.0, 2.0])
    assert grad(lambda x: (x**3).sum())(x).tolist() == [3.0, 12.0] and not x.requires_grad
    second = grad(lambda x: grad(lambda x: (x**3).sum())(x).sum())(x)
    assert second.tolist() == [6.0, 12.0] and not second.requires_grad
    a, b = grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, x + 1)
    assert (a.tolist(), b.tolist()) == ([2.0, 3.0], [1.0, 2.0])
    tree = grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": [x + 1]})
    assert tree["a"].tolist() == [2.0, 3.0] and tree["b"][0].tolist() == [1.0, 2.0]
    found, (value, aux) = grad_and_value(lambda x: (x.sum(), x * 2), has_aux=True)(x)
    assert found.tolist() == [1.0, 1.0] and value.item() == 3 and aux.tolist() == [2.0, 4.0]
    assert grad(lambda x, y: y.sum())(x, x).tolist() == [0.0, 0.0]
    with adjoin.no_grad():
        assert grad(lambda x: x.sum())(x).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"grad: func must return .* shape \(2,\)"):
        grad(lambda x: x)(x)


def test_grad_of_what_is_recorded_goes_on():
    x = adjoin.tensor(2.0, requires_grad=True)
    grad(lambda y: y**3)(x).backward()
    assert x.grad.item() == 12


def test_vjp():
    x = adjoin.tensor([1.0, 2.0])
    out, back = vjp(lambda x, y: (x * y, x.sum()), x, x + 1)
    assert out[0].tolist() == [2.0, 6.0]
    a, b = back((adjoin.ones(2), adjoin.tensor(10.0)))
    assert a.tolist() == [12.0, 13.0] and b.tolist() == [1.0, 2.0]


def test_jacobians():
    x = adjoin.tensor([1.0, 2.0, 3.0])
    found = jacrev(lambda x: (x[:2] ** 2, x.sum()))(x)
    assert found[0].tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]] and found[1].tolist() == [1.0, 1.0, 1.0]
    a, b = jacfwd(lambda x, y: x * y, argnums=(0, 1))(x, x + 1)
    assert a.diagonal().tolist() == [2.0, 3.0, 4.0] and b.diagonal().tolist() == [1.0, 2.0, 3.0]
    assert hessian(lambda x: (x**3).sum())(x).tolist() == [[6.0, 0, 0], [0, 12.0, 0], [0, 0, 18.0]]
    made, aux = jacrev(lambda x: (x * 2, x), has_aux=True)(x)
    assert made.diagonal().tolist() == [2.0] * 3 and aux.tolist() == x.tolist() and not made.requires_grad


def test_jvp():
    x, v = adjoin.tensor([1.0, 2.0]), adjoin.tensor([1.0, 10.0])
    out, along = jvp(lambda x, y: (x**2 * y).sum(), (x, x), (v, adjoin.zeros(2)))
    assert out.item() == 9 and along.item() == pytest.approx(2 + 80) and not along.requires_grad
    (a, b), moved = jvp(lambda x: (x.sin(), x[0]), (x,), (v,))
    assert moved[0].tolist() == pytest.approx((x.cos() * v).tolist()) and moved[1].item() == 1
