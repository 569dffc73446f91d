"""tests/python/autograd/tape_test.py: autograd.graph.tape: printed with lines, replayed on other leaves, compared."""

import adjoin
import pytest
from adjoin.autograd.graph import tape


def loss(x, w):
    y = x @ w
    z = y.tanh()
    return (z * z).sum()


def leaves(seed):
    adjoin.manual_seed(seed)
    return adjoin.randn(2, 3), adjoin.randn(3, 3, requires_grad=True)


def test_it_prints_steps_with_their_lines():
    x, w = leaves(0)
    t = tape(loss(x, w))
    first = loss.__code__.co_firstlineno
    text = str(t)
    assert text.startswith("%0 = leaf float32[3, 3]\n") and t.leaves[0] is w and len(t) == 5
    for i, (word, line) in enumerate((("Mm|Matmul", 1), ("Tanh", 2), ("Mul", 3), ("Sum", 3)), 1):
        entry = t[i]
        assert any(entry.name.startswith(n) for n in word.split("|")), text
        assert f"tape_test.py:{first + line} in loss" in str(entry)
    assert t[3].inputs == [2, 2] and "keeps" in str(t[2])


def test_it_is_replayed_without_the_function():
    calls = []

    def f(x, w):
        calls.append(1)
        return loss(x, w)

    x, w = leaves(0)
    t = tape(f, x, w)
    seen = len(calls)
    y, v = leaves(1)
    again = t.replay(y, v)
    assert len(calls) == seen and again.result.equal(loss(y, v)) and again.leaves[0] is v
    assert adjoin.autograd.grad(again.result, v)[0].equal(adjoin.autograd.grad(loss(y, v), v)[0])
    with pytest.raises(RuntimeError, match=r"tape\(function"):
        tape(loss(x, w)).replay(y, v)


def test_two_runs_are_compared():
    x, w = leaves(0)
    a = tape(loss(x, w))
    assert a.difference(tape(loss(x, w))) is None
    d = a.difference(tape(loss(x + 1, w)))
    assert d.at == 1 and d.what == "other values are kept" and "other:" in str(d)
    assert a.difference(tape(loss(x, (w * 1).detach().requires_grad_()))) is None
    d = a.difference(tape((x @ w).sigmoid().sum()))
    assert d.at == 1 and d.what == "another line"
    d = a.difference(tape(loss(x, w) * 2))
    assert d.at == 5 and d.what == "one is longer" and "the tape ends" in str(d)


def test_what_has_no_history_says_so():
    with pytest.raises(RuntimeError, match="no history"):
        tape(adjoin.ones(2))
    with pytest.raises(TypeError, match="tensor or a function"):
        tape(3)
    x, w = leaves(0)
    made = loss(x, w)
    t = tape(made)
    made.backward()
    assert "freed" in str(t)
