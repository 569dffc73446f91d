"""tests/python/autograd/checkpoint_test.py: the same gradients with less kept, and less kept indeed."""

import functools
import gc
import weakref

import adjoin
import pytest
from adjoin import nn
from adjoin.utils.checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointFunction,
    CheckpointPolicy,
    DefaultDeviceType,
    GraphExecGroup,
    check_backward_validity,
    create_selective_checkpoint_contexts,
    detach_variable,
    get_device_states,
    set_device_states,
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


# Checkpoints that keep some results


class Counting(adjoin.overrides.TorchFunctionMode):
    """Counts the ops that are run."""

    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


def selective(kept, **options):
    return functools.partial(create_selective_checkpoint_contexts, kept, **options)


def deep(x, w):
    y = adjoin.mm(x, w).exp()
    y = nn.functional.dropout(y.tanh(), 0.5)
    y = adjoin.mm(y, w).softmax(-1)
    return nn.functional.dropout(y, 0.5) * w[0].sigmoid()


def grads_of(run):
    adjoin.manual_seed(3)
    x, w = ((adjoin.arange(16.0).reshape(4, 4) / 20 - n).requires_grad_() for n in (0.3, 0.5))
    out = run(x, w)
    kept = Counting()
    with kept:
        adjoin.autograd.backward(out.sum())  # the method would show itself alone: what it does is inside of one call
    return out.tolist(), x.grad.tolist(), w.grad.tolist(), kept.seen


def run_again(kept, function=deep, **options):
    """What the second run calls, where its gradients are those of a plain run."""
    *plain, _ = grads_of(function)
    *found, seen = grads_of(lambda x, w: checkpoint(function, x, w, context_fn=selective(kept, **options)))
    assert found == plain
    return seen


def test_results_that_are_kept_are_not_computed_again():
    assert run_again([]).count("mm") == 2
    assert run_again([adjoin.mm]).count("mm") == 0
    seen = run_again([adjoin.mm, adjoin.Tensor.exp, nn.functional.dropout])
    assert not {"mm", "exp", "dropout"} & set(seen) and {"tanh", "softmax"} <= set(seen)
    assert run_again(lambda *asked: CheckpointPolicy.MUST_CPU_OFFLOAD).count("mm") == 2
    everything = run_again(lambda context, op, *args, **kwargs: True)
    assert not {"mm", "exp", "tanh", "dropout", "softmax", "sigmoid", "mul"} & set(everything)


def test_random_ops_go_on_from_where_a_kept_one_ended():
    def policy(context, op, *args, **kwargs):
        policy.calls += op is nn.functional.dropout
        return CheckpointPolicy.PREFER_SAVE if policy.calls == 1 else CheckpointPolicy.PREFER_RECOMPUTE

    policy.calls = 0
    assert run_again(policy).count("dropout") == 1


def test_a_policy_is_told_what_is_called():
    told = []

    def policy(context, op, *args, **kwargs):
        told.append((op, context.is_recompute, context.op_output.shape, len(args)))
        return False

    x = adjoin.ones(2, 3, requires_grad=True)
    checkpoint(lambda t: (t @ t.mT).detach(), x, context_fn=selective(policy))
    assert (adjoin.matmul, False, (2, 2), 2) in told
    SAC_IGNORED_OPS.add(adjoin.matmul)
    told.clear()
    try:
        checkpoint(lambda t: (t @ t.mT).exp(), x, context_fn=selective(policy))
        assert [op for op, *_ in told] == [adjoin.exp]
    finally:
        SAC_IGNORED_OPS.clear()


def test_layers_and_inner_checkpoints(net):
    def run(x):
        inner = checkpoint(net[0], net[1](x), context_fn=selective([nn.functional.linear]))
        return net[2](inner)

    whole = nn.Sequential(net[1], net[0], net[2])
    assert gradients(net[:3], whole) == gradients(
        net[:3], lambda x: checkpoint(run, x, context_fn=selective([nn.functional.linear]))
    )


def test_what_writes_in_place_is_run_again():
    def inner(x, w):
        y = adjoin.mm(x, w) * 1
        y.mul_(2)
        return y.exp()

    assert run_again([adjoin.mm, adjoin.Tensor.mul_, adjoin.exp], inner).count("mul_") == 1

    def written(x, w):
        return adjoin.mm(x, w).mul_(2).exp() * 2

    with pytest.raises(RuntimeError, match="was written in place afterwards.*allow_cache_entry_mutation"):
        run_again([adjoin.mm], written)
    x = adjoin.ones(2, 2, requires_grad=True)
    options = selective([adjoin.mm], allow_cache_entry_mutation=True)
    checkpoint(written, x, x, context_fn=options).sum().backward()  # exp of 4 times 2, as the second run finds it
    assert x.grad[0, 0].item() == pytest.approx(16 * 2.718281828459045**8, rel=1e-4)


def test_what_is_kept_serves_once():
    x = adjoin.ones(2, 2, requires_grad=True)
    out = checkpoint(lambda t: t.mm(t).exp(), x, context_fn=selective([adjoin.mm]))
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.sum().backward()
    times = []

    def changing(t):
        times.append(0)
        return t.exp().tanh() if len(times) > 1 else t.tanh()

    with pytest.raises(RuntimeError, match="second run calls <op exp.*the first did not"):
        checkpoint(changing, x, context_fn=selective([adjoin.mm])).sum().backward()


def test_a_list_of_atens_ops_means_what_computes_them():
    layer, aten = nn.Linear(4, 4), adjoin.ops.aten

    def function(x, w):
        return layer(adjoin.mm(x, w).exp()).tanh()

    again = run_again([aten.mm.default, aten.addmm.default], function)
    assert not {"mm", "linear"} & set(again) and "exp" in again
    assert "linear" in run_again([aten.exp.default], function)


def test_mistakes_of_policies():
    with pytest.raises(ValueError, match="'mm' in the list is no op; ops are adjoin.mm"):
        create_selective_checkpoint_contexts(["mm"])
    with pytest.raises(TypeError, match="a function or a list of ops is wanted, not int"):
        create_selective_checkpoint_contexts(3)


# Tools of programs that write their own


def test_tools_of_own_checkpoints():
    x = adjoin.ones(2, requires_grad=True) * 2
    free, plain, same = detach_variable((x, adjoin.ones(1), 3))
    assert free.is_leaf and free.requires_grad and not plain.requires_grad and same == 3
    with pytest.raises(RuntimeError, match="a tuple of tensors is wanted, not list"):
        detach_variable([x])
    check_backward_validity([x, 3])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check_backward_validity([plain])
    found = CheckpointFunction.apply(lambda t: t.exp(), True, free)
    found.sum().backward()
    assert free.grad.tolist() == free.exp().tolist()


def test_states_of_devices():
    y = adjoin.ones(3, device="reference")
    devices, states = get_device_states(adjoin.ones(1), [y], 4)
    assert devices == [0] and len(states) == 1 and get_device_states(adjoin.ones(1)) == ([], [])
    first = adjoin.rand(3, device="reference").tolist()
    assert DefaultDeviceType.get_device_type() == "cuda"
    DefaultDeviceType.set_device_type("reference")
    try:
        set_device_states(devices, states)
    finally:
        DefaultDeviceType.set_device_type("cuda")
    assert adjoin.rand(3, device="reference").tolist() == first
    set_device_states(devices, states, device_type="reference")
    assert adjoin.rand(3, device="reference").tolist() == first


def test_parts_of_a_graph_in_turn():
    runs = []

    def function(x):
        runs.append(0)
        return x.exp(), x.tanh()

    x = adjoin.ones(2, requires_grad=True)
    a, b = checkpoint(function, x, early_stop=False)
    with GraphExecGroup():
        for part in (a, b):
            adjoin.autograd.grad(part.sum(), x)
        with pytest.raises(RuntimeError, match="they do not nest"), GraphExecGroup():
            pass
    assert len(runs) == 2
    with GraphExecGroup():  # one that was left
        pass


def test_a_pass_for_some_inputs_is_refused_by_the_reentrant_kind():
    net, x = nn.Linear(2, 2), adjoin.ones(1, 2, requires_grad=True)
    valid = adjoin.autograd._is_checkpoint_valid
    assert valid()
    for asked in (lambda y: adjoin.autograd.grad(y, x), lambda y: y.backward(inputs=[x])):
        with pytest.raises(RuntimeError, match="use_reentrant=True, checkpoint is incompatible with .grad"):
            asked(checkpoint(net, x, use_reentrant=True).sum())
    assert x.grad is None and net.weight.grad is None and valid()
    seen = []
    y = checkpoint(lambda v: checkpoint(net, v, use_reentrant=True) * 2, x, use_reentrant=True).sum()
    y.register_hook(lambda g: seen.append(valid()))
    y.backward()
    assert seen == [True] and x.grad.tolist() == (2 * net.weight.sum(0, keepdim=True)).tolist()
    z = x * 2
    z.register_hook(lambda g: seen.append(valid()))
    adjoin.autograd.grad(z.sum(), x)
    assert seen == [True, False] and valid()


def _changing(first, second):
    runs = iter((first, second, second))
    return lambda x: next(runs)(x)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (lambda x: x.sin(), "A different number of tensors was saved: the first run saved 2 and the second 1"),
        (lambda x: x.sin().exp().sin(), "trying to save more tensors during recomputation: .* saved 2, the second 3"),
        (lambda x: x.sin() * adjoin.ones(2), "have different metadata"),
    ],
)
def test_a_second_run_that_differs_is_told_and_debug_lists_the_ops(second, words):
    x = adjoin.ones(1, requires_grad=True)
    for debug in (False, True):
        out = checkpoint(_changing(lambda x: x.sin().exp(), second), x, early_stop=False, debug=debug)
        with pytest.raises(CheckpointError, match=words) as caught:
            out.sum().backward()
        message = str(caught.value)
        assert (
            ("you passed `debug=True`" in message) == debug == ("0. aten.sin.default\n  1. aten.exp.default" in message)
        )
        assert debug or "debug=True lists the ops" in message


def test_a_second_run_leaves_no_circle_behind():
    class Kept:
        def __call__(self, x):
            return x.sin().exp()

    function = Kept()
    alive = weakref.ref(function)
    x = adjoin.ones(2, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        out = checkpoint(function, x)
        out.sum().backward()
        del function, out
        assert alive() is None, "the frame goes with its graph"
    finally:
        gc.enable()
