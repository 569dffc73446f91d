"""tests/python/autograd/in_place_transforms_test.py: shapes changed in place inside of transforms, Functions that write, zeros for what is unused."""

import warnings

import adjoin
import pytest
from adjoin.autograd import Function, forward_ad, gradcheck
from adjoin.func import grad, jvp, vmap

X = adjoin.arange(24.0).view(4, 2, 3)


@pytest.mark.parametrize(
    "name,args",
    [("squeeze_", (0,)), ("unsqueeze_", (0,)), ("transpose_", (0, 1)), ("t_", ()), ("swapaxes_", (0, 1)), ("swapdims_", (-1, 0))],
)  # fmt: skip
@pytest.mark.parametrize("recorded", [False, True])
def test_shapes_change_in_place_inside_of_vmap(name, args, recorded):
    x = X[:, :1] if name == "squeeze_" else X

    def change(sample, weight):
        y = sample * weight if recorded else sample.clone()
        assert getattr(y, name)(*args) is y
        return (y * y.sum(0)).sum()

    function = grad(change, argnums=1) if recorded else change
    weights = (x + 1).cos()
    got = vmap(function)(x, weights)
    want = adjoin.stack([function(a, b) for a, b in zip(x, weights, strict=True)])
    assert adjoin.allclose(got, want) and got.shape == want.shape


def test_shapes_change_in_place_of_what_carries_a_tangent():
    def change(x):
        y = x * x
        y.t_().unsqueeze_(0)
        return y * 2

    value, tangent = jvp(change, (X[0],), (adjoin.ones(2, 3),))
    assert adjoin.equal(value, (2 * X[0] ** 2).t()[None]) and adjoin.equal(tangent, (4 * X[0]).t()[None])


class Doubles(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t.mul_(2)


class Copies(Doubles):
    @staticmethod
    def jvp(ctx, t):
        return t * 2


class Leaves(Doubles):
    @staticmethod
    def jvp(ctx, t):
        return t


@pytest.mark.parametrize("trained", [True, False])
def test_a_function_writes_value_and_tangent_in_place(trained):
    x = adjoin.tensor([1.0, 3.0], requires_grad=trained).clone()
    tangent = adjoin.ones(2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        out = Doubles.apply(dual)
        assert out is dual
        value, moved = forward_ad.unpack_dual(out * out)
        assert value.tolist() == [4, 36] and moved.tolist() == [8, 24]
        assert tangent.tolist() == [2, 2] and x.tolist() == [2, 6]
        for wrong in (Copies, Leaves):
            with pytest.raises(RuntimeError, match="jvp function must modify the corresponding gradient inplace"):
                wrong.apply(forward_ad.make_dual(x.detach().clone(), adjoin.ones(2)))
    got = jvp(lambda x: Doubles.apply(x.clone()), (adjoin.ones(2),), (adjoin.ones(2),))
    assert [p.tolist() for p in got] == [[2, 2], [2, 2]]


def test_a_function_that_returns_its_argument_unwritten_gives_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def jvp(ctx, t):
            return t * 5

    x = adjoin.ones(2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, adjoin.ones(2))
        out = Same.apply(dual)
        assert out is not dual and forward_ad.unpack_dual(out).tangent.tolist() == [5, 5]
        assert forward_ad.unpack_dual(dual).tangent.tolist() == [1, 1]


def test_marking_what_is_no_input_warns():
    class Marks(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 3
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = adjoin.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Only input Tensors should be given to ctx.mark_dirty"):
        Marks.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_rule_for_batches_sees_the_form_of_its_arguments():
    seen = []

    class Sum(Function):
        @staticmethod
        def forward(x, others):
            return x + others[0] + others[1]["b"]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, others):
            seen.append(in_dims)
            return [x + others[0], others[1]["b"] * 2], [0, None]

    a, b = vmap(lambda x, y: Sum.apply(x, [y, {"b": adjoin.ones(3), "n": 5}]))(X[:, 0], X[:, 1])
    assert seen == [(0, [0, {"b": None, "n": None}])]
    assert adjoin.equal(a, X[:, 0] + X[:, 1]) and adjoin.equal(b, adjoin.full((4, 3), 2.0))


def test_zeros_for_what_is_unused_are_differentiated_again():
    x, a = adjoin.tensor(0.5, requires_grad=True), adjoin.tensor(1.0, requires_grad=True)
    first = adjoin.autograd.grad(x * a, x, create_graph=True)
    second = adjoin.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    third = adjoin.autograd.grad(second, x, materialize_grads=True)
    assert second[0].item() == third[0].item() == 0 and second[0].requires_grad
    wide = adjoin.zeros(2, 3, dtype=adjoin.float64, requires_grad=True)
    (zeros,) = adjoin.autograd.grad(first, wide, materialize_grads=True)
    assert zeros.shape == (2, 3) and zeros.dtype is adjoin.float64 and not zeros.any()


@pytest.mark.parametrize("fast", [True, False])
def test_gradcheck_gives_each_input_a_tangent(fast):
    def wrong(x, y):
        if forward_ad._current_level >= 0:
            value, moved = forward_ad.unpack_dual(y)
            y = forward_ad.make_dual(value, moved * 1.1)
        return x + y, y

    x, y = (adjoin.rand(2, dtype=adjoin.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(lambda x, y: (x + y, y), (x, y), check_forward_ad=True, fast_mode=fast)
    told = "Jacobian computed with forward mode mismatch for output 0 with respect to input 1"
    with pytest.raises(RuntimeError, match=told):
        gradcheck(wrong, (x, y), check_forward_ad=True, fast_mode=fast)
    z = adjoin.rand(2, dtype=adjoin.complex128, requires_grad=True)
    assert gradcheck(lambda x, y: (x + y, y), (z, y), check_forward_ad=True, fast_mode=fast)
    with pytest.raises(RuntimeError, match=told):
        gradcheck(wrong, (z, y), check_forward_ad=True, fast_mode=fast)


def test_the_search_for_anomalies_says_that_it_is_on():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        adjoin.autograd.detect_anomaly()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adjoin.autograd.set_detect_anomaly(False)
