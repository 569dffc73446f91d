"""tests/python/graph/joint_test.py: functions that are differentiated, replayed as two programs: bits, kernels, what is kept."""

import math

import adjoin
import pytest
from adjoin import _joint, _C, jit, nn
from adjoin._joint import Joint, NoJoint, fastest, wins, same_bits
from adjoin.nn import functional as F


def slopes(results, wanted, **words):
    outs = [t for t in results if t.requires_grad]
    return adjoin.autograd.grad(outs, wanted, [adjoin.ones_like(t).mul_(0.5) for t in outs], allow_unused=True, **words)


def both(f, *given):
    """The joint program of f; its bits are those of the calls, with other slopes than the ones that it was made with."""
    program = jit.trace(f, given)._traced.program
    joint = Joint(lambda *leaves: f(*leaves), list(given), [], program)
    wanted = [t for t in given if t.requires_grad]
    as_list = lambda r: [r] if isinstance(r, adjoin.Tensor) else list(r)  # noqa: E731
    for _ in range(2):
        eager, mine = as_list(f(*given)), as_list(joint.run(given))
        assert all(same_bits(a, b) and a.requires_grad == b.requires_grad for a, b in zip(eager, mine, strict=True))
        assert all(same_bits(a, b) for a, b in zip(slopes(eager, wanted), slopes(mine, wanted), strict=True))
    return joint


def leaf(*shape):
    return adjoin.randn(*shape).requires_grad_()


def chain(x, w):
    y = (x * 1.5 + w).tanh()
    z = y.exp() * y.sigmoid() + x
    return (z * z).softmax(-1)


def test_a_chain_runs_in_fewer_kernels_and_keeps_less():
    joint = both(chain, leaf(64, 600), leaf(600))
    for handle in (joint.forward, joint.backward):
        calls, passes, groups, fused = _C.program_stats(handle)
        assert groups and fused > 3 and passes < calls
    assert joint.saved_bytes <= 0.5 * joint.plain_bytes  # what is cheap is computed again


def test_products_are_not_computed_again():
    def f(x, w, v):
        return F.gelu(x @ w) @ v

    joint = both(f, leaf(32, 48), leaf(48, 64), leaf(64, 16))
    made = _C.program_text(joint.backward)
    assert made.count("matmul(") + made.count("mm(") + made.count("linear") <= 5  # two for each product, and none again


@pytest.mark.parametrize("training", ["attention", "lstm", "norm"])
def test_layers(training):
    adjoin.manual_seed(0)
    if training == "attention":

        def f(x, w, mask):
            q, k, v = (x @ w).reshape(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            a = adjoin.softmax(q @ k.transpose(-1, -2) * (1 / math.sqrt(4)) + mask, -1)
            return (a @ v).transpose(1, 2).reshape(2, 6, 8), a

        both(f, leaf(2, 6, 8), leaf(8, 24), adjoin.full((6, 6), float("-inf")).triu(1))
    elif training == "lstm":

        def f(x, w, b):
            h, c = x.new_zeros(5, 4), x.new_zeros(5, 4)
            for t in range(3):
                i, forget, g, o = F.linear(adjoin.cat([x[t], h], 1), w, b).chunk(4, 1)
                c = adjoin.sigmoid(forget) * c + adjoin.sigmoid(i) * adjoin.tanh(g)
                h = adjoin.sigmoid(o) * adjoin.tanh(c)
            return h.sum()

        both(f, adjoin.randn(3, 5, 4), leaf(16, 8), leaf(16))
    else:

        def f(x, w, b):
            return F.layer_norm(x, (8,), w, b).pow(2).mean(), x.argmax(-1)

        both(f, leaf(6, 8), leaf(8), leaf(8))


def test_a_derivative_of_the_derivative():
    x, w = leaf(4, 6), leaf(6)
    joint = both(chain, x, w)
    of = lambda y: slopes([g.pow(2).sum() for g in slopes([y], [x, w], create_graph=True)], [x, w])  # noqa: E731
    for a, b in zip(of(chain(x, w)), of(joint.run([x, w])), strict=True):
        assert adjoin.allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_write_between_is_seen():
    x, w = leaf(4, 6), leaf(6)
    y = both(chain, x, w).run([x, w])
    with adjoin.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="in place"):
        y.sum().backward()


def test_what_has_no_such_program():
    for f in (
        lambda x: x,
        lambda x: (x * (2 if x.sum() > 0 else 3)).exp(),
        lambda x: x * hidden,
        lambda x: x[:2],
    ):
        hidden = leaf(4)
        x = leaf(4)
        program = jit.trace(lambda x: x * 1, (x,))._traced.program
        with pytest.raises((NoJoint, RuntimeError)):
            Joint(lambda *leaves, f=f: f(*leaves), [x], [], program)


def test_a_module_is_trained_by_it():
    def train(wrap):
        adjoin.manual_seed(0)
        net = nn.Sequential(nn.Linear(16, 600), nn.GELU(), nn.Linear(600, 4), nn.Tanh())
        model, adam = wrap(net), adjoin.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(9):
            loss = (model(adjoin.randn(500, 16)) - 0.5).pow(2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        return [p.detach().tolist() for p in net.parameters()], model

    wanted, _ = train(lambda net: net)
    got, model = train(lambda net: adjoin.compile(net, replay=True))
    assert got == wanted
    (known,) = model._compiled._state.known.values()
    assert known.joint is not None  # it was made, and measured


def test_the_faster_way_is_taken():
    x, w = leaf(400, 800), leaf(800)
    program = jit.trace(chain, (x, w))._traced.program
    joint = Joint(chain, [x, w], [], program)
    joint.theirs, joint.kept = (
        joint.theirs,
        joint.kept[::-1],
    )  # other values than the calls' are refused, however fast they come
    assert fastest(joint, program, chain, [x, w], [], (8, 8, 0)) is None and not wins(None)


def peak(run, inputs):
    """Bytes that forward and backward hold at most above what there was."""
    for _ in range(2):
        _C.memory_reset_peak(inputs[0].device)
        held = adjoin.cpu.memory_allocated()
        y = run()
        found = adjoin.autograd.grad(y, inputs)
        top = adjoin.cpu.max_memory_allocated() - held
        del y, found
    return top


def test_less_memory_is_held():
    def f(x, w):
        for _ in range(6):
            y = (x * 1.5 + w).tanh()
            x = y.exp() * y.sigmoid() + x
        return (x * x).mean()

    x, w = leaf(500, 1000), leaf(1000)
    joint = both(f, x, w)
    assert peak(lambda: joint.run([x, w]), [x, w]) <= 0.7 * peak(lambda: f(x, w), [x, w])


def test_the_function_itself_may_be_the_fastest(monkeypatch):
    x, w = leaf(40, 80), leaf(80)
    program = jit.trace(chain, (x, w))._traced.program
    joint = Joint(chain, [x, w], [], program)
    for function, worth in ((100, False), (200, True)):  # of 200 for the calls of the program, 120 for the joint one
        times = [t for _ in range(8) for took in (200, 120, function) for t in (0, took)]
        monkeypatch.setattr(_joint, "now", iter(times).__next__)
        took = fastest(joint, program, chain, [x, w], [], (8, 8, 0))
        assert took == [200, 120, function] and wins(took) is worth
