"""tests/python/autograd/func_test.py: modules called with other parameters, derivatives as functions."""

import adjoin
import pytest
from adjoin import nn
from adjoin.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    rearrange,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
)


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


def old_functional_call(*args, **kwargs):
    with pytest.warns(FutureWarning, match="torch.func.functional_call"):
        return nn.utils.stateless.functional_call(*args, **kwargs)


either = pytest.mark.parametrize("functional_call", [functional_call, old_functional_call])


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
    with pytest.raises(RuntimeError, match=r"(?s)Unexpected key\(s\): 'more'.*Missing key\(s\): 'one.weight', 'shift'"):
        functional_call(module, {"more": x}, (x,), strict=True)
    with pytest.raises(AttributeError, match="Tied has no attribute `nothing`"):
        functional_call(module, {"nothing.weight": x}, (x,))
    with pytest.raises(TypeError, match="submodule `bias`: 3 is not"):
        module.bias = 3
        functional_call(module, {"bias.weight": x}, (x,))
    with pytest.raises(TypeError, match="attribute `bias`: 3 is not an instance"):
        functional_call(module, {"shift": x, "bias": x}, (x,))
    with pytest.raises(TypeError, match="<class 'object'> is not an instance"):
        functional_call(module, {"shift": x, "one.weight": object}, (x,))
    with pytest.raises(RuntimeError, match="Jitted modules"):
        functional_call(adjoin.jit.trace(nn.Linear(2, 2), x), {}, (x,))
    assert module.shift.tolist() == [0, 0] and not hasattr(module, "nothing")
    with pytest.raises(TypeError):
        functional_call(module, {"one.weight": adjoin.eye(2)}, (x, 1, 2))
    assert module(x).shape == (1, 2)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = nn.Buffer(adjoin.zeros(1))
        self.scale = adjoin.ones(1)

    def forward(self, x):
        self.seen = self.seen + 1
        return x * self.scale + self.seen + getattr(self, "extra", 0)


@either
def test_functional_call_gives_back_what_the_call_has_set(functional_call):
    module, seen = Counting(), adjoin.tensor([2.0])
    given = {"seen": seen, "scale": adjoin.tensor([5.0]), "extra": adjoin.tensor([100.0])}
    assert functional_call(module, given, adjoin.ones(1)).item() == 5 + 3 + 100
    assert given["seen"].item() == 3 and seen.item() == 2 and module.seen.item() == 0
    assert module.scale.item() == 1 and not hasattr(module, "extra")
    module.me = nn.ModuleList([module])  # a circle is walked by the names that were given
    assert (
        functional_call(module, {"me.0.me.0.scale": adjoin.tensor([7.0])}, adjoin.ones(1), tie_weights=False).item()
        == 8
    )
    del module.me
    bias = functional_call(nn.Linear(1, 1), {"weight": adjoin.ones(1, 1), "bias": None}, adjoin.ones(1))
    assert bias.item() == 1


@either
def test_functional_call_counts_tied_names_as_given(functional_call):
    module, x = Tied(), adjoin.ones(1, 2)
    given = {"one.weight": adjoin.eye(2), "shift": adjoin.zeros(2)}
    assert functional_call(module, given, x, strict=True).tolist() == [[2.0, 2.0]]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'two.weight'"):
        functional_call(module, given, x, strict=True, tie_weights=False)


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


X = adjoin.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "pattern, sizes, wanted",
    [
        ("a b c -> c b a", {}, X.permute(2, 1, 0)), ("a b c -> c (a b)", {}, X.permute(2, 0, 1).reshape(4, 6)),
        ("a b (c d) -> a (d b) c", {"d": 2}, X.reshape(2, 3, 2, 2).permute(0, 3, 1, 2).reshape(2, 6, 2)),
        ("(a z) ... -> z ... a", {"a": 2}, X.reshape(2, 1, 3, 4).permute(1, 2, 3, 0)), ("a ... -> ... a", {}, X.permute(1, 2, 0)),
        ("a b c -> a b 1 c ()", {}, X.reshape(2, 3, 1, 4, 1)), ("... -> ...", {}, X), ("a b c -> (a b c)", {}, X.reshape(24)),
        ("a b c -> (c a) b", {}, X.permute(2, 0, 1).reshape(8, 3)),
    ],
)  # fmt: skip
def test_dimensions_by_name(pattern, sizes, wanted):
    assert rearrange(X, pattern, **sizes).equal(wanted)


def test_names_of_dimensions_that_fail():
    assert rearrange([X[0], X[1]], "a b c -> b (a c)").shape == (3, 8)
    assert rearrange(X.reshape(2, 1, 3, 4), "a 1 b c -> (a b) c").shape == (6, 4)
    for pattern, sizes, message in (
        ("a b c -> a b", {}, r"only on one side.*\['c'\]"), ("a b -> b a", {}, r"pattern \(2\) must be equal .* \(3\)"),
        ("a b c -> a a b c", {}, "duplicate dimension 'a'"), ("a (b c) d -> a b c d", {}, "b and c cannot both be inferred"),
        ("a b c -> (a b) c", {"z": 3}, r"Identifiers not found.*\['z'\]"), ("a b (c d) -> a b c d", {"c": 3}, "size 4 is not c x d"),
        ("a b c", {}, "0 arrows"), ("a b (c -> a b c", {}, "brackets in .* are not closed"), ("a b + c -> a b c", {}, "'\\+' in"),
        ("1 b c -> b c 1", {}, "size 2 is not 1"), ("a (...) -> a (...)", {}, "ellipsis stands in brackets"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            rearrange(X, pattern, **sizes)
    x = adjoin.rand(2, 4, dtype=adjoin.float64, requires_grad=True)
    assert adjoin.autograd.gradcheck(lambda x: rearrange(x, "a (b c) -> (c a) b", b=2), x)


def test_batch_norms_that_keep_nothing():
    net = nn.Sequential(nn.Conv1d(2, 3, 1), nn.Sequential(nn.BatchNorm1d(3)))
    net(adjoin.randn(4, 2, 5))
    net.eval()
    assert replace_all_batch_norm_modules_(net) is net
    out = net(adjoin.randn(4, 2, 5) * 3 + 1)
    assert adjoin.allclose(out.mean((0, 2)), adjoin.zeros(3), atol=1e-5) and net[1][0].running_mean is None


def test_functions_that_write_in_place():
    def func(x):
        """Says what it does."""
        y = x * 2
        y.add_(1)
        x.mul_(3)
        return y

    made = functionalize(func, remove="mutations_and_views")
    x = adjoin.ones(2)
    assert made(x).tolist() == [3, 3] and x.tolist() == [3, 3] and made.__doc__ == "Says what it does."
    assert grad(lambda x: functionalize(lambda t: (t * 2).add_(1).sum())(x))(adjoin.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="remove is 'all'"):
        functionalize(func, remove="all")


@pytest.mark.parametrize("vectorize", [False, True])
def test_a_derivative_that_is_none_where_the_argument_moves(vectorize):
    """That of relu's derivative by what it looks at: it ended the process."""
    f = lambda x, y: ((x.relu() * x) @ y.sin()).sum()  # noqa: E731
    x, y = adjoin.randn(2, 3, dtype=adjoin.float64), adjoin.randn(3, 2, dtype=adjoin.float64)
    ways = {"outer_jacobian_strategy": "forward-mode"} if vectorize else {}
    found = adjoin.autograd.functional.hessian(f, (x, y), vectorize=vectorize, **ways)
    for row, known in zip(found, adjoin.autograd.functional.hessian(f, (x, y)), strict=True):
        for block, wanted in zip(row, known, strict=True):
            assert adjoin.allclose(block, wanted)
    wanted = adjoin.diag(2.0 * (x[0] > 0))
    assert jacfwd(grad(lambda x: (x.relu() * x).sum()))(x[0]).equal(wanted)


def closing(w, name):
    """(derivative, what else was given) of w x^2 by x, for a w that the function closes over."""
    x, f = adjoin.tensor([3.0, 4.0]), lambda x: w * x**2
    if name == "grad":
        return grad(lambda x: f(x).sum())(x), None
    if name == "grad_and_value":
        return grad_and_value(lambda x: f(x).sum())(x)
    if name == "jacrev":
        return jacrev(lambda x: f(x).sum())(x), None
    if name == "vjp":
        value, back = vjp(f, x)
        return back(adjoin.ones(2))[0], value
    if name == "jvp":
        value, moved = jvp(f, (x,), (adjoin.ones(2),))
        return moved, value
    value, along = adjoin.func.linearize(f, x)
    return along(adjoin.ones(2)), value


DERIVATIVES = ["grad", "grad_and_value", "jacrev", "vjp", "jvp", "linearize"]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_what_a_function_closes_over_keeps_its_history(name):
    w = adjoin.tensor([1.0, 2.0], requires_grad=True)
    found, value = closing(w, name)
    assert found.tolist() == [6, 16] and adjoin.autograd.grad(found.sum(), w)[0].tolist() == [6, 8]
    if value is not None:
        assert adjoin.autograd.grad(value.sum(), w)[0].tolist() == [9, 16]
    closing(w, name)[0].sum().backward()
    assert w.grad.tolist() == [6, 8]
    with adjoin.no_grad():
        assert not closing(w, name)[0].requires_grad
    assert not closing(w.detach(), name)[0].requires_grad


def test_what_a_long_function_closes_over_keeps_its_history():
    w = adjoin.tensor(2.0, requires_grad=True)

    def f(x, w):
        y = x * w
        for _ in range(200):  # more nodes than the walk has room for at first
            y = y + x
        return y.sum() ** 2

    x = adjoin.ones(1)
    assert adjoin.autograd.grad(grad(lambda x: f(x, w))(x).sum(), w)[0].item() == 2 * 2 * 202
    assert not grad(lambda x: f(x, w.detach()))(x).requires_grad


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_derivative_of_a_derivative_by_what_the_inner_one_closes_over(name):
    for around in (grad, jacrev, jacfwd):
        found = around(lambda w: closing(w, name)[0].sum())(adjoin.tensor([1.0, 2.0]))
        assert found.tolist() == [6, 8]
        assert name in ("vjp", "linearize") or not found.requires_grad


def test_what_comes_along_keeps_only_its_own_history():
    w, x = adjoin.tensor([1.0, 2.0], requires_grad=True), adjoin.tensor([3.0, 4.0])
    found, (value, aux) = grad_and_value(lambda x: ((x**2).sum(), w * x), has_aux=True)(x)
    assert [t.requires_grad for t in (found, value, aux)] == [False, False, True]
    found, (value, aux) = grad_and_value(lambda x: ((w * x**2).sum(), x * 2), has_aux=True)(x)
    assert [t.requires_grad for t in (found, value, aux)] == [True, True, False]


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", adjoin.zeros(1))
        self.plain, self.scale = adjoin.ones(1), 2.0

    def forward(self, x):
        self.seen = self.seen + 1
        return x * self.plain * self.scale + self.seen


@either
def test_functional_call_gives_back_what_the_module_set(functional_call):
    module, given = Counts(), {"seen": adjoin.tensor([5.0]), "plain": adjoin.tensor([3.0])}
    first = given["seen"]
    assert functional_call(module, given, adjoin.ones(1)).tolist() == [12.0]
    assert given["seen"].tolist() == [6.0] and first.tolist() == [5.0]
    assert module.seen.tolist() == [0.0] and module.plain.tolist() == [1.0], "attributes that are tensors are lent, too"
    assert functional_call(module, {"extra": adjoin.ones(1)}, adjoin.ones(1)).tolist() == [3.0]
    assert not hasattr(module, "extra") and module.seen.tolist() == [1.0]


@either
def test_functional_call_refuses_what_is_no_tensor(functional_call):
    module = Tied()
    own = {name: value.tolist() for name, value in module.state_dict().items()}
    for given, error, words in (
        ({"one.weight": 3.0}, TypeError, "3.0 is not an instance of torch.Tensor"),
        ({"one.weight": adjoin.eye(2), "three.bias": adjoin.ones(2)}, AttributeError, "Tied has no attribute `three`"),
        (
            {"one.weight": adjoin.eye(2), "one.in_features": adjoin.ones(2)},
            TypeError,
            "attribute `in_features`: 2 is not",
        ),
    ):
        with pytest.raises(error, match=words):
            functional_call(module, given, adjoin.ones(1, 2))
        assert {name: value.tolist() for name, value in module.state_dict().items()} == own


@either
def test_functional_call_in_a_ring_of_modules(functional_call):
    module = Tied()
    object.__setattr__(module, "kept", module)
    module.one._modules["home"] = module
    out = functional_call(module, {"one.home.one.weight": adjoin.eye(2)}, adjoin.ones(1, 2), tie_weights=False)
    assert out.shape == (1, 2)


@either
def test_strict_functional_call_counts_tied_names(functional_call):
    given = {"one.weight": adjoin.eye(2), "shift": adjoin.zeros(2)}
    assert functional_call(Tied(), given, adjoin.ones(1, 2), strict=True).tolist() == [[2.0, 2.0]]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'two.weight'"):
        functional_call(Tied(), given, adjoin.ones(1, 2), strict=True, tie_weights=False)


@pytest.mark.parametrize("f", [grad, jacrev, jacfwd])
def test_numbers_of_arguments(f):
    def product(a, b):
        return a * b

    a, b = adjoin.tensor(2.0), adjoin.tensor(3.0)
    assert f(product, argnums=-1)(a, b) == 2 and [x.item() for x in f(product, argnums=(-1, 0))(a, b)] == [2, 3]
    for numbers, words in (
        (-3, "but only 2"),
        (2, "but only 2"),
        ([0], "int or Tuple"),
        (0.0, "int or Tuple"),
        (("0",), "must be int"),
        ((1, -1), "must be unique"),
        ((), "must be non-empty"),
    ):
        with pytest.raises(RuntimeError, match=words):
            f(product, argnums=numbers)(a, b)


def test_rows_of_one_element():
    """The Jacobian of one element by a vector has two dimensions."""
    made = jacrev(lambda x, y: (y.sum(), x * y, y.sum(0, keepdim=True)), (0, 1))(adjoin.tensor(2.0), adjoin.ones(1))
    assert [tuple(x.shape) for pair in made for x in pair] == [(), (1,), (1,), (1, 1), (1,), (1, 1)]
    x = adjoin.tensor([1.0, 2.0, 3.0])
    assert jacrev(lambda x: (x * x).sum(0, keepdim=True))(x).tolist() == [[2, 4, 6]]


def test_what_a_function_gives():
    x = adjoin.ones(2)
    for made in (None, (), [], {}):
        for call in (
            lambda: vjp(lambda _: made, x),
            lambda: jvp(lambda _: made, (x,), (x,)),
            lambda: jacrev(lambda _: made)(x),
            lambda: jacfwd(lambda _: made)(x),
        ):
            with pytest.raises(RuntimeError, match="non-empty output"):
                call()
    for made in (1, "text", [x, 2.0]):
        for call in (lambda: vjp(lambda _: made, x), lambda: jacrev(lambda _: made)(x)):
            with pytest.raises(RuntimeError, match="only tensors"):
                call()
    for call in (
        lambda: grad(lambda t: [t.sum(), t], has_aux=True)(x),
        lambda: jacrev(lambda t: (t, t, t), has_aux=True)(x),
        lambda: vjp(lambda t: t, x, has_aux=True),
    ):
        with pytest.raises(RuntimeError, match=r"should be a tuple \(output, aux\)"):
            call()
    with pytest.raises(RuntimeError, match="non-empty"):
        jvp(adjoin.sin, (), ())


def test_cotangents_have_the_form_of_the_outputs():
    x = adjoin.ones(())
    _, back = vjp(lambda x: (x, [2 * x, 3 * x]), x)
    assert back((x, [x, x]))[0] == 6 and back((x, [x, x]), True, True)[0] == 6
    for wrong in (x, (x, x, x), ((x, [x, x]),), (x, [x])):
        with pytest.raises(RuntimeError, match=r"Expected pytree structure.*the outputs \(\*, \[\*, \*\]\)"):
            back(wrong)


def test_models_that_are_stacked_are_alike():
    models = [nn.Linear(2, 2) for _ in range(3)]
    models[1].eval()
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state(models)
    models[1].train()
    models[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"'weight' of each model to have the same .requires_grad"):
        stack_module_state(models)
    with pytest.raises(RuntimeError, match="at least one model"):
        stack_module_state([])


@pytest.mark.parametrize("f", [jacrev, jacfwd])
def test_jacobians_are_real(f):
    with pytest.raises(RuntimeError, match="inputs to be real.*view_as_real"):
        f(adjoin.conj)(adjoin.ones(2, dtype=adjoin.complex64))
    with pytest.raises(RuntimeError, match="outputs to be real"):
        f(lambda x: x * 0.5j)(adjoin.ones(2))
