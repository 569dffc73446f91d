"""tests/python/autograd/autograd_test.py: gradients from Python: backward, grad, modes, hooks, graphs, messages."""

import gc
import subprocess
import sys
import weakref

import adjoin as aj
import pytest


def leaf(*values):
    return aj.tensor(values, dtype=aj.float64, requires_grad=True)


def test_backward_accumulates():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0] and x.grad is x.grad


def test_gradient_argument():
    x = leaf(1.0, 2.0)
    (x * x).backward(aj.tensor([1.0, 10.0], dtype=aj.float64))
    assert x.grad.tolist() == [2.0, 40.0]
    with pytest.raises(RuntimeError):
        (x * x).backward()
    with pytest.raises(RuntimeError):
        (x * x).backward(aj.ones(3, dtype=aj.float64))


def test_grad():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    gx, gy = aj.autograd.grad((x * y).sum(), [x, y])
    assert gx.tolist() == [3.0, 4.0] and gy.tolist() == [1.0, 2.0] and x.grad is None
    with pytest.raises(RuntimeError):
        aj.autograd.grad(x.sum(), y)
    assert aj.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert aj.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0, 0.0]


def test_inputs_of_backward():
    x, y = leaf(1.0), leaf(2.0)
    (x * y).backward(inputs=[x])
    assert x.grad.tolist() == [2.0] and y.grad is None


def test_several_roots():
    x = leaf(2.0)
    aj.autograd.backward([x * x, x * 3], [None, aj.tensor([2.0], dtype=aj.float64)])
    assert x.grad.tolist() == [10.0]


def test_second_derivatives():
    x = leaf(2.0)
    (g,) = aj.autograd.grad(x**3, x, create_graph=True)
    (h,) = aj.autograd.grad(g, x)
    assert g.item() == 12.0 and h.item() == 12.0


def test_a_graph_is_used_once_unless_retained():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_modes():
    x = leaf(1.0)
    with aj.no_grad():
        assert not aj.is_grad_enabled() and not (x * 2).requires_grad
        with aj.enable_grad():
            assert (x * 2).requires_grad
    assert aj.is_grad_enabled()
    with aj.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    previous = aj.set_grad_enabled(False)
    assert not aj.is_grad_enabled()
    aj.set_grad_enabled(True)
    del previous
    with aj.inference_mode():
        y = x * 2
        assert y.is_inference() and aj.is_inference_mode_enabled() and not y.requires_grad
    with pytest.raises(RuntimeError):
        y.add_(1)


def test_modes_as_decorators():
    x = leaf(1.0)

    @aj.no_grad()
    def off(a):
        """Doc."""
        return a * 2

    @aj.no_grad
    def bare(a):
        return a * 2

    @aj.inference_mode()
    def inferred(a):
        return a * 2

    @aj.no_grad()
    def numbers(a):
        for i in range(3):
            yield (a * i).requires_grad

    @aj.enable_grad()
    def on(a):
        return a * 2

    assert not off(x).requires_grad and off.__name__ == "off" and off.__doc__ == "Doc."
    assert not bare(x).requires_grad and inferred(x).is_inference()
    seen = []
    for wanted in numbers(x):
        seen.append((wanted, aj.is_grad_enabled()))
    assert seen == [(False, True)] * 3
    with aj.no_grad():
        assert on(x).requires_grad


def test_modes_are_left_by_exceptions():
    with pytest.raises(ZeroDivisionError), aj.no_grad():
        raise ZeroDivisionError
    assert aj.is_grad_enabled()


def test_leaves_and_detach():
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and not y.is_leaf and y.requires_grad and y.grad_fn.name() == "MulBackward0"
    d = y.detach()
    assert d.is_leaf and not d.requires_grad and d.data_ptr() == y.data_ptr()
    assert not x.data.requires_grad and x.detach().requires_grad is False
    assert aj.ones(1).requires_grad_().requires_grad
    with pytest.raises(RuntimeError):
        aj.ones(1, dtype=aj.int64).requires_grad_()
    with pytest.raises(RuntimeError):
        y.requires_grad = False


def test_grad_can_be_set():
    x = leaf(1.0, 2.0)
    x.grad = aj.ones(2, dtype=aj.float64)
    g = x.grad
    g.mark = "mine"
    del g
    assert x.grad.mark == "mine"
    x.grad = None
    assert x.grad is None
    with pytest.raises(TypeError, match="must be Tensor or None, not int"):
        x.grad = 3
    with pytest.raises(RuntimeError):
        x.grad = aj.ones(3, dtype=aj.float64)


def test_retain_grad():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * 3).backward()
    assert y.grad.item() == 3.0


def test_data_writes_are_not_noticed():
    x = leaf(1.0)
    y = x * x
    x.data.mul_(5)
    y.backward()
    assert x.grad.item() == 10.0
    x.data = aj.tensor([7.0], dtype=aj.float64)
    assert x.item() == 7.0 and x.requires_grad


def test_versions():
    x = aj.ones(2)
    before = x._version
    x.add_(1)
    x[0] = 3
    assert x._version == before + 2 and x[0:1]._version == x._version and x[0]._base is x


def test_saved_value_changed_in_place():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="autograd_test.py"):
        z.sum().backward()


def test_leaf_written_in_place():
    with pytest.raises(RuntimeError):
        leaf(1.0).add_(1)


def test_in_place_on_views():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1] = 10.0
    y[2:].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 5.0]
    buffer = aj.zeros(3, dtype=aj.float64)
    x.grad = None
    buffer[0] = x[1] * 2
    assert buffer.requires_grad
    buffer.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]


def test_indexing_gradients():
    x = aj.arange(6.0, dtype=aj.float64).reshape(2, 3).requires_grad_()
    (x[:, [0, 0]].sum() + x[x > 3].sum() * 10 + x[1, 2] * 100 + x[None, ..., 1].sum() * 1000).backward()
    assert x.grad.tolist() == [[2.0, 1000.0, 0.0], [2.0, 1010.0, 110.0]]


# Graph


def test_next_functions():
    x = leaf(1.0)
    y = (x * 2).sum()
    node = y.grad_fn
    inner = node.next_functions[0][0]
    assert node.name() == "SumBackward0" and inner.name() == "MulBackward0"
    accumulate = next(n for n, _ in inner.next_functions if n is not None)
    assert accumulate.name() == "torch::autograd::AccumulateGrad" and accumulate.variable is x
    assert inner == (node.next_functions[0][0]) and inner != node and "MulBackward0" in repr(inner)
    assert "autograd_test.py" in inner.line


def test_node_hooks():
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(("pre", grads[0].tolist())))
    handle = y.grad_fn.register_hook(lambda gi, go: seen.append(("post", go[0].tolist())))
    y.sum().backward(retain_graph=True)
    assert seen == [("pre", [1.0, 1.0]), ("post", [1.0, 1.0])]
    handle.remove()
    y.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 2 for g in gi))
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_tensor_hooks():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g * 10)
    handle = x.register_hook(lambda g: seen.append(("leaf", g.item())))
    (y * 3).backward(retain_graph=True)
    assert seen == [3.0, ("leaf", 60.0)] and x.grad.item() == 60.0
    handle.remove()
    with pytest.raises(TypeError, match="must be callable"):
        x.register_hook(3)


def test_a_hook_that_returns_its_gradient_keeps_nothing():
    x = aj.ones(2, requires_grad=True)

    def passes():
        y = x * 2
        y.register_hook(lambda g: g)
        y.grad_fn.register_hook(lambda into, out: into)
        y.grad_fn.register_prehook(lambda out: out)
        y.sum().backward()
        x.grad = None

    def taken(times):
        for _ in range(times):
            passes()
        gc.collect()
        return aj.memory.memory_allocated()

    taken(10)
    assert taken(50) == taken(50)


def test_hook_after_accumulation():
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * 2).backward()
    assert seen == [(True, 2.0)]


def test_exceptions_pass_through_backward():
    x = leaf(1.0)
    y = x * 2
    error = ZeroDivisionError("mine")

    def bad(grad):
        raise error

    y.register_hook(bad)
    with pytest.raises(ZeroDivisionError) as caught:
        y.backward()
    assert caught.value is error
    with pytest.raises(TypeError, match="wanted a Tensor or None"):
        z = x * 2
        z.register_hook(lambda g: 3)
        z.backward()


def test_multi_grad_hook():
    x, y = leaf(1.0), leaf(2.0)
    seen = []
    handle = aj.autograd.graph.register_multi_grad_hook([x, y], lambda grads: seen.append([g.item() for g in grads]))
    (x * y).backward()
    assert seen == [[2.0, 1.0]]
    handle.remove()


def test_multi_grad_hooks_keep_no_tensor():
    def taken(times):
        for _ in range(times):
            a, b = aj.ones(2, requires_grad=True), aj.ones(2, requires_grad=True)
            aj.autograd.graph.register_multi_grad_hook([a, b], lambda grads: None)
            (a * b).sum().backward()
            del a, b
        gc.collect()
        return aj.memory.memory_allocated()

    taken(10)
    assert taken(50) == taken(50)


def test_saved_tensors_hooks():
    x = leaf(2.0)
    packed = []

    def pack(t):
        packed.append(t.item())
        return t.item()

    with aj.autograd.graph.saved_tensors_hooks(pack, lambda v: aj.tensor([v * 10], dtype=aj.float64)):
        y = x * x
    y.backward()
    assert packed == [2.0, 2.0] and x.grad.item() == 40.0


def test_anomaly_mode():
    x = leaf(0.0)
    with aj.autograd.detect_anomaly():
        y = (x / x).sum()
        with pytest.raises(RuntimeError, match="autograd_test.py"):
            y.backward()


def test_a_graph_dies_with_its_last_tensor():
    x = leaf(1.0)
    y = x * 2
    y.tag = 1
    seen = weakref.ref(y)
    z = (y * 3).sum()
    del y
    gc.collect()
    assert z.grad_fn is not None
    del z
    gc.collect()
    assert seen() is None


def test_a_tensor_with_attributes_survives_in_the_graph():
    x = leaf(1.0)
    x.tag = "kept"
    y = x * x
    address = id(x)
    del x
    found = next(n for n, _ in y.grad_fn.next_functions if n is not None).variable
    assert found.tag == "kept" and id(found) == address


def test_functional():
    from adjoin.autograd import functional as F

    x = leaf(1.0, 2.0)
    assert F.jacobian(lambda a: a * a, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert F.hessian(lambda a: (a**3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    v = aj.tensor([1.0, 10.0], dtype=aj.float64)
    assert F.vjp(lambda a: a * a, x, v)[1].tolist() == [2.0, 40.0] == F.jvp(lambda a: a * a, x, v)[1].tolist()
    assert F.hvp(lambda a: (a**3).sum(), x, v)[1].tolist() == [6.0, 120.0]
    a, b = F.jacobian(lambda p, q: p * q, (leaf(2.0), leaf(3.0)))
    assert a.tolist() == [[3.0]] and b.tolist() == [[2.0]]


def test_gradcheck():
    from adjoin.autograd import gradcheck, gradgradcheck

    x, w = aj.randn(2, 3, dtype=aj.float64).requires_grad_(), aj.randn(3, 2, dtype=aj.float64).requires_grad_()
    assert gradcheck(lambda a, b: aj.tanh(a @ b), (x, w)) and gradgradcheck(lambda a, b: aj.tanh(a @ b), (x, w))
    z = aj.randn(3, dtype=aj.complex128).requires_grad_()
    assert gradcheck(lambda a: a * a, (z,)) and gradcheck(lambda a: (a * a.conj()).real, (z,))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_finds_errors(fast_mode):
    class Wrong(aj.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        aj.autograd.gradcheck(Wrong.apply, (x,), fast_mode=fast_mode)
    assert not aj.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False, fast_mode=fast_mode)
    z = aj.randn(3, dtype=aj.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        aj.autograd.gradcheck(lambda a: Wrong.apply(a) * 1j, (z,), fast_mode=fast_mode)


def test_gradcheck_along_a_direction_is_quick_where_elements_are_many():
    calls = []

    def many(x, z):
        calls.append(1)
        return x.sin(), z * x, (z * z.conj()).real

    x = aj.rand(40, 50, dtype=aj.float64).requires_grad_()
    z = aj.randn(40, 50, dtype=aj.complex128).requires_grad_()
    assert aj.autograd.gradcheck(many, (x, z), fast_mode=True) and len(calls) < 20
    assert aj.autograd.gradcheck(many, (x, z), fast_mode=True, check_forward_ad=True, check_backward_ad=False)
    assert aj.autograd.gradgradcheck(lambda a, b: a * a * b, (x, z), fast_mode=True)
    state = aj.get_rng_state()
    assert aj.autograd.gradcheck(aj.sin, (x,), fast_mode=True) and aj.get_rng_state().equal(state)


def test_gradcheck_calls_the_function_while_it_records():
    """A function may choose its results by requires_grad, as tests of optimizers do."""
    x = leaf(1.0, 2.0)
    assert aj.autograd.gradcheck(lambda a: tuple(t for t in (a * 2, a * a) if t.requires_grad), (x,))


@pytest.mark.parametrize("write", ["fill_", "zero_", "copy_", "uniform_", "bernoulli_"])
def test_what_is_overwritten_has_gradient_zero(write):
    """Zeros, not None: an optimizer that asks for every gradient gets one."""
    x = leaf(1.0, 2.0)
    y = x * 3
    arguments = {"fill_": [7.0], "copy_": [aj.ones(2, dtype=aj.float64)]}.get(write, [])
    getattr(y, write)(*arguments)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_the_module_gradcheck_is_the_function_too():
    words = "import adjoin.autograd.gradcheck as m, adjoin as a; x = a.ones(2, dtype=a.float64, requires_grad=True); "
    words += "from adjoin.autograd.gradcheck import gradcheck; assert a.autograd.gradcheck(a.sin, (x,)) and m(a.sin, (x,)) and gradcheck(a.sin, (x,))"
    subprocess.run([sys.executable, "-c", words], check=True)


def test_a_reshape_that_copies_is_no_view():
    """It was one of a hidden copy: made with recording off, it could not be written with recording on."""
    x = aj.arange(4.0).requires_grad_().expand(2, 4)
    with aj.no_grad():
        copied, view = x.reshape(-1, 2), aj.arange(4.0).reshape(2, 2)
    assert copied._base is None and x.reshape(-1, 2)._base is None and view._base is not None
    factor = aj.ones(2, requires_grad=True)
    copied.mul_(factor)
    copied.sum().backward()
    assert factor.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="a view made with recording off"):
        view.mul_(factor)
