"""tests/python/nn/hooks_test.py: hooks around a module's forward and backward."""

import adjoin
import pytest
from adjoin import nn


class Scale(nn.Module):
    def __init__(self, value=2.0):
        super().__init__()
        self.weight = nn.Parameter(adjoin.tensor([value]))

    def forward(self, x, times=1):
        return x * self.weight * times


def test_forward_hooks_see_and_replace():
    net, order = Scale(), []
    net.register_forward_pre_hook(lambda m, args: order.append("pre") or (args[0] + 1,))
    net.register_forward_pre_hook(
        lambda m, args, kwargs: order.append("first") or (args, {"times": 3}),
        prepend=True,
        with_kwargs=True,
    )
    net.register_forward_hook(lambda m, args, out: order.append("post") or out * 10)
    net.register_forward_hook(lambda m, args, kwargs, out: order.append(kwargs["times"]), with_kwargs=True)
    assert net(adjoin.ones(1)).item() == (1 + 1) * 2 * 3 * 10
    assert order == ["first", "pre", "post", 3]


def test_handles_remove_their_hook():
    net, calls = Scale(), []
    with net.register_forward_hook(lambda *_: calls.append(1)) as handle:
        net(adjoin.ones(1))
    net(adjoin.ones(1))
    handle.remove()
    assert calls == [1] and not net._forward_hooks


def test_hooks_that_are_always_called():
    net, calls = Scale(), []
    net.register_forward_hook(lambda m, args, out: calls.append(out), always_call=True)
    with pytest.raises(TypeError):
        net(adjoin.ones(1), unknown=1)
    assert calls == [None]


def test_a_pre_hook_with_keywords_returns_two_things():
    net = Scale()
    net.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        net(adjoin.ones(1))


def test_global_hooks():
    from adjoin.nn.modules.module import register_module_forward_hook

    calls = []
    handle = register_module_forward_hook(lambda m, args, out: calls.append(type(m).__name__))
    nn.Sequential(Scale(), nn.ReLU())(adjoin.ones(1))
    handle.remove()
    assert calls == ["Scale", "ReLU", "Sequential"]


def test_tables_of_global_hooks_by_name():
    from adjoin.nn.modules import module

    calls = []
    module.register_module_forward_hook(lambda m, args, out: calls.append("after"))
    module.register_module_forward_pre_hook(lambda m, args: calls.append("before"))
    module.register_module_full_backward_hook(lambda m, into, out: calls.append("back"))
    assert len(module._global_forward_hooks) == 1 and module._global_is_full_backward_hook is True
    nn.ReLU()(adjoin.ones(1, requires_grad=True)).backward()
    assert calls == ["before", "after", "back"]
    module._global_forward_hooks = {}
    module._global_forward_pre_hooks.clear()
    module._global_backward_hooks = {}
    module._global_is_full_backward_hook = None
    nn.ReLU()(adjoin.ones(1, requires_grad=True)).backward()
    assert len(calls) == 3
    with pytest.raises(AttributeError, match="_global_forwards"):
        _ = module._global_forwards


def test_full_backward_hooks():
    net, seen = Scale(3.0), []
    net.register_full_backward_pre_hook(lambda m, grads: seen.append(("pre", grads[0].item())))
    net.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in[0].item(), grad_out[0].item())))
    x = adjoin.tensor([5.0], requires_grad=True)
    (net(x) * 7).sum().backward()
    assert seen == [("pre", 7.0), (21.0, 7.0)]
    assert x.grad.item() == 21.0 and net.weight.grad.item() == 35.0


def test_backward_hooks_replace_gradients():
    net = Scale(3.0)
    net.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 10,))
    net.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0] + 1,))
    x = adjoin.tensor([5.0], requires_grad=True)
    net(x).sum().backward()
    assert x.grad.item() == 31.0 and net.weight.grad.item() == 50.0


def test_backward_hook_without_an_input_that_requires_grad():
    net, seen = Scale(3.0), []
    net.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in))
    net(adjoin.ones(1)).sum().backward()
    assert seen == [(None,)]


def test_the_two_kinds_of_backward_hooks_do_not_mix():
    net = Scale()
    net.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        net.register_backward_hook(lambda *_: None)


def test_wrong_number_of_gradients():
    net = Scale()
    net.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0], grad_in[0]))
    x = adjoin.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid number of grads, got 2, but expected 1"):
        net(x).sum().backward()


def test_what_records_nothing_has_zeros_as_its_gradient():
    seen = []
    x = adjoin.full((2, 3), 0.5, requires_grad=True)
    classes, chances = nn.NLLLoss(), nn.BCELoss()
    for layer, target in ((classes, adjoin.tensor([0, 1])), (chances, adjoin.ones(2, 3))):
        layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in))
        layer(x, target).backward()
        of_input, of_target = seen.pop()
        assert of_input.abs().sum() > 0 and of_target.shape == target.shape and not of_target.any()


def test_an_output_that_has_no_gradient_is_told_as_none():
    seen, pool = [], nn.MaxPool2d(2, return_indices=True)
    pool.register_full_backward_pre_hook(lambda m, grad_out: seen.append(grad_out))
    pool(adjoin.rand(1, 1, 4, 4, requires_grad=True))[0].sum().backward()
    assert seen[0][0].shape == (1, 1, 2, 2) and seen[0][1] is None
