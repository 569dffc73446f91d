"""tests/python/autograd/exceptions_cross_test.py: what a hook or a function of the user's raises arrives at the caller as that very object."""

import signal
import traceback

import pytest

import adjoin as T
from adjoin import nn
from adjoin.autograd import Function
from adjoin.autograd.graph import saved_tensors_hooks
from adjoin.library import custom_op
from adjoin.utils.checkpoint import checkpoint

F = nn.functional


class Silent(Exception):
    """Without words, as checkpoint's own."""


class Odd(Exception):
    """Takes other arguments than a text."""

    def __init__(self, place, *, why):
        super().__init__(place)
        self.why = why

    def __str__(self):
        raise TypeError("has no words")


def exceptions():
    return [
        Silent(), ValueError("x", 3), KeyError("k"), Odd(3, why="so"), KeyboardInterrupt(), SystemExit(7), StopIteration(2),
        GeneratorExit(), OSError(2, "none", "f"), RuntimeError("; recorded at nowhere"), NotImplementedError(), MemoryError(),
    ]  # fmt: skip


CAUSE = LookupError("the reason")
KINDS = [type(e).__name__ for e in exceptions()]


def raiser(error):
    def raise_it(*args, **kwargs):
        raise error from CAUSE

    return raise_it


def crossing(error, f):
    with pytest.raises(BaseException) as caught:
        f()
    assert caught.value is error and caught.value.__cause__ is CAUSE
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "raise_it" and frames.count("raise_it") == 1
    # Nothing is left behind: the next error is its own.
    with pytest.raises(RuntimeError, match="3") as caught:
        T.zeros(2) + T.zeros(3)
    assert caught.value is not error and caught.value.__cause__ is None


def leaf():
    return T.ones(2, 3, requires_grad=True)


WAYS = {}


def way(f):
    WAYS[f.__name__] = f
    return f


@way
def hook_of_a_leaf(stop):
    x = leaf()
    x.register_hook(stop)
    (x * 2).sum().backward()


@way
def hook_of_a_result(stop):
    y = leaf() * 2
    y.register_hook(stop)
    F.layer_norm(y, (3,)).sum().backward()


@way
def hook_after_accumulation(stop):
    x = leaf()
    x.register_post_accumulate_grad_hook(stop)
    (x * 2).sum().backward()


@way
def hook_before_a_node(stop):
    y = (leaf() * 2).sum()
    y.grad_fn.register_prehook(stop)
    T.autograd.grad(y, y.grad_fn.next_functions[0][0].next_functions[0][0].variable)


@way
def hook_after_a_node(stop):
    y = (leaf() * 2).sum()
    y.grad_fn.register_hook(stop)
    y.backward()


@way
def hook_in_a_backward_of_a_backward(stop):
    x = leaf()
    (g,) = T.autograd.grad((x**3).sum(), x, create_graph=True)
    g.register_hook(stop)
    (g * g).sum().backward()


@way
def pack(stop):
    with saved_tensors_hooks(stop, lambda t: t):
        leaf().exp()


@way
def pack_in_a_composite(stop):
    with saved_tensors_hooks(stop, lambda t: t):
        F.cross_entropy(leaf(), T.tensor([0, 1]), label_smoothing=0.1)


@way
def pack_in_a_write(stop):
    y = leaf() * 1
    with saved_tensors_hooks(stop, lambda t: t):
        y[0].mul_(leaf()[1])


@way
def pack_in_a_layer(stop):
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    with saved_tensors_hooks(stop, lambda t: t):
        layer(T.ones(2, 3, 4))


@way
def unpack(stop):
    with saved_tensors_hooks(lambda t: t, stop):
        y = F.layer_norm(leaf(), (3,)).sum()
    y.backward()


class Given(Function):
    @staticmethod
    def forward(ctx, x, forward, backward):
        ctx.stop = backward
        return forward(x)

    @staticmethod
    def backward(ctx, g):
        return ctx.stop(g), None, None


@way
def forward_of_a_function(stop):
    Given.apply(leaf(), stop, None)


@way
def backward_of_a_function(stop):
    F.gelu(Given.apply(leaf() * 2, lambda x: x * 2, stop)).sum().backward()


@way
def setup_of_a_function(stop):
    class Split(Function):
        forward = staticmethod(lambda x: x * 2)
        setup_context = staticmethod(stop)

    Split.apply(leaf())


@way
def backward_within_a_backward(stop):
    def inner(g):
        with T.enable_grad():
            hook_of_a_leaf(stop)

    Given.apply(leaf(), lambda x: x * 2, inner).sum().backward()


@way
def forward_hooks_of_modules(stop):
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(stop)
    nn.Sequential(layer)(leaf())


@way
def hooks_before_modules(stop):
    layer = nn.Linear(3, 2)
    layer.register_forward_pre_hook(stop)
    nn.Sequential(layer)(leaf())


@way
def backward_hooks_of_modules(stop):
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(stop)
    nn.Sequential(layer)(leaf()).sum().backward()


@way
def hooks_before_the_backward_of_modules(stop):
    layer = nn.Linear(3, 2)
    layer.register_full_backward_pre_hook(stop)
    nn.Sequential(layer)(leaf()).sum().backward()


@way
def a_closure(stop):
    T.optim.SGD([leaf()], 0.1).step(stop)


@way
def a_checkpointed_function(stop):
    checkpoint(stop, leaf(), use_reentrant=False)


@way
def a_second_run(stop):
    runs = []

    def function(x):
        y = F.layer_norm(x, (3,))
        return stop() if runs else runs.append(1) or y

    checkpoint(function, leaf(), use_reentrant=False, early_stop=False).sum().backward()


@way
def an_end_that_raises_on_the_way(stop):
    class Ends:
        def __del__(self):
            for _ in range(3):
                try:
                    T.zeros(2) + T.zeros(3)
                except RuntimeError:
                    pass
            crossing(other, lambda: hook_of_a_leaf(raiser(other)))

    other = ArithmeticError("another")
    x = leaf()
    x.register_hook(stop)
    ends = Ends()
    y = Given.apply(x, lambda x: x * 2, lambda g, ends=ends: g)
    del ends
    y.sum().backward()


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
@pytest.mark.parametrize("name", WAYS)
def test_the_same_object_arrives(name, kind):
    error = exceptions()[kind]
    crossing(error, lambda: WAYS[name](raiser(error)))


@pytest.mark.parametrize("kind", ["TimeoutError", "KeyboardInterrupt"])
def test_what_a_handler_of_signals_raises(kind):
    error = {"TimeoutError": TimeoutError("late", 3), "KeyboardInterrupt": KeyboardInterrupt("now")}[kind]
    x = T.ones(2, requires_grad=True)
    y = x
    for _ in range(300000):
        y = y * 1
    before = signal.signal(signal.SIGPROF, raiser(error))
    signal.setitimer(signal.ITIMER_PROF, 0.02)  # of the processor's time: in the middle, whatever else runs
    try:
        crossing(error, y.sum().backward)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


stops = []  # what the next call of the op or of its derivative does instead


@custom_op("crossing::op", mutates_args=())
def op(x: T.Tensor) -> T.Tensor:
    return stops.pop()() if stops else x * 2


op.register_autograd(lambda ctx, g: stops.pop()() if stops else 2 * g)


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_ops_of_users(kind):
    def stopped(f):
        error = exceptions()[kind]
        stops.append(raiser(error))
        crossing(error, f)

    stopped(lambda: op(leaf()))
    stopped(op(leaf() * 2).sum().backward)


def test_under_a_mode_of_anomaly():
    error = Silent()
    with T.autograd.detect_anomaly():
        crossing(error, lambda: backward_of_a_function(raiser(error)))


LAYERS = {
    "conv": (lambda: nn.Conv2d(2, 3, 3), (2, 2, 5, 5)),
    "conv transposed": (lambda: nn.ConvTranspose1d(2, 3, 3), (2, 2, 5)),
    "lstm": (lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True), (5, 2, 3)),
    "gru": (lambda: nn.GRU(3, 4, batch_first=True), (2, 5, 3)),
    "layer norm": (lambda: nn.LayerNorm(3), (2, 3)),
    "batch norm": (lambda: nn.BatchNorm1d(3, track_running_stats=False), (4, 3)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1), (3, 2, 4)),
    "attention": (lambda: Attends(), (3, 2, 4)),
    "linear": (lambda: nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2), nn.Softmax(-1)), (2, 3)),
}


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2)

    def forward(self, x):
        return self.inner(x, x, x)[0]


def grads_of(layer, x, run):
    layer.zero_grad()
    x = x.clone().requires_grad_()
    T.manual_seed(3)
    out = run(layer, x)
    out = out[0] if isinstance(out, tuple) else out
    (out * out).sum().backward()
    return [x.grad, *(p.grad for p in layer.parameters())]


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_checkpoint(name, reentrant, early):
    make, shape = LAYERS[name]
    T.manual_seed(0)
    layer, x = make(), T.randn(shape)
    plain = grads_of(layer, x, lambda f, x: f(x))
    kept = {} if reentrant else {"early_stop": early}
    again = grads_of(layer, x, lambda f, x: checkpoint(f, x, use_reentrant=reentrant, **kept))
    assert all(T.equal(a, b) for a, b in zip(plain, again, strict=True))


def test_checkpoint_of_an_embedding():
    table, places = nn.Embedding(5, 3), T.tensor([1, 4, 1])
    table(places).square().sum().backward()
    expected, table.weight.grad = table.weight.grad, None
    checkpoint(table, places, use_reentrant=False).square().sum().backward()
    assert T.equal(table.weight.grad, expected)


def test_the_second_run_stops_early():
    ran = []

    def function(x):
        y = F.layer_norm(x, (3,))
        ran.append(1)
        return y

    checkpoint(function, leaf(), use_reentrant=False).sum().backward()
    assert len(ran) == 1
