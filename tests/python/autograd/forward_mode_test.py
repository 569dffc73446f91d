"""tests/python/autograd/forward_mode_test.py: tangents through programs: levels, views, in-place writes, functions of users."""

import sys
from pathlib import Path

import adjoin as T
import pytest
from adjoin import nn
from adjoin.autograd import forward_ad as fw
from adjoin.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from adjoin.testing import assert_close


sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "abi"))


def vector(n, seed=0):
    generator = T.Generator()
    generator.manual_seed(seed)
    return T.randn(n, dtype=T.float64, generator=generator)


X, V = vector(4), vector(4, 1)


def along(f, x=X, v=V, step=1e-6):
    return (f(x + step * v) - f(x - step * v)) / (2 * step)


def check(f, x=X, v=V):
    value, moved = jvp(f, (x,), (v,))
    assert_close(value, f(x))
    assert_close(moved, along(f, x, v), atol=1e-7, rtol=1e-6)


def test_dual_tensors():
    with fw.dual_level() as level:
        x = fw.make_dual(X, V)
        value, tangent = fw.unpack_dual(x.sin() * x)
        assert_close(value, X.sin() * X)
        assert_close(tangent, (X.cos() * X + X.sin()) * V)
        assert fw.unpack_dual(X).tangent is None
        assert fw.unpack_dual(x.detach(), level=level).tangent is None
        assert x.shape == X.shape and x.dtype == X.dtype
    assert fw.unpack_dual(X).primal is X


def test_what_is_detached_has_no_tangent_at_any_level():
    f = lambda x: x.detach() * x * x  # noqa: E731
    three = T.tensor(3.0)
    assert T.func.jacfwd(lambda x: x.detach() * x)(three) == 3
    assert T.func.vmap(T.func.jacfwd(lambda x: x.detach() * x))(three.reshape(1)).tolist() == [3]
    assert T.func.jacfwd(T.func.jacfwd(f))(three) == T.func.jacfwd(grad(f))(three) == T.func.hessian(f)(three) == 6
    with fw.dual_level():
        x = fw.make_dual(T.ones(2), T.ones(2))
        assert fw.unpack_dual(x.view(T.float32)).tangent is None
        x.detach().zero_()
        assert fw.unpack_dual(x).primal.tolist() == [0, 0]


def test_levels_are_checked():
    with pytest.raises(RuntimeError, match="no level is open"):
        fw.make_dual(X, V)
    with pytest.raises(RuntimeError, match="no level is open"):
        fw.exit_dual_level()
    with fw.dual_level():
        with pytest.raises(ValueError, match="the tensor is .*int64"):
            fw.make_dual(T.arange(3), T.arange(3))
        with pytest.raises(RuntimeError, match="the tangent is float64 of shape"):
            fw.make_dual(X, V[:2])
        outer = fw.enter_dual_level()
        inner = fw.enter_dual_level()
        with pytest.raises(RuntimeError, match="not the innermost"):
            fw.exit_dual_level(level=outer)
        fw.exit_dual_level(level=inner)
        fw.exit_dual_level(level=outer)


def test_what_escapes_a_function_is_refused():
    kept = []
    jvp(lambda x: kept.append(x) or x * 2, (X,), (V,))
    with pytest.raises(RuntimeError, match="transform that has ended"):
        kept[0] + 1


def test_after_its_level_a_dual_is_its_value():
    """So is what was made inside, which might have got a tangent by a write."""
    w = T.ones(4, dtype=X.dtype, requires_grad=True)
    with fw.dual_level():
        x, made = fw.make_dual(X, V), T.zeros(4, dtype=X.dtype)
        y = x * w
        made.add_(x)
    for t in (x, made, y):
        assert t.tolist() == X.tolist() and (t + 1).tolist() == (X + 1).tolist() and repr(t).startswith("tensor([")
    y.sum().backward()
    assert w.grad.tolist() == X.tolist() and T.stack([x, made]).tolist() == [X.tolist()] * 2
    assert made.mul_(2) is made and made.tolist() == (2 * X).tolist()
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(fw.make_dual(X, V) * x)
    assert primal.tolist() == (X * X).tolist() and tangent.tolist() == (V * X).tolist()


def test_nested_levels():
    """Derivatives of derivatives, and no tangent mistaken for another's."""
    f = lambda x: (x.sin() * x**2).sum()  # noqa: E731
    first = lambda x: jvp(f, (x,), (V,))[1]  # noqa: E731
    second = T.autograd.functional.hvp(f, X, V)[1] @ V
    assert_close(jvp(first, (X,), (V,))[1], second)
    assert_close(jvp(grad(f), (X,), (V,))[1] @ V, second)
    assert_close(grad(first)(X) @ V, second)
    third = jvp(lambda x: jvp(first, (x,), (V,))[1], (X,), (V,))[1]
    assert_close(third, along(lambda x: T.autograd.functional.hvp(f, x, V)[1] @ V), atol=1e-6, rtol=1e-6)


def test_no_perturbation_is_confused():
    one, x = T.ones((), dtype=T.float64), T.tensor(3.0, dtype=T.float64)
    inner = lambda x: jvp(lambda y: x + y, (one,), (one,))[1]  # noqa: E731
    assert jvp(lambda x: x * inner(x), (x,), (one,))[1].item() == 1
    assert grad(lambda x: x * inner(x))(x).item() == 1
    assert jvp(lambda x: x * grad(lambda y: x * y)(one), (x,), (one,))[1].item() == 6
    assert grad(lambda x: x * jvp(lambda y: x * y, (one,), (one,))[1])(x).item() == 6
    assert jvp(lambda x: grad(lambda y: x * grad(lambda z: x * y * z)(y))(one), (x,), (one,))[1].item() == 6


def test_batches_of_tangents():
    f = lambda x: T.tanh(x).cumsum(0) * x  # noqa: E731
    assert_close(jacfwd(f)(X), jacrev(f)(X))
    assert_close(jacfwd(f, chunk_size=3)(X), jacrev(f)(X))
    many = vmap(lambda v: jvp(f, (X,), (v,))[1])(T.eye(4, dtype=T.float64))
    assert_close(many.T, jacrev(f)(X))
    rows = T.stack([X, V])
    assert_close(jvp(lambda r: vmap(f)(r), (rows,), (rows,))[1], T.stack([jvp(f, (r,), (r,))[1] for r in rows]))
    assert_close(vmap(jacfwd(f))(rows), T.stack([jacrev(f)(r) for r in rows]))


def test_jacobians():
    f = lambda x, y: {"a": x.outer(y), "b": (x * y).sum()}  # noqa: E731
    got, want = jacfwd(f, (0, 1))(X, V), jacrev(f, (0, 1))(X, V)
    for name in ("a", "b"):
        for a, b in zip(got[name], want[name], strict=True):
            assert_close(a, b)
    made, aux = jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(X)
    assert_close(made.diagonal(), 2 * X)
    assert_close(aux, X.sum())
    g = lambda x: (x.sin() * x.prod()).sum()  # noqa: E731
    assert_close(hessian(g)(X), jacrev(jacrev(g))(X))
    nested = hessian(lambda x, y: (x**2 * y).sum(), (0, 1))(X, V)
    assert_close(nested[0][1].diagonal(), 2 * X)
    assert_close(nested[1][1], T.zeros(4, 4, dtype=T.float64))
    with pytest.raises(RuntimeError, match="int64"):
        jacfwd(lambda x: x)(T.arange(3))


def test_functional_takes_forward_mode():
    F = T.autograd.functional
    f = lambda x, y: (x * y, y.sum())  # noqa: E731
    forward, reverse = (F.jacobian(f, (X, V), strategy=s) for s in ("forward-mode", "reverse-mode"))
    for a, b in zip(forward, reverse, strict=True):
        for p, q in zip(a, b, strict=True):
            assert_close(p, q)
    g = lambda x: (x**3).sum()  # noqa: E731
    assert_close(F.hessian(g, X, outer_jacobian_strategy="forward-mode"), T.diag(6 * X))
    with pytest.raises(ValueError, match="'sideways'"):
        F.jacobian(g, X, strategy="sideways")


def test_strict_and_aux():
    with pytest.raises(RuntimeError, match="does not depend"):
        jvp(lambda x: T.ones(2), (X,), (V,), strict=True)
    value, moved, aux = jvp(lambda x: (x * 2, x + 1), (X,), (V,), has_aux=True)
    assert_close(moved, 2 * V)
    assert_close(aux, X + 1)
    assert jvp(lambda x: T.ones(2), (X,), (V,))[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="to return only tensors"):
        jvp(lambda x: 3, (X,), (V,))


def test_history_of_value_and_tangent():
    x, v = X.clone().requires_grad_(), V.clone().requires_grad_()
    value, moved = jvp(lambda x: x.sin() * x, (x,), (v,))
    a, b = T.autograd.grad(moved.sum(), (x, v), retain_graph=True)
    assert_close(a, (2 * X.cos() - X * X.sin()) * V)
    assert_close(b, X.cos() * X + X.sin())
    assert_close(T.autograd.grad(value.sum(), x)[0], X.cos() * X + X.sin())
    assert not jvp(T.sin, (X,), (V,))[1].requires_grad
    with T.no_grad():
        moved = jvp(T.sin, (x,), (v,))[1]
    assert_close(moved, X.cos() * V)
    assert not moved.requires_grad


VIEWS = {
    "select": lambda x: x.reshape(2, 2)[1] * x[2:],
    "transpose": lambda x: (x.view(2, 2).t() @ x.view(2, 2)).reshape(-1),
    "expand": lambda x: x.unsqueeze(0).expand(3, 4) * x,
    "split": lambda x: x.split(2)[0] * x.split(2)[1],
    "unbind": lambda x: x.unbind()[0] * x,
    "as_strided": lambda x: (x * 2).as_strided((2, 2), (1, 2)) * 3,
    "strided": lambda x: x.view(2, 2).t().as_strided((3,), (1,)) * 2,
    "complex": lambda x: T.view_as_real(T.view_as_complex(x.view(2, 2)) ** 2),
    "diagonal": lambda x: T.diag(x).diagonal() * x,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    check(VIEWS[name])


def through_view(x):
    y = x * 1
    y[1:3].mul_(x[:2])
    return y


def base_then_view(x):
    y = x * 1
    part = y.view(2, 2)[0]
    y.add_(x * x)
    return part * x[:2]


def view_of_view(x):
    y = T.zeros_like(x)
    a = y.view(2, 2)
    b = a.t()[1]
    b.copy_(x[:2] ** 2)
    return y * x + a.reshape(-1)


def fills(x):
    y = x.clone()
    y[0] = 3.0
    y[1] = x[3] * 2
    y.narrow(0, 2, 1).zero_()
    return y * x


def shared_tangent(x):
    y = x + 0  # its tangent may be that of x
    y.mul_(2)
    return x * y


def shared_after_a_write(x):
    a = (x * 1).mul_(2)
    y, part = a + 0, a[:2]
    a.mul_(x)
    return y * a + part.sum()


def written_by_index(x):
    y = x.new_zeros(4)
    y[T.tensor([0, 2])] = x[:2] * x[2:]
    y.index_add_(0, T.tensor([1, 1]), x[:2])
    return y


def chained(x):
    return x.clone().mul_(x).add_(x, alpha=2).sin_().clamp_(-0.5, 0.5)


def expanded_tangent(x):
    y = x.sum() + T.zeros_like(x)
    y[0] = x[1]
    return y


WRITES = [
    through_view,
    base_then_view,
    view_of_view,
    fills,
    shared_tangent,
    written_by_index,
    chained,
    expanded_tangent,
]


@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_writes(f):
    before = X.clone()
    check(f)
    assert_close(X, before)
    f2 = lambda x: jvp(f, (x,), (V,))[1]  # noqa: E731
    assert_close(jvp(f2, (X,), (V,))[1], along(f2), atol=1e-6, rtol=1e-5)


def test_the_tangent_given_is_never_written():
    v = V.clone()
    jvp(lambda x: (x * 1).mul_(3), (X,), (v,))
    with fw.dual_level():
        x = fw.make_dual(X.clone(), v)
        x.mul_(2)
        assert_close(fw.unpack_dual(x).tangent, 2 * V)
    assert_close(v, V)


def test_refusals():
    room = T.empty(4, dtype=T.float64)
    with fw.dual_level():
        x = fw.make_dual(X, V)
        with pytest.raises(RuntimeError, match="out= cannot take up a tangent"):
            T.sin(x, out=room)
        with pytest.raises(RuntimeError, match="cannot take one up.*zeros_like"):
            room.copy_(x)


def test_layers():
    T.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.LogSoftmax(-1)).double()
    rows = T.stack([X, V])
    check(net, rows, rows.flip(0))
    images = vector(2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
    conv = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    ).double()
    conv[1].track_running_stats, conv[1].running_mean, conv[1].running_var = False, None, None
    check(conv, images, images.flip(0))
    params = {k: p.detach() for k, p in net.named_parameters()}
    moved = {k: T.ones_like(p) for k, p in params.items()}
    call = lambda p: T.func.functional_call(net, p, (rows,))  # noqa: E731
    got = jvp(call, (params,), (moved,))[1]
    step = 1e-6
    sides = [call({k: p + s * step for k, p in params.items()}) for s in (1, -1)]
    assert_close(got, (sides[0] - sides[1]) / (2 * step), atol=1e-6, rtol=1e-5)


class Cube(T.autograd.Function):
    """Its derivatives are tenfold, so that one sees who was asked."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 30 * x * x * g


class Pushed(Cube):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 300 * x * x * t


class Together(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.save_for_backward(x)
        ctx.times = times
        return x * times, x.argmax()

    @staticmethod
    def backward(ctx, g, _):
        return ctx.times * 10 * g, None


def test_functions_of_users():
    assert_close(jvp(Cube.apply, (X,), (V,))[1], 30 * X * X * V)
    assert_close(jvp(Pushed.apply, (X,), (V,))[1], 300 * X * X * V)
    (value, place), moved = jvp(lambda x: Together.apply(x, 2), (X,), (V,))
    assert_close(moved[0], 20 * V)
    assert place == X.argmax() and moved[1] == 0
    for f, times in ((Cube, 30), (Pushed, 300)):
        assert_close(jvp(lambda x: jvp(f.apply, (x,), (V,))[1], (X,), (V,))[1], times * 2 * X * V * V)
        assert_close(grad(lambda x: jvp(f.apply, (x,), (V,))[1].sum())(X), times * 2 * X * V)
    assert_close(jvp(grad(lambda x: Cube.apply(x).sum()), (X,), (V,))[1], 60 * X * V)
    assert_close(jvp(grad(lambda x: Pushed.apply(x).sum()), (X,), (V,))[1], 60 * X * V)
    with pytest.raises(RuntimeError, match="setup_context"):
        jvp(grad(lambda x: Together.apply(x, 2)[0].sum()), (X,), (V,))


def test_a_function_that_is_differentiable_once():
    class Once(Cube):
        @staticmethod
        @T.autograd.function.once_differentiable
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="Once: its backward cannot be differentiated.*define jvp"):
        jvp(Once.apply, (X,), (V,))


def test_checkpoints_and_hooks():
    from adjoin.utils.checkpoint import checkpoint

    f = lambda x: checkpoint(lambda y: (y.sin() * y).cumsum(0), x, use_reentrant=False) * x  # noqa: E731
    check(f)
    assert_close(
        jvp(grad(lambda x: f(x).sum()), (X,), (V,))[1],
        jvp(grad(lambda x: ((x.sin() * x).cumsum(0) * x).sum()), (X,), (V,))[1],
    )

    def hooked(x):
        y = x * x
        y.register_hook(lambda g: g * 2)
        return y.sum()

    assert_close(jvp(grad(hooked), (X,), (V,))[1], 4 * V)


def test_gradcheck_looks_at_forward_mode():
    x = X.clone().requires_grad_()
    assert T.autograd.gradcheck(lambda x: (x.tanh() * x, x.sum()), (x,), check_forward_ad=True)
    with pytest.raises(RuntimeError, match="forward mode mismatch"):
        T.autograd.gradcheck(Pushed.apply, (x,), check_forward_ad=True, check_backward_ad=False)
    z = T.complex(X, V).requires_grad_()
    assert T.autograd.gradcheck(lambda z: z * z.conj() + z.exp(), (z,), check_forward_ad=True)


def test_linearize_and_vjp_agree():
    f = lambda x: T.softmax(x, 0) * x  # noqa: E731
    value, push = linearize(f, X)
    assert_close(push(V), jvp(f, (X,), (V,))[1])
    _, pull = vjp(f, X)
    assert_close(pull(V)[0] @ X, push(X) @ V)


def test_reads():
    with fw.dual_level():
        x = fw.make_dual(X, V)
        assert x.sum().item() == X.sum().item() and bool(x[0] == X[0])
        assert x.tolist() == X.tolist()
        assert "dual" in repr(x)


# Three ops of a plugin in C, each twice its argument: linear by its word, with a derivative (twentyfold, to be told apart), with none.
RULES = """
#include <adjoin/abi/transform.h>
static aj_status* pushed(void* self, aj_jvp_call* c) {
  aj_value args[2], made;
  memset(args, 0, sizeof args);
  memset(&made, 0, sizeof made);
  if (!c->tangents[0]) return 0;
  args[0].tag = AJ_TENSOR;
  args[0].v.tensor = c->tangents[0];
  args[1].tag = AJ_FLOAT;
  args[1].v.f = 20;
  aj_status* bad = c->op->call(c->op->find_op(AJ_STR_LIT("mul")), args, 2, &made, 1);
  c->out[0] = made.v.tensor;
  return bad;
}
static const aj_jvp_def rules[] = {
  {sizeof(aj_jvp_def), 0, {"pushes::straight", 16}, 1, 0, 0},
  {sizeof(aj_jvp_def), 0, {"pushes::pushed", 14}, 0, pushed, 0},
};
"""
DEFINE = """
  static const char* const names[] = {"pushes::straight", "pushes::pushed", "pushes::bare"};
  static const char* const schemas[] = {"pushes::straight(Tensor x) -> Tensor", "pushes::pushed(Tensor x) -> Tensor", "pushes::bare(Tensor x) -> Tensor"};
  for (int i = 0; i < 3; ++i) {
    aj_status* bad = define_op(env, schemas[i]);
    if (!bad) bad = define_kernel(env, names[i], 0);
    if (!bad && i < 2) bad = aj_def_jvp(env, &rules[i]);
    if (bad) return bad;
  }
  return 0;
"""


def test_ops_of_strangers(tmp_path):
    import abi_tools as tools

    T.load_plugin(str(tools.build_plugin(tmp_path, name="pushes", extra=tools.TWICE + RULES, init=DEFINE)))
    x, v = X.float(), V.float()
    pushes = T.ops.pushes
    assert_close(jvp(pushes.straight, (x,), (v,))[1], 2 * v)
    assert_close(jvp(pushes.pushed, (x,), (v,))[1], 20 * v)
    assert_close(jvp(lambda x: jvp(lambda x: pushes.pushed(x * x), (x,), (v,))[1], (x,), (v,))[1], 40 * v * v)
    with pytest.raises(NotImplementedError, match="pushes::bare: there is no derivative along a tangent"):
        jvp(pushes.bare, (x,), (v,))


F = nn.functional
W, U, B = vector(4, 2), vector(2, 3), vector(2, 4)
NORMS = {
    "layer_norm": lambda x: (F.layer_norm(x, (4,)) * W).sum(),
    "layer_norm of rows": lambda x: (F.layer_norm(x.reshape(2, 2), (2,), U, B) ** 3).sum(),
    "group_norm": lambda x: (F.group_norm(x[None], 2, W, X) ** 3).sum(),
    "instance_norm": lambda x: (F.instance_norm(x.reshape(1, 2, 2)) ** 3 * W.reshape(1, 2, 2)).sum(),
    "batch_norm": lambda x: (F.batch_norm(x.reshape(2, 2), None, None, training=True) ** 3 * U).sum(),
    "softmax": lambda x: (x.softmax(-1) * W).sum() ** 2,
    "logsumexp": lambda x: x.logsumexp(0) ** 2,
    "std": lambda x: x.std() ** 3,
    "attention": lambda x: (F.scaled_dot_product_attention(*[x.reshape(1, 2, 2)] * 3) ** 2 * U).sum(),
}


@pytest.mark.parametrize("name", NORMS)
def test_gradients_move_through_what_an_op_keeps_for_them(name):
    f = NORMS[name]
    check(grad(f))
    assert_close(jacfwd(jacrev(f))(X) @ V, along(grad(f)), atol=1e-7, rtol=1e-6)
    assert_close(hessian(f)(X) @ V, along(grad(f)), atol=1e-7, rtol=1e-6)
