"""tests/python/graph/script_mixed_test.py: traces keep the decisions of the scripted code that they call; scripted code calls what was traced."""

import contextlib
import threading
import time

import adjoin
import pytest
from adjoin import jit, nn
from script_test import told
from trace_test import same


@jit.script
def halved(x, least: float = 1.0):
    n = 0
    while x.abs().max() > least:
        x = x / 2
        n += 1
    return {"x": x, "turns": adjoin.tensor(n)}


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, x):
        if x.sum() > 0:
            return self.l(x)
        return x - self.l.weight.sum()


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.gate = jit.script(Gate())

    def forward(self, x):
        small = halved(self.first(x) * 4, least=0.5)
        return {"y": self.gate(small["x"]).tanh(), "turns": small["turns"] + 0}


def test_a_trace_keeps_the_decisions_of_scripted_code(tmp_path):
    adjoin.manual_seed(0)
    net = Around()
    traced = jit.trace(net, adjoin.ones(2, 3))
    assert "while {" in traced.graph and "if %" in traced.graph
    jit.save(traced, tmp_path / "around.aj")
    loaded = jit.load(tmp_path / "around.aj")
    for seed in range(4):
        adjoin.manual_seed(seed)
        x = adjoin.randn(2, 3, requires_grad=True) * 10 ** (seed - 1)
        wanted = net(x)
        for model in (traced, loaded):
            assert told(model(x)) == told(wanted)
        grads = [adjoin.autograd.grad(model(x)["y"].sum(), net.first.weight)[0] for model in (traced, net)]
        assert same(*grads)
    assert sorted(loaded.state_dict()) == sorted(net.state_dict())


def test_scripted_code_calls_what_was_traced(tmp_path):
    inner = jit.trace(lambda x, y: (x.sin() + y, {"p": x * y}), (adjoin.ones(3), adjoin.ones(3)))
    adjoin.manual_seed(0)
    block = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.0))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = jit.trace(block, adjoin.ones(3))

        def forward(self, x, n: int):
            for i in range(n):
                a, b = inner(x, x + i)
                x = a if a.sum() > b["p"].sum() else self.block(b["p"])
            return x

    net = Outer()
    scripted = jit.script(net)
    jit.save(scripted, tmp_path / "outer.aj")
    for n in (0, 1, 4):
        x = adjoin.randn(3)
        for model in (scripted, jit.load(tmp_path / "outer.aj")):
            assert same(model(x, n), net(x, n))


def counts(n: int):
    total = 0
    for k in range(n):
        total += k
    return total


def test_other_threads_go_on_beside_a_scripted_loop():
    looped, seen, done = jit.script(counts), [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(1)
            time.sleep(0.001)

    beside = threading.Thread(target=watch)
    beside.start()
    try:
        while not seen:
            time.sleep(0.001)
        # Without a turn for others there is one in a call at the most: the one that waits when it ends. A machine that has other
        # work may not take up a turn that is given.
        turns = []
        while not turns or (turns[-1] <= 3 and len(turns) < 20):
            before = len(seen)
            assert looped(2_000_000) == 1999999000000
            turns.append(len(seen) - before)
        assert turns[-1] > 3, turns
    finally:
        done.set()
        beside.join()


class Printing(nn.Module):
    def forward(self, x):
        print("x is", x, [1, 2], sep=" | ", end="!\n")
        print()
        return x


def test_what_scripted_code_prints_goes_where_python_prints(capsys):
    scripted, x = jit.script(Printing()), adjoin.tensor([1.0, 2.5])
    scripted(x)
    assert capsys.readouterr().out == f"x is | {x} | [1, 2]!\n\n"

    class Closed:
        def write(self, text):
            raise BrokenPipeError("nobody reads")

        def flush(self):
            pass

    with contextlib.redirect_stdout(Closed()), pytest.raises(BrokenPipeError, match="nobody reads"):
        scripted(x)
