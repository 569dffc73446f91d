"""tests/python/autograd/functional_errors_test.py: what autograd.functional refuses, and zeros where nothing depends on an input."""

import adjoin
import pytest
from adjoin.autograd import functional as F

PRODUCTS = [F.vjp, F.jvp, F.vhp, F.hvp]
EVERY = [*PRODUCTS, F.jacobian, F.hessian]


def third(a):
    return 3 * a.narrow(0, 0, 3)


def number(a):
    return third(a).exp().sum()


def names(functions):
    return [function.__name__ for function in functions]


@pytest.mark.parametrize("f", EVERY, ids=names(EVERY))
def test_inputs_and_outputs_are_tensors(f):
    a = adjoin.rand(4)
    with pytest.raises(TypeError, match=f"inputs given to {f.__name__} must be either a Tensor .* index 1 is int"):
        f(number, (a, 2))
    with pytest.raises(TypeError, match=f"outputs of the user-provided function given to {f.__name__} must be"):
        f(lambda a: (number(a), "text"), a, *([a] if f in PRODUCTS[1:] else []))


@pytest.mark.parametrize("f", [F.vhp, F.hvp, F.hessian], ids=names([F.vhp, F.hvp, F.hessian]))
def test_second_derivatives_are_of_one_number(f):
    a = adjoin.rand(4)
    rest = [] if f is F.hessian else [adjoin.ones(4)]
    with pytest.raises(RuntimeError, match=f"given to {f.__name__} should contain a single element"):
        f(third, a, *rest)
    with pytest.raises(RuntimeError, match=f"given to {f.__name__} should return a single Tensor"):
        f(lambda a: (number(a), number(a)), a, *rest)


@pytest.mark.parametrize("f", PRODUCTS, ids=names(PRODUCTS))
def test_directions_have_the_shapes_of_what_they_meet(f):
    a = adjoin.rand(4)
    of = third if f is F.vjp else number
    with pytest.raises(RuntimeError, match="v can only be None"):
        f(of, a)
    with pytest.raises(RuntimeError, match=r"v has invalid size: should be \[.\] but got \[2\]"):
        f(of, a, adjoin.ones(2))
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 1 but got 2"):
        f(of, a, (adjoin.ones(4), adjoin.ones(4)))


@pytest.mark.parametrize("f", EVERY, ids=names(EVERY))
def test_strict_wants_outputs_that_depend_on_inputs(f):
    a = adjoin.rand(4)
    v = () if f in (F.jacobian, F.hessian) else (adjoin.ones(()) if f is F.vjp else adjoin.ones(4),)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        f(lambda a: a.detach().sum(), a, *v, strict=True)
    apart = lambda a: a.long().float().requires_grad_().clone().sum()  # noqa: E731
    with pytest.raises(RuntimeError, match="independent of (the )?input"):
        f(apart, a, *v, strict=True)
    for function in (lambda a: a.detach().sum(), apart):
        found = f(function, a, *v)
        found = found[1] if f in PRODUCTS else found
        assert found.abs().sum() == 0


def test_strict_wants_derivatives_that_change():
    a = adjoin.rand(4)
    for f in (F.vhp, F.hvp):
        with pytest.raises(
            RuntimeError, match="jacobian of the user-provided function with respect to input 0 is independent"
        ):
            f(lambda a: (3 * a).sum(), a, adjoin.ones(4), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 0.*create_graph"):
        F.jacobian(lambda a: a.clone(), a.requires_grad_(), create_graph=True, strict=True)
    with pytest.raises(RuntimeError, match="not supported together"):
        F.jacobian(third, a, strict=True, vectorize=True)


def test_values_are_what_they_were():
    a, v = adjoin.tensor([1.0, 2.0, 3.0], dtype=adjoin.float64), adjoin.tensor([1.0, 0.0, 2.0], dtype=adjoin.float64)
    cube = lambda a: (a**3).sum()  # noqa: E731
    assert F.hvp(cube, a, v)[1].tolist() == [6.0, 0.0, 36.0]
    assert F.vhp(cube, a, v)[1].tolist() == [6.0, 0.0, 36.0]
    assert F.jvp(lambda a: a**2, a, v)[1].tolist() == [2.0, 0.0, 12.0]
    assert F.hessian(cube, a).diagonal().tolist() == [6.0, 12.0, 18.0]
    assert F.vjp(lambda a: a.sum(), a)[1].tolist() == [1.0, 1.0, 1.0]
