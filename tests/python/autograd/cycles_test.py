"""tests/python/autograd/cycles_test.py: what nothing leads to any more is freed, also where it leads back to itself through the graph."""

import gc
import weakref

import pytest

import adjoin as T
from adjoin.autograd import Function
from adjoin.autograd.graph import saved_tensors_hooks
from adjoin.utils.checkpoint import checkpoint

WAYS = {}


def way(f):
    WAYS[f.__name__] = f
    return f


def leaf():
    return T.ones(1000, requires_grad=True)


class Keeps(Function):
    """ctx.kept is whatever `shape` makes of its argument and result."""

    @staticmethod
    def forward(ctx, x, shape):
        y = x * 2
        ctx.kept = shape(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


SHAPES = {
    "result": lambda x, y: y,
    "list": lambda x, y: [x, y],
    "tuple": lambda x, y: (y, (x, y)),
    "dictionary": lambda x, y: {"y": y, "more": [y]},
    "closure": lambda x, y: lambda: y,
    "view": lambda x, y: y.view(-1),
    "argument": lambda x, y: x,
}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_context_keeps(shape, backward):
    def step():
        y = Keeps.apply(leaf(), SHAPES[shape])
        if backward:
            y.sum().backward()

    flat(step)


@way
def saves_its_result():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1]

    (F.apply(leaf()) * 2).sum().backward()
    F.apply(leaf())


@way
def keeps_two_results():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.a, ctx.b = x * 2, x * 3
            return ctx.a, ctx.b

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 3 * h

    a, b = F.apply(leaf())
    (a + b).sum().backward()


@way
def writes_in_place():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    F.apply(leaf() * 1).sum().backward()


@way
def has_results_without_gradient():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            n = x * 0
            ctx.mark_non_differentiable(n)
            ctx.n = n
            return x * 1, n

        @staticmethod
        def backward(ctx, g, h):
            return g

    F.apply(leaf())[0].sum().backward()


@way
def keeps_it_in_setup_context():
    class F(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.inputs, ctx.output = inputs, output

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    y = F.apply(leaf())
    (g,) = T.autograd.grad((y * y).sum(), y, create_graph=True)


@way
def keeps_it_in_backward():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.g = g
            return 2 * g

    x = leaf()
    y = F.apply(x)
    (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
    g.sum().backward()


@way
def hook_of_a_leaf():
    x = leaf()
    x.register_hook(lambda g: g + 0 * x.detach())
    (x * 2).sum().backward()


@way
def hook_of_a_result():
    y = leaf() * 2
    y.register_hook(lambda g: y.detach() * 0 + g)
    y.sum().backward()


@way
def hook_that_never_ran():
    y = leaf() * 2
    y.register_hook(lambda g: y)
    y.retain_grad()


@way
def hook_after_accumulation():
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: [x, x.grad] and None)
    x.sum().backward()


@way
def hook_of_a_node():
    y = leaf() * 2
    y.grad_fn.register_hook(lambda a, b: y and None)
    y.grad_fn.register_prehook(lambda a: [y] and None)


@way
def hook_of_a_node_that_holds_the_node():
    node = (leaf() * 2).exp().grad_fn
    node.register_hook(lambda a, b: node and None)


@way
def hooks_of_several():
    a, b = leaf(), leaf()
    T.autograd.graph.register_multi_grad_hook((a, b), lambda grads: (a, b) and None)
    (a * b).sum().backward()


@way
def hook_of_a_parameter():
    p = T.nn.Parameter(T.ones(1000))
    p.register_hook(lambda g: g * p.detach())
    p.mine = [p]
    (p * p).sum().backward()


@way
def hook_of_a_module():
    net = T.nn.Sequential(T.nn.Linear(30, 30), T.nn.ReLU())
    net[0].register_full_backward_hook(lambda *a: net and None)
    net[0].register_forward_hook(lambda m, a, out: setattr(m, "out", out))
    net(T.ones(2, 30)).sum().backward()


@way
def attributes():
    y = leaf() * 2
    y.me, y.node = y, y.grad_fn
    y.sum().backward()


@way
def gradients():
    x = leaf()
    (x * x).sum().backward()
    x.grad.of = x
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    y.grad.of = y


@way
def checkpoints():
    layer = T.nn.Sequential(T.nn.Linear(30, 30), T.nn.LayerNorm(30))
    for reentrant in (False, True):
        checkpoint(layer, T.ones(2, 30, requires_grad=True), use_reentrant=reentrant).sum().backward()
        checkpoint(layer, T.ones(2, 30, requires_grad=True), use_reentrant=reentrant)


@way
def saved_in_a_hook():
    kept = []
    with saved_tensors_hooks(lambda t: kept.append(t) or (t, kept), lambda p: p[0]):
        y = leaf().exp() * 2
    y.register_hook(lambda g: [y] and None)
    kept.append(y)


@way
def errors_in_backward():
    def stop(g):
        raise ValueError(x)

    x = leaf()
    y = x.exp()
    y.register_hook(stop)
    with pytest.raises(ValueError):
        (y * 2).sum().backward()
    with pytest.raises(RuntimeError):
        z = x * 1
        w = z * z
        z.mul_(2)
        w.sum().backward()


@way
def errors_in_a_context():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            raise KeyError(ctx.y)

    with pytest.raises(KeyError):
        F.apply(leaf()).sum().backward()


@way
def a_forward_that_fails():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x, ctx.me = x, ctx
            ctx.save_for_backward(x)
            ctx.mark_dirty(x)
            raise KeyError(ctx)

    with pytest.raises(KeyError):
        F.apply(leaf())


@way
def unpacking_that_fails():
    def stop(t):
        raise ValueError(t)

    with saved_tensors_hooks(lambda t: t, stop):
        y = leaf().exp()
    with pytest.raises(ValueError):
        y.sum().backward()


def live():
    gc.collect()
    gc.collect()
    return T.memory.stats("cpu")["in_use"] if hasattr(T.memory, "stats") else T._C.memory_stats("cpu")["in_use"]


def flat(step):
    for _ in range(3):
        step()
    before = live()
    for _ in range(50):
        step()
    assert live() - before < 5000  # one tensor of a round alone has 4,000 bytes


@pytest.mark.parametrize("name", WAYS)
def test_memory_is_flat(name):
    flat(WAYS[name])


def test_nothing_that_is_in_use_is_taken():
    """The collector runs between all steps, while some of a cycle is still held from outside."""
    ended = []

    class Note:
        pass

    y = Keeps.apply(leaf(), SHAPES["list"])
    note = Note()
    weakref.finalize(note, ended.append, 1)
    y.grad_fn.note = note
    del note
    gc.collect()
    z = y * 2
    held = y.grad_fn
    del y
    gc.collect()
    assert not ended and held.kept[1].tolist()[0] == 2
    z.sum().backward()
    del z
    gc.collect()
    assert not ended and held.kept[1].grad_fn is held
    del held
    gc.collect()
    assert ended

    seen = []

    def hooked():
        x = leaf()
        x.register_hook(lambda g: seen.append(x.sum().item()))
        return weakref.ref(x), x * 2

    kept, y = hooked()
    gc.collect()
    y.sum().backward()
    assert seen == [1000] and kept() is not None
    del y
    gc.collect()
    assert kept() is None

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.a, ctx.b = x * 2, x * 3
            return ctx.a, ctx.b

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3 + 0 * ctx.a.detach()

    x = leaf()
    a, b = Two.apply(x)
    del a
    gc.collect()
    b.sum().backward()
    assert x.grad[0].item() == 3 and b.grad_fn.a.tolist()[0] == 2


def test_attributes_stay_while_only_a_grad_has_the_tensor():
    class Mark:
        pass

    first, second, leaf = T.zeros(2), T.zeros(2), T.zeros(2)
    first.mark, first.other, second.other = Mark(), second, first
    gone, leaf.grad = weakref.ref(first.mark), first
    del first, second
    gc.collect()
    assert leaf.grad.mark is gone() and leaf.grad.other.other is leaf.grad
    del leaf
    gc.collect()
    assert gone() is None
