"""tests/python/nn/module_walk_test.py: networks are walked in one go, and in their own way where a class has one."""

import adjoin
import pytest
from adjoin import nn


def network():
    shared = nn.Linear(2, 2)
    return nn.Sequential(shared, nn.BatchNorm1d(2), nn.Sequential(shared, nn.ReLU()))


def test_names_and_order():
    net = network()
    assert [n for n, _ in net.named_modules()] == ["", "0", "1", "2", "2.1"]
    assert [n for n, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1", "2", "2.0", "2.1"]
    assert [n for n, _ in net.named_modules(prefix="net")] == ["net", "net.0", "net.1", "net.2", "net.2.1"]
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [n for n, _ in net.named_parameters("a", remove_duplicate=False)][-2:] == ["a.2.0.weight", "a.2.0.bias"]
    assert [n for n, _ in net.named_buffers()] == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    assert list(net.named_parameters(recurse=False)) == [] and list(net.parameters(recurse=False)) == []
    assert [p is q for p, (_, q) in zip(net.parameters(), net.named_parameters(), strict=True)] == [True] * 4
    assert len(list(net.buffers())) == 3 and len(list(net.modules())) == 5
    assert next(net.parameters()) is net[0].weight


def test_memo_is_filled():
    net, memo = network(), set()
    assert len(list(net.named_modules(memo))) == 5 and len(memo) == 5
    assert list(net.named_modules(memo)) == []


class Hidden(nn.Module):
    """Shows nothing of what is below."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.modes = []

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        yield prefix, self

    def train(self, mode=True):
        self.modes.append(mode)
        return super().train(mode)


def test_own_ways_are_kept():
    net = nn.Sequential(nn.Linear(1, 1), Hidden())
    assert [n for n, _ in net.named_modules()] == ["", "0", "1"]
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert len(list(net.parameters())) == 2 and len(list(net.modules())) == 3
    assert net.eval() is net and net[1].modes == [False]
    assert not net[0].training and not net[1].training and not net[1].inner.training

    class Named(nn.Sequential):
        def named_parameters(self, *args, **kwargs):
            yield from [("only", self[0].weight)]

    assert len(list(Named(nn.Linear(1, 1)).parameters())) == 1

    class Few(nn.Sequential):
        def children(self):
            yield self[0]

    few = Few(nn.ReLU(), nn.ReLU()).eval()
    assert not few[0].training and few[1].training


def test_modes_and_gradients():
    net = network()
    net.eval()
    assert not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)
    net(adjoin.ones(4, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_strange_networks():
    net = nn.Sequential(nn.ReLU())
    net[0].up = net
    assert len(list(net.modules())) == 2
    with pytest.raises(RecursionError):
        list(net.named_modules(remove_duplicate=False))

    class Early(nn.Module):
        def __init__(self):
            self.found = list(self.parameters())

    with pytest.raises(AttributeError):
        Early()
    net = nn.Sequential(nn.ReLU())
    net.register_module("none", None)
    net.register_parameter("absent", None)
    assert len(list(net.modules())) == 2 and list(net.parameters()) == []
    for name, module in net.named_modules():  # what is found may be replaced meanwhile
        if name:
            setattr(net, name, nn.Sequential(module))
    assert len(list(net.modules())) == 3
