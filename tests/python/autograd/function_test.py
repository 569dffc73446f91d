"""tests/python/autograd/function_test.py: functions with a derivative written in Python."""

import gc
import weakref

import adjoin as aj
import pytest
from adjoin.autograd import Function
from adjoin.autograd.function import once_differentiable


def leaf(*values):
    return aj.tensor(values, dtype=aj.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


def test_first_and_second_derivative():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.item() == 8.0 and y.requires_grad and not y.is_leaf
    (g,) = aj.autograd.grad(y, x, create_graph=True)
    (h,) = aj.autograd.grad(g, x)
    assert g.item() == 12.0 and h.item() == 12.0
    assert aj.autograd.gradcheck(Cube.apply, (leaf(1.0, -2.0),))
    assert aj.autograd.gradgradcheck(Cube.apply, (leaf(1.0, -2.0),))


def test_the_context_is_the_node():
    class Marked(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = "here"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Marked.apply(leaf(1.0))
    assert y.grad_fn.note == "here" and y.grad_fn.name() == "MarkedBackward" and y.grad_fn is y.grad_fn
    assert y.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    assert (y + 1).grad_fn.next_functions[0][0] is y.grad_fn


def test_other_arguments_and_several_results():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, y=None):
            ctx.factor = factor
            return x * factor, "text", x + 1

        @staticmethod
        def backward(ctx, g, none, h):
            assert none is None
            return g * ctx.factor + h, None, None

    x = leaf(1.0)
    a, text, b = Scale.apply(x, 5, None)
    assert text == "text"
    (a + b).backward()
    assert x.grad.item() == 6.0


def test_needs_input_grad():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, y, n):
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g, None

    Two.apply(leaf(1.0), aj.ones(1, dtype=aj.float64), 3).backward()
    assert seen == [(True, False, False)]


def test_setup_context():
    class Sine(Function):
        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()

    assert aj.autograd.gradcheck(Sine.apply, (leaf(0.3, 1.0),))


def test_saved_output():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y, None)
            return y

        @staticmethod
        def backward(ctx, g):
            y, none = ctx.saved_tensors
            assert none is None
            return g * y

    x = leaf(0.5, 1.0)
    assert aj.autograd.gradcheck(Exp.apply, (x,)) and aj.autograd.gradgradcheck(Exp.apply, (x,))
    y = Exp.apply(x)
    seen = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert seen() is None


def test_undefined_gradients():
    class Split(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Split.materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            Split.seen = (a, b)
            return a

    x = leaf(1.0)
    Split.apply(x)[0].backward()
    assert Split.seen[1].tolist() == [0.0]
    Split.materialize = False
    Split.apply(x)[0].backward()
    assert Split.seen[1] is None


def test_mark_dirty():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.item() == 2.0 and y.grad_fn.name() == "DoubleBackward"
    y.backward()
    assert x.grad.item() == 2.0


def test_mark_non_differentiable():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, places = x.sort()
            other = x * 0
            ctx.mark_non_differentiable(other)
            ctx.save_for_backward(places)
            return values, places, other

        @staticmethod
        def backward(ctx, g, *rest):
            out = aj.zeros_like(g)
            out[ctx.saved_tensors[0]] = g
            return out

    x = leaf(3.0, 1.0)
    values, places, other = Sorted.apply(x)
    assert not places.requires_grad and not other.requires_grad
    (values * aj.tensor([1.0, 10.0], dtype=aj.float64)).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_a_returned_input_is_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and x.is_leaf
    y.backward()
    assert x.grad.item() == 7.0


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    (g,) = aj.autograd.grad(Once.apply(x) ** 2, x, create_graph=True)
    assert g.item() == 108.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_without_recording():
    assert not Cube.apply(aj.ones(1)).requires_grad
    with aj.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad


@pytest.mark.parametrize(
    "returned, words",
    [
        ((None, None), "incorrect number of gradients \\(expected 1, got 2\\)|None"),
        ((1.0,), "returned float at position 0"),
        ((aj.ones(3),), "shape|size"),
    ],
)
def test_bad_gradients(returned, words):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return returned

    x = leaf(1.0, 2.0)
    if returned == (None, None):
        Bad.apply(x).sum().backward()  # trailing Nones are forgiven
        return
    with pytest.raises(RuntimeError, match=words):
        Bad.apply(x).sum().backward()


def test_exceptions():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            if x.item() < 0:
                raise KeyError("forward")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("boo")

    with pytest.raises(KeyError):
        Fails.apply(leaf(-1.0))
    with pytest.raises(ValueError, match="^boo$"):
        Fails.apply(leaf(1.0)).backward()
    assert aj.is_grad_enabled()
    with pytest.raises(RuntimeError, match="not made but applied"):
        Fails()
    with pytest.raises(TypeError, match="can only save variables"):

        class Saves(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)

        Saves.apply(leaf(1.0))


def test_saved_tensor_changed_in_place():
    x = leaf(2.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError):
        z.backward()


def test_reentrant_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            with aj.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x * x).backward(g)
            return x.grad

    x = leaf(3.0)
    Inner.apply(x).backward()
    assert x.grad.item() == 6.0


def test_a_result_may_be_returned_twice():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            out = x * 2
            return out, out

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 2

    x = leaf(1.0, 3.0)
    a, b = Both.apply(x)
    assert a is b and a.grad_fn is not None
    (a + b * 3).sum().backward()
    assert x.grad.tolist() == [8, 8]

    def twice(x):
        a, b = Both.apply(x)
        return a * b

    assert aj.autograd.gradcheck(twice, (leaf(1.0, 3.0),)) and aj.autograd.gradgradcheck(twice, (leaf(1.0, 3.0),))
