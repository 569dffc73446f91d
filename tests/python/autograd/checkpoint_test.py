"""tests/python/autograd/checkpoint_test.py: the same gradients with less kept, and less kept indeed."""

import adjoin
import pytest
from adjoin import nn
from adjoin.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


@pytest.fixture
def net():
    adjoin.manual_seed(0)
    parts = [nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh()) for _ in range(4)]
    return nn.Sequential(*parts)


def gradients(net, run):
    adjoin.manual_seed(1)
    x = adjoin.ones(2, 4, requires_grad=True)
    net.zero_grad()
    run(x).sum().backward()
    return [x.grad.tolist(), *(p.grad.tolist() for p in net.parameters())]


WAYS = {
    "plain": lambda net, x: checkpoint(net, x),
    "reentrant": lambda net, x: checkpoint(net, x, use_reentrant=True),
    "to the end": lambda net, x: checkpoint(net, x, early_stop=False),
    "nested": lambda net, x: checkpoint(lambda y: checkpoint(net, y), x),
    "segments": lambda net, x: checkpoint_sequential(net, 3, x),
    "segments, reentrant": lambda net, x: checkpoint_sequential(net, 2, x, use_reentrant=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_same_gradients(net, way):
    assert gradients(net, net) == gradients(net, lambda x: WAYS[way](net, x))


def test_second_derivatives(net):
    net.eval()

    def second(run):
        x = adjoin.ones(2, 4, requires_grad=True)
        (first,) = adjoin.autograd.grad(run(x).sum(), x, create_graph=True)
        first.sum().backward()
        return x.grad.flatten().tolist()

    assert second(lambda x: checkpoint(net, x)) == pytest.approx(second(net), abs=1e-6)


def test_only_the_last_run_saves_tensors(net):
    kept = []
    hooks = adjoin.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t)
    x = adjoin.ones(2, 4, requires_grad=True)
    with hooks:
        checkpoint(net, x)
    assert kept == []


def test_keywords_and_no_grad(net):
    x = adjoin.ones(2, 4, requires_grad=True)
    scaled = checkpoint(lambda x, *, times: x * x * times, x, times=3.0)
    scaled.sum().backward()
    assert x.grad.tolist() == [[6.0] * 4] * 2
    with adjoin.no_grad():
        assert not checkpoint(net, x).requires_grad
    with pytest.raises(ValueError, match="pass use_reentrant=False"):
        checkpoint(net, x, use_reentrant=True, times=3)


def test_a_function_that_changes_its_mind():
    runs = []

    def fickle(x):
        runs.append(1)
        x = x if len(runs) == 1 else x[:1]
        return (x * x).exp()

    with pytest.raises(CheckpointError, match="the function has to do the same both times"):
        checkpoint(fickle, adjoin.ones(3, requires_grad=True)).sum().backward()


def test_a_draw_is_the_same_in_the_second_run():
    for reentrant in (False, True):
        adjoin.manual_seed(4)
        x = adjoin.ones(50, requires_grad=True)
        out = checkpoint(lambda x: nn.functional.dropout(x, 0.5), x, use_reentrant=reentrant)
        after = adjoin.get_rng_state().tolist()
        out.sum().backward()
        assert x.grad.tolist() == out.tolist() and adjoin.get_rng_state().tolist() == after


def test_switches_for_a_while():
    counts = []

    def counted(x):
        y = x.sin()
        counts.append(1)
        return y

    x = adjoin.ones(2, requires_grad=True)
    with set_checkpoint_early_stop(False):
        checkpoint(counted, x).sum().backward()
    assert len(counts) == 2
    checkpoint(counted, x).sum().backward()
    assert len(counts) == 3  # the second run ended with what sin saves
    with set_checkpoint_debug_enabled(True), pytest.raises(ValueError, match="debug"):
        checkpoint(counted, x, use_reentrant=True)
    checkpoint(counted, x, context_fn=noop_context_fn).sum().backward()
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(counted, x, use_reentrant=None)
