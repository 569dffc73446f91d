"""tests/python/graph/script_parts_test.py: scripted modules that are parts of scripted ones, and scripted modules that are frozen."""

import io

import pytest

import adjoin
from adjoin import jit, nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(adjoin.ones(4))
        self.factor = 2
        self.register_buffer("calls", adjoin.zeros(1))

    def forward(self, x):
        self.calls += 1
        if x.sum() > 0:
            return x * self.w * self.factor
        return -x


class Cell(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.gate = gate
        self.linear = nn.Linear(4, 4)

    def forward(self, x, h):
        return adjoin.tanh(self.gate(self.linear(x)) + h)


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = jit.script(Cell(jit.script(Gate())))
        self.layers = nn.ModuleList([jit.script(nn.Linear(4, 4)) for _ in range(2)])

    def forward(self, x, h):
        for layer in self.layers:
            x = layer(x)
        return self.cell(x, h)


def test_a_scripted_part_keeps_its_tensors():
    gate = jit.script(Gate())
    cell = Cell(gate)
    scripted = jit.script(cell)
    x, h = adjoin.randn(3, 4), adjoin.randn(3, 4)
    assert scripted(x, h).equal(cell(x, h)) and gate.calls.item() == scripted.gate.calls.item() == 2
    assert sorted(scripted.state_dict()) == ["gate.calls", "gate.w", "linear.bias", "linear.weight"]
    scripted(adjoin.ones(3, 4) * 5, h).sum().backward()
    assert scripted.gate.original_name == "Gate" and (gate.w.grad is None) == (scripted.gate.w.grad is None)


def test_parts_of_parts_and_their_files():
    whole = Whole()
    x, h = adjoin.randn(2, 4), adjoin.randn(2, 4)
    scripted = jit.script(whole)
    assert scripted(x, h).equal(whole(x, h))
    assert {n for n, _ in scripted.named_parameters()} == {n for n, _ in whole.named_parameters()}
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    loaded = jit.load(file)
    assert loaded(x, h).equal(scripted(x, h))
    cell = Cell(loaded)
    with pytest.raises(RuntimeError, match=r"jit.load\(\) gave has no source"):
        jit.script(cell)


def test_attributes_that_were_changed_go_along():
    gate = jit.script(Gate())
    gate.factor = 5
    x = adjoin.ones(2, 4)
    assert jit.script(nn.Sequential(gate))(x).equal(x * 5)


def test_what_was_traced_with_decisions_is_a_part():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = jit.trace(Cell(jit.script(Gate())), (adjoin.ones(3, 4), adjoin.ones(3, 4)))

        def forward(self, x, h):
            return self.cell(x, self.cell(x, h)[0])

    net = Twice()
    x, h = adjoin.randn(3, 4), adjoin.randn(3, 4)
    scripted = jit.script(net)
    for a, b in ((x, h), (-x.abs(), h), (x.abs(), h)):
        assert all(p.equal(q) for p, q in zip(scripted(a, b), net(a, b), strict=True))


def test_a_frozen_module_has_no_parameters():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    with pytest.raises(RuntimeError, match="eval"):
        jit.freeze(jit.script(net))
    scripted = jit.script(net.eval())
    frozen = jit.freeze(scripted)
    x = adjoin.randn(3, 4)
    before = net(x).detach()
    assert frozen(x).equal(before) and not frozen(x).requires_grad
    assert not list(frozen.parameters()) and not frozen.state_dict() and list(scripted.parameters())
    with adjoin.no_grad():
        net[0].weight.zero_()
    assert frozen(x).equal(before) and not scripted(x).equal(before)


def attended(q, k, w, b, bias, out, zero: bool, mask, need: bool):
    return nn.functional.multi_head_attention_forward(
        q, k, k, 4, 2, w, b, bias, bias, zero, 0.0, out, None, True, None, need, mask
    )


def test_attention_by_its_function():
    program, w, out = jit.script(attended), adjoin.randn(12, 4), adjoin.randn(4, 4)
    for bias, zero, mask, need in ((None, False, None, True), (adjoin.randn(1, 1, 4), True, adjoin.randn(3, 5), False)):
        for q, k in ((adjoin.randn(3, 2, 4), adjoin.randn(5, 2, 4)), (adjoin.randn(3, 4), adjoin.randn(5, 4))):
            given = q, k, w, adjoin.randn(12), bias, out, zero, mask, need
            (a, of), (b, of_b) = attended(*given), program(*given)
            assert a.equal(b) and ((of is None and of_b is None) if not need else of.equal(of_b))
    with pytest.raises(AssertionError, match="embedding dimension of 4, but got 6"):
        program(adjoin.randn(3, 6), adjoin.randn(5, 6), w, None, None, out, False, None, True)
