"""tests/python/toplevel/autograd_fallback_test.py: backward through ops of Library that have kernels and no derivative."""

import warnings

import adjoin
import pytest

C = adjoin._C


@pytest.fixture
def ops():
    with adjoin.library._scoped_library("autogradfallback", "FRAGMENT") as lib:
        lib.define("sine(Tensor x) -> Tensor")
        lib.impl("sine", lambda x: x.sin().sum(), "CPU")
        lib.define("opaque(Tensor x, Tensor y) -> Tensor")
        lib.impl("opaque", lambda x, y: adjoin.tensor((x.detach() + y.detach()).tolist()), "CPU")
        lib.define("both(Tensor x) -> (Tensor, Tensor)")
        lib.impl("both", lambda x: (x * 2, x.detach() * 3), "CPU")
        lib.define("writes_(Tensor(a!) x) -> Tensor(a!)")
        lib.impl("writes_", _writes, "CPU")
        yield adjoin.ops.autogradfallback
    C._set_autograd_fallback_mode("error")


def _writes(x):
    with adjoin.no_grad():
        return x.mul_(2)


def leaf():
    return adjoin.tensor([0.5, 1.0]).requires_grad_()


def test_ops_of_the_kernel_are_recorded_and_told(ops):
    x = leaf()
    y = ops.sine(x)
    with pytest.warns(UserWarning, match="autogradfallback::sine: an autograd kernel was not registered"):
        y.backward()
    assert adjoin.allclose(x.grad, x.detach().cos())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with adjoin.no_grad():
            assert not ops.sine(x).requires_grad
        assert not ops.sine(x.detach()).requires_grad


def test_a_result_without_history_is_an_error_a_warning_or_nothing(ops):
    assert C._get_autograd_fallback_mode() == "error"
    with pytest.raises(NotImplementedError, match="opaque: no derivative is registered, and its kernel computed"):
        ops.opaque(leaf(), leaf()).sum().backward()
    C._set_autograd_fallback_mode("warn")
    x = leaf()
    with pytest.warns(UserWarning, match="opaque: an autograd kernel was not registered"):
        ops.opaque(x, x).sum().backward()
    assert x.grad is None
    C._set_autograd_fallback_mode("nothing")
    with pytest.raises(RuntimeError, match="does not require grad"):
        ops.opaque(x, x).sum().backward()
    with pytest.raises(RuntimeError, match="'loud' is none of nothing, warn, error"):
        C._set_autograd_fallback_mode("loud")


def test_each_result_counts_by_itself(ops):
    x = leaf()
    first, second = ops.both(x)
    with pytest.warns(UserWarning, match="both"):
        first.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="both: no derivative"):
        second.sum().backward()


def test_what_is_written_keeps_its_history_where_that_is_asked_for(ops):
    with pytest.raises(RuntimeError, match="it writes to a tensor that requires grad"):
        ops.writes_(leaf().clone())
    C._set_autograd_fallback_mode("warn")
    x = leaf()
    y = x.clone()
    assert ops.writes_(y) is y
    with pytest.warns(UserWarning, match="writes_: an autograd kernel was not registered"):
        y.sum().backward()
    assert x.grad.tolist() == [1, 1] and y.tolist() == [1, 2]


def test_a_derivative_that_comes_later_is_taken(ops):
    adjoin.library.register_autograd("autogradfallback::sine", lambda ctx, g: g.expand(2) * 7)
    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.sine(x).backward()
    assert x.grad.tolist() == [7, 7]
    adjoin.library._definitions["autogradfallback::sine"].backward = None


def test_deleting_what_a_library_holds_takes_its_kernels_back():
    lib = adjoin.library.Library("autogradfallback2", "FRAGMENT")
    lib.define("one(Tensor x) -> Tensor")
    lib.impl("one", lambda x: x + 1, "CPU")
    assert adjoin.ops.autogradfallback2.one(adjoin.ones(1)) == 2 and lib.m
    del lib.m
    with pytest.raises(NotImplementedError, match="no kernel for the device 'cpu'"):
        adjoin.ops.autogradfallback2.one(adjoin.ones(1))
