"""tests/python/autograd/gradcheck_test.py: what gradcheck refuses, and that batches and forward over reverse are looked at when asked."""

import functools

import adjoin as aj
import pytest


def reads(a):
    """Its backward is right, and reads a number: a batch has none."""
    y = a * 2
    if y.requires_grad:
        y.register_hook(lambda g: g * (1 + 0 * g.sum().item()))
    return y


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_looks_at_batches_when_asked(fast_mode):
    x = aj.rand(3, dtype=aj.float64, requires_grad=True)
    check = functools.partial(aj.autograd.gradcheck, inputs=(x,), fast_mode=fast_mode)
    both = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}
    assert check(reads) and check(lambda a: (a.sin(), a * 2), **both)
    with pytest.raises(RuntimeError, match="gradcheck or gradgradcheck failed while testing batched gradient"):
        check(reads, check_batched_grad=True)
    assert check(reads, check_batched_grad=True, raise_exception=False) is False

    class Reads(aj.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def jvp(ctx, t):
            return t * (2 + 0 * t.sum().item())

    with pytest.raises(RuntimeError, match="failed while testing batched gradient computation in forward mode"):
        check(Reads.apply, check_forward_ad=True, check_backward_ad=False, check_batched_forward_grad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_refuses_what_it_cannot_compare(fast_mode):
    check = functools.partial(aj.autograd.gradcheck, fast_mode=fast_mode)
    x = aj.ones(2, dtype=aj.float64, requires_grad=True)
    for what, changes in (
        ("shape", lambda a: aj.cat([a, a]) if bool((a >= 1).all()) else a),
        ("dtype", lambda a: a.float() if bool((a >= 1).all()) else a),
        ("number", lambda a: (a, a) if bool((a >= 1).all()) else (a,)),
    ):
        with pytest.raises(AssertionError, match=f"outputs with the same {what} when inputs are perturbed"):
            check(changes, (x,))
    with pytest.raises(RuntimeError, match="The 1th input has a dimension with stride 0"):
        check(aj.mul, (x, aj.ones(1, dtype=aj.float64, requires_grad=True).expand(2)))
    for wrong, words in (
        ({"check_backward_ad": False}, "at least one of"),
        ({"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}, "needs check_backward_ad"),
        ({"check_batched_forward_grad": True}, "needs check_forward_ad"),
    ):
        with pytest.raises(AssertionError, match=words):
            check(aj.sin, (x,), **wrong)
    assert check(lambda a: (), (x,))

    class Lazy(aj.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a.clone()

        @staticmethod
        def backward(ctx, g):
            return aj.ones_like(g) if not bool(g.any()) else g

    with pytest.raises(RuntimeError, match="backward not multiplied by grad_output"):
        check(Lazy.apply, (x,), check_undefined_grad=False)


def test_gradgradcheck_goes_forward_over_reverse_when_asked():
    x = aj.rand(3, dtype=aj.float64, requires_grad=True)
    assert aj.autograd.gradgradcheck(lambda a: a**3, (x,), check_fwd_over_rev=True, check_batched_grad=True)

    class Square(aj.autograd.Function):
        @staticmethod
        def forward(a):
            return a * a

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return Twice.apply(g, *ctx.saved_tensors)

        @staticmethod
        def jvp(ctx, t):
            return 2 * t * ctx.saved_tensors[0]

    class Twice(aj.autograd.Function):
        @staticmethod
        def forward(g, a):
            return 2 * g * a

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, h):
            g, a = ctx.saved_tensors
            return 2 * h * a, 2 * h * g

        @staticmethod
        def jvp(ctx, dg, da):
            return sum(t * 7 for t in (dg, da) if t is not None)

    assert aj.autograd.gradgradcheck(Square.apply, (x,))
    with pytest.raises(RuntimeError, match="forward mode mismatch"):
        aj.autograd.gradgradcheck(Square.apply, (x,), check_fwd_over_rev=True)


def test_batched_gradients_are_one_pass():
    calls = []
    x, unused = aj.rand(3, dtype=aj.float64, requires_grad=True), aj.rand(2, requires_grad=True)
    y = x.sin() * x
    y.register_hook(lambda g: calls.append(g.shape))
    rows = aj.eye(3, dtype=aj.float64)
    found, none = aj.autograd.grad(y, (x, unused), rows, is_grads_batched=True, create_graph=True, allow_unused=True)
    assert len(calls) == 1 and none is None and found.allclose((x.sin() + x * x.cos()).diag())
    (second,) = aj.autograd.grad(found.sum(), x)
    assert second.allclose(2 * x.cos() - x * x.sin())
    outs = x * 2, x.sum()
    assert aj.autograd.grad(outs, x, (rows, None), is_grads_batched=True)[0].equal(rows * 2 + 1)


@pytest.mark.parametrize("what", ["jacobian", "hessian"])
def test_vectorized_rows_are_one_pass(what):
    passes = []

    def function(a, b):
        y = a.sin() * b.sum() * a[0]
        y.register_hook(lambda g: passes.append(1))
        return y if what == "jacobian" else y.sum()

    of, inputs = getattr(aj.autograd.functional, what), (aj.rand(4, dtype=aj.float64), aj.rand(2, dtype=aj.float64))
    wanted = of(function, inputs)
    slow, passes[:] = len(passes), []
    found = of(function, inputs, vectorize=True)
    assert len(passes) == 1 and slow == (4 if what == "jacobian" else 1)
    flat = lambda t: [t] if isinstance(t, aj.Tensor) else sum(map(flat, t), [])
    for a, b in zip(flat(found), flat(wanted), strict=True):
        assert a.shape == b.shape and a.allclose(b)
