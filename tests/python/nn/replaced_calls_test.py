"""tests/python/nn/replaced_calls_test.py: a class of modules gets another __call__ or __getattr__ after it was made, as tracers do."""

import adjoin as torch
from adjoin import nn


class Counting(nn.Module):
    """Says itself what its parts are."""

    def __init__(self):
        super().__init__()
        self.asked = []
        self.part = nn.Linear(2, 2)

    def __getattr__(self, name):
        self.__dict__.setdefault("asked", []).append(name)
        return super().__getattr__(name)

    def forward(self, x):
        return self.part(x)


def test_a_call_set_on_module_is_called_for_every_module_and_taken_back(monkeypatch):
    x, net, seen, before = torch.ones(1, 2), nn.Sequential(nn.Linear(2, 3), nn.ReLU()), [], nn.Module.__call__
    want = net(x)

    def call(module, *args, **kwargs):
        seen.append((type(module).__name__, len(args), sorted(kwargs)))
        return before(module, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", call)
    assert torch.equal(net(x), want)
    assert seen == [("Sequential", 1, []), ("Linear", 1, []), ("ReLU", 1, [])]
    assert torch.equal(net[0](input=x), net[0].forward(x)) and seen[-1] == ("Linear", 0, ["input"])
    hook = net[1].register_forward_hook(lambda module, args, out: out + 1)
    assert torch.equal(net(x), want + 1)
    hook.remove()
    monkeypatch.undo()
    seen.clear()
    assert torch.equal(net(x), want) and seen == []


def test_a_call_of_one_class_reaches_the_usual_one_through_super():
    class Twice(nn.Linear):
        def __call__(self, x):
            return super().__call__(super().__call__(x))

    layer, x = Twice(2, 2), torch.ones(1, 2)
    assert torch.equal(layer(x), layer.forward(layer.forward(x)))


def test_a_class_is_asked_for_its_parts_by_its_own_getattr():
    net = Counting()
    net(torch.ones(1, 2))
    assert net.asked == ["part"] and net.part is net._modules["part"]


def test_a_getattr_set_on_module_sees_parts_and_nothing_else(monkeypatch):
    layer, seen, before = nn.Linear(2, 3), [], nn.Module.__getattr__

    def read(module, name):
        seen.append(name)
        return before(module, name)

    monkeypatch.setattr(nn.Module, "__getattr__", read)
    assert layer.weight is layer._parameters["weight"] and layer.in_features == 2 and not hasattr(layer, "none")
    assert seen == ["weight", "none"]
    monkeypatch.undo()
    assert layer.weight is layer._parameters["weight"] and seen == ["weight", "none"]


def test_parts_of_a_transformers_layer_are_called_by_subclasses_with_three_arguments():
    x = torch.randn(5, 2, 8)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    decoder = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)
    assert torch.equal(encoder._sa_block(x, None, None), encoder.self_attn(x, x, x, need_weights=False)[0])
    assert torch.equal(decoder._sa_block(x, None, None), decoder.self_attn(x, x, x, need_weights=False)[0])
    want = decoder.multihead_attn(x, x + 1, x + 1, need_weights=False)[0]
    assert torch.equal(decoder._mha_block(x, x + 1, None, None), want)
