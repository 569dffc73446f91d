"""tests/python/autograd/derivatives_of_tensors_test.py: derivatives of functions of a tensor are those of the same functions of a
tree that holds it: two ways lead to them, one short, one for any tree."""

import itertools

import adjoin
import pytest
from adjoin import func

FUNCTIONS = {
    "number": lambda x: (x.sin() * x**2).sum(),
    "vector": lambda x: x.tanh() * x.flatten()[0],
    "matrix": lambda x: x.flatten()[:2].outer(x.exp().flatten()),
    "one element": lambda x: x.sum().reshape(1),
    "no element": lambda x: x.flatten()[:0] * 2,
    "constant": lambda x: adjoin.ones(3),
    "same": lambda x: x,
    "view": lambda x: x.flatten()[1:],
    "inner": lambda x: func.grad(lambda y: (y**3 * x).sum())(x),
}
SHAPES = ((3,), (2, 2), (4, 1))
cases = pytest.mark.parametrize("name, shape", list(itertools.product(FUNCTIONS, SHAPES)))


def in_a_tree(transform, f):
    """transform of f, by the way for trees."""

    def call(x):
        return transform(lambda tree: f(tree["x"]))({"x": x})["x"]

    return call


def drawn(*shape):
    adjoin.manual_seed(5)
    return adjoin.randn(*shape, dtype=adjoin.float64)


def same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype and a.requires_grad == b.requires_grad
    assert adjoin.equal(a, b)


@cases
def test_jacobians(name, shape):
    same(func.jacrev(FUNCTIONS[name])(drawn(*shape)), in_a_tree(func.jacrev, FUNCTIONS[name])(drawn(*shape)))


@cases
def test_gradients(name, shape):
    def f(x):
        return (FUNCTIONS[name](x) * 3).sum()

    same(func.grad(f)(drawn(*shape)), in_a_tree(func.grad, f)(drawn(*shape)))


@cases
def test_second_derivatives(name, shape):
    f = FUNCTIONS[name]
    twice = func.hessian(f)(drawn(*shape))
    inner = in_a_tree(func.jacrev, f)
    same(twice, in_a_tree(func.jacrev, inner)(drawn(*shape)))


@cases
def test_of_samples(name, shape):
    def f(x):
        return FUNCTIONS[name](x).sum()

    x = drawn(3, *shape)
    same(func.vmap(func.grad(f))(x), func.vmap(in_a_tree(func.grad, f))(x))


@cases
def test_along_a_direction(name, shape):
    x, v = drawn(*shape), drawn(*shape).cos()
    value, moved = func.jvp(FUNCTIONS[name], (x,), (v,))
    (of_tree,), (moved_of_tree,) = func.jvp(lambda t: (FUNCTIONS[name](t[0]),), ((x,),), ((v,),))
    same(value, of_tree)
    same(moved, moved_of_tree)


@pytest.mark.parametrize("transform", [func.grad, func.jacrev])
def test_closed_over(transform):
    """What a function closes over gets its gradient through the derivative; its argument does not."""
    w = drawn(3).requires_grad_()

    def f(x):
        return (w * w * x**2).sum()

    x = drawn(3)
    made = transform(f)(x)
    assert made.requires_grad and not x.requires_grad
    (by_w,) = adjoin.autograd.grad(made.sum(), w)
    assert adjoin.allclose(by_w, 4 * w.detach() * x)
    with adjoin.no_grad():
        assert not transform(f)(x).requires_grad
    assert w.grad is None


@pytest.mark.parametrize("transform", [func.grad, func.jacrev])
def test_recorded_argument(transform):
    x = drawn(3).requires_grad_()
    made = transform(lambda y: (y**3).sum())(x)
    (by_x,) = adjoin.autograd.grad(made.sum(), x)
    assert adjoin.allclose(by_x, 6 * x.detach())


@pytest.mark.parametrize("transform", [func.grad, func.jacrev])
def test_other_arguments(transform):
    """Numbers, keywords and trees stand beside the tensor."""

    def f(k, x, tree, *, power):
        assert tree["t"] is y and k == 2
        return k * (x**power * tree["t"]).sum()

    x, y = drawn(3), drawn(3).exp()
    made = transform(f, 1)(2, x, {"t": y}, power=3)
    assert adjoin.allclose(made, 6 * x**2 * y)
    assert adjoin.allclose(transform(f, -2)(2, x, {"t": y}, power=3), made)


@pytest.mark.parametrize("transform", [func.grad, func.jacrev, lambda f: lambda x: func.jvp(f, (x,), (x,))])
def test_failures_leave_nothing_open(transform):
    def f(x):
        assert adjoin.is_grad_enabled() or transform not in (func.grad, func.jacrev)
        raise KeyError("mine")

    with adjoin.no_grad():
        for _ in range(2):
            with pytest.raises(KeyError, match="mine"):
                transform(f)(drawn(3))
            assert not adjoin.is_grad_enabled()
    for level in range(2):  # a level that were still open would make its own of what is made
        made = adjoin.zeros(3)
        assert adjoin._C.transform_level(made) == 0, level


def test_what_grad_refuses():
    with pytest.raises(RuntimeError, match=r"without dimensions, it returned shape \(3,\)"):
        func.grad(lambda x: x)(drawn(3))
    with pytest.raises(RuntimeError, match="without dimensions, it returned tuple"):
        func.grad(lambda x: (x.sum(),))(drawn(3))


def test_jacobian_of_one_element():
    assert func.jacrev(lambda x: x.sum().reshape(1))(drawn(3)).shape == (1, 3)
    assert func.jacrev(lambda t: t[0].sum().reshape(1))((drawn(3),))[0].shape == (1, 3)


def test_several_results():
    """A tree of results comes back as one."""
    x = drawn(3)
    made = func.jacrev(lambda y: {"a": y.sin(), "b": (y.sum(),)})(x)
    assert adjoin.allclose(made["a"], adjoin.diag(x.cos()))
    assert adjoin.equal(made["b"][0], adjoin.ones(3, dtype=x.dtype))
    calls = []
    func.jacrev(lambda y: calls.append(1) or [y, y])(x)
    assert len(calls) == 1


def test_hooks_see_the_level():
    """The one pass for all rows is a level of a batch, for Python too."""
    from adjoin import _vmap

    seen = []

    def f(x):
        y = x.sin()
        y.register_hook(lambda g: seen.append((len(_vmap.levels.open), g.shape)))
        return y

    func.jacrev(f)(drawn(3))
    assert seen == [(1, (3,))]
    assert not _vmap.levels.open


@pytest.mark.parametrize("sign", [1, -1])
def test_where_nan_won_no_gradient_is_zero(sign):
    nan = float("nan")
    named = {1: ("amax", "max", "maximum"), -1: ("amin", "min", "minimum")}[sign]
    rows = adjoin.tensor([[1, nan, 3], [4, 4, 2], [nan, nan, 1]]) * sign
    x = rows.clone().requires_grad_()
    getattr(x, named[0])(1).sum().backward()
    assert x.grad[1].tolist() == [0.5, 0.5, 0] and x.grad[0].isnan().all() and x.grad[2].isnan().all()
    x = rows.clone().requires_grad_()
    getattr(x, named[1])().backward()
    assert x.grad.isnan().any()
    a, b = (
        (adjoin.tensor([1, nan, 2, nan, 5.0]) * sign).requires_grad_(),
        (adjoin.tensor([nan, 1, 2, nan, 4.0]) * sign).requires_grad_(),
    )
    getattr(adjoin, named[2])(a, b).sum().backward()
    assert a.grad.tolist() == [1, 1, 0.5, 1, 1] and b.grad.tolist() == [1, 1, 0.5, 1, 0]  # both may have made it NaN
