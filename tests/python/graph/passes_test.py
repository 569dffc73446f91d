"""tests/python/graph/passes_test.py: passes over programs: text to text, and the same bits; freeze and optimize_for_inference."""

import os
import random
import re

import adjoin
import pytest
import random_programs
from adjoin import _C, jit, nn
from adjoin.jit import _traced as passes
from adjoin.nn import functional as F

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))


def calls(text):
    """The names of the ops that a program calls, in order."""
    return re.findall(r"^  (?:%\w+ = )?([\w:.]+)\(", text, re.M)


def after(text, *which):
    return _C.program_text(_C.program_passes(_C.program_parse(text), sum(which)))


SAME = """adjoin.program 1
fn f(%x: float32[3], %y: float32[3]) {
  %a = add(%x, %y) : float32[3]
  %b = add(%x, %y) : float32[3]
  %c = add(%y, %x) : float32[3]
  %d = mul(%a, %b) : float32[3]
  %e = mul(%b, %a) : float32[3]
  %g = sub(%d, %e) : float32[3]
  %h = sub(%g, %c) : float32[3]
  return %h
}
"""


def test_equal_calls_are_made_once():
    assert calls(after(SAME, passes.COMMON)) == ["add", "add", "mul", "sub", "sub"]
    # What is written, or handed out, is a tensor of its own; draws are all made.
    written = SAME.replace("  %d =", "  mul(%a, 2.0) into %a\n  %d =")
    assert calls(after(written, passes.COMMON)) == calls(written)
    assert calls(after(SAME.replace("return %h", "return %a, %b, %h"), passes.COMMON)).count("add") == 3
    traced = jit.trace(lambda x: F.dropout(x, 0.5, True) + F.dropout(x, 0.5, True), adjoin.ones(64))
    optimized = passes.optimized(traced._traced.program, passes.COMMON)
    assert calls(_C.program_text(optimized.handle)).count("nn::dropout") == 2


def test_dead_calls_go():
    dead = SAME.replace("return %h", "return %a")
    assert calls(after(dead, passes.DEAD)) == ["add"]
    assert after(SAME, passes.DEAD) == _C.program_text(_C.program_parse(SAME))


class Net(nn.Module):
    def __init__(self, affine=True, bias=True):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, bias=bias)
        self.norm = nn.BatchNorm2d(8, affine=affine)
        self.linear = nn.Linear(8 * 4 * 4, 6)
        self.norm2 = nn.BatchNorm1d(6)
        self.scale = nn.Parameter(adjoin.randn(6))

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        x = self.norm2(self.linear(x.flatten(1)))
        return x * (self.scale.exp() + self.scale.exp()) * adjoin.arange(6, device=x.device)


def net(**kwargs):
    adjoin.manual_seed(SEED)
    made = Net(**kwargs)
    for _ in range(3):  # running means of their own
        made(adjoin.randn(5, 3, 6, 6) * 2 + 1)
    return made.eval()


@pytest.mark.parametrize("kwargs", [{}, {"affine": False}, {"bias": False}])
def test_a_frozen_module(kwargs):
    module, x = net(**kwargs), adjoin.randn(5, 3, 6, 6)
    traced = jit.trace(module, x)
    exact = jit.freeze(traced, optimize_numerics=False)
    with adjoin.no_grad():
        wanted = module(x)
        assert exact(x).numpy().tobytes() == wanted.numpy().tobytes()
        fast = jit.freeze(traced)
        assert "batch_norm" in exact.graph and "batch_norm" not in fast.graph
        assert (fast(x) - wanted).abs().max() <= 1e-4 * wanted.abs().max()
        # exp and the sum were computed when it was frozen.
        assert "exp" not in calls(exact.graph) and len(calls(exact.graph)) < len(calls(traced.graph))
        assert list(exact.state_dict()) == [] and list(traced.state_dict()) == list(module.state_dict())
        module.scale.mul_(2)
        assert exact(x).numpy().tobytes() == wanted.numpy().tobytes() != module(x).numpy().tobytes()
        # Other sizes are traced and frozen when they come.
        more = adjoin.randn(2, 3, 6, 6)
        assert (jit.optimize_for_inference(traced)(more) - module(more)).abs().max() < 1e-3


def test_a_frozen_module_is_saved_and_loaded(tmp_path):
    module, x = net(), adjoin.randn(5, 3, 6, 6)
    fast = jit.optimize_for_inference(jit.trace(module, x))
    jit.save(fast, tmp_path / "fast.aj")
    loaded = jit.load(tmp_path / "fast.aj")
    assert loaded.graph == fast.graph and loaded(x).detach().numpy().tobytes() == fast(x).detach().numpy().tobytes()


def test_what_trains_is_not_frozen():
    module = net()
    with pytest.raises(RuntimeError, match="training mode"):
        jit.freeze(jit.trace(module.train(), adjoin.randn(5, 3, 6, 6)))
    traced = jit.trace(module, adjoin.randn(5, 3, 6, 6))
    traced.training = False  # but the program writes its running means
    with pytest.raises(RuntimeError, match="may write '.*trace the module after eval"):
        jit.freeze(traced)
    plain = nn.Linear(2, 2).eval()
    assert jit.freeze(plain) is plain


def test_dropout_that_is_off_goes():
    text = """adjoin.program 1
fn f(%x: float32[3]) {
  %a = nn::dropout(%x, 0.5, TRAINING) : float32[3]
  %b = neg(%a) : float32[3]
  return %b
}
"""
    assert calls(after(text.replace("TRAINING", "false"), passes.DROPOUT)) == ["neg"]
    assert calls(after(text.replace("TRAINING", "true"), passes.DROPOUT)) == ["nn::dropout", "neg"]


def test_random_programs_pass_by_pass():
    full = os.environ.get("ADJOIN_TEST_FULL") == "1"
    for i in range(2000 if full else 40):
        seed = SEED * 1009 + i
        _, f, inputs = random_programs.case(seed)
        wanted = random_programs.outcome(f, inputs, seed % 1000)
        adjoin.manual_seed(seed % 1000)
        traced = jit.trace(f, tuple(x.clone() for x in inputs))
        for which in (passes.DEAD, passes.COMMON, passes.CONSTANTS, passes.COMMON | passes.CONSTANTS | passes.DEAD):
            program = passes.optimized(traced._traced.program, which)
            got = random_programs.outcome(lambda *given, p=program: p.run(list(given)), inputs, seed % 1000)
            assert got == wanted, (seed, which, traced.graph)


CUT = """adjoin.program 1
fn f(%x: float32[2, 3], %y: float32[3]) {
  %a = mul(%x, %y) : float32[2, 3]
  %b = transpose(%a, 0, 1) : float32[3, 2]
  %c = sum(%b, [1]) : float32[3]
  mul(%c, 2) into %c
  return %c
}
"""


def test_a_program_is_cut_into_programs_of_its_calls():
    effect, cheap, view = 1, 2, 4
    whole = _C.program_parse(CUT)
    assert _C.program_calls(whole) == [
        (cheap, (0, 1), (2,), (24,)),
        (view, (2,), (3,), (24,)),
        (0, (3,), (4,), (12,)),
        (effect, (4, 4), (), ()),
    ]
    part = _C.program_cut(whole, [1, 2], [2], [4, 3])
    a = adjoin.randn(2, 3)
    total, turned = _C.program_run(part, [a], True)
    assert adjoin.equal(total, a.sum(0)) and adjoin.equal(turned, a.t()) and turned.data_ptr() == a.data_ptr()
    assert "mul" in _C.program_text(whole)  # it stays as it is
    for calls, inputs, results in (([2], [0], [4]), ([2, 1], [2], [4]), ([7], [2], [4]), ([1], [2], [99])):
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            _C.program_cut(whole, calls, inputs, results)
