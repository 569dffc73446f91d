"""tests/python/graph/script_around_test.py: with statements, fork and wait, forward hooks, slices, and modules over ScriptModule in
scripted programs."""

import io
from typing import Any, List, Tuple  # noqa: UP035

import adjoin
import pytest
from adjoin import Tensor, jit, nn

x = adjoin.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


class Around:
    def __init__(self, k: int):
        self.k, self.seen = k, 0

    def __enter__(self):
        self.seen += 1
        return self.k

    def __exit__(self, kind: Any, error: Any, where: Any):
        self.seen += 10


def once(k: int):
    a = Around(k)
    with a as n:
        n += 1
    return a.seen, n


def returned(k: int):
    a = Around(k)
    n = inside(a)
    return a.seen, n


def inside(a: Around):
    with a as n:
        if n > 1:
            return n * 2
    return 0


def in_loops(k: int):
    a, b, out = Around(k), Around(k + 1), 0
    for i in range(4):
        with a as n, b as m:
            if i == 1:
                continue
            if i == 3:
                break
            out += n * m
    return a.seen, b.seen, out


def made_there(k: int):
    with Around(k) as n:
        return n


@pytest.mark.parametrize("f", [once, returned, in_loops, made_there], ids=lambda f: f.__name__)
def test_with(f):
    for k in (0, 3):
        assert jit.script(f)(k) == f(k)


def forked(x: Tensor):
    first = jit.fork(adjoin.add, x, x)
    second = jit.fork(doubled, x, by=3.0)
    return jit.wait(first) + second.wait()


def doubled(x: Tensor, by: float):
    return x * by


def test_fork_and_wait():
    assert jit.script(forked)(x).equal(forked(x)) and forked(x).equal(x * 5)
    assert jit._fork is jit.fork and jit._wait is jit.wait


def cut(a: List[int], t: Tensor):  # noqa: UP006
    s = slice(1, None, 2)
    return a[slice(2)], a[s], a[slice(1, 3)], t[:, slice(0, 2)].sum()


def test_slices_are_values():
    scripted, plain = jit.script(cut)([1, 2, 3, 4, 5], x), cut([1, 2, 3, 4, 5], x)
    assert scripted[:3] == plain[:3] and scripted[3].equal(plain[3])


def before(self, given: Tuple[Tensor]):  # noqa: UP006
    return (given[0] * 2,)


def counted(self, given: Tuple[Tensor], result: Tensor):  # noqa: UP006
    return result + given[0].sum()


def silent(self, given: Tuple[Tensor], result: Tensor):  # noqa: UP006
    return None


def test_forward_hooks():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[0].register_forward_pre_hook(before)
    net[1].register_forward_hook(silent)
    net.register_forward_hook(counted)
    scripted = jit.script(net)
    assert scripted(x).equal(net(x)) and list(scripted.state_dict()) == list(net.state_dict())
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    assert jit.load(file)(x).equal(net(x))
    net[0].register_forward_hook(silent, with_kwargs=True)
    with pytest.raises(RuntimeError, match="keyword arguments"):
        jit.script(net)


class Counting(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.layer, self.n, self.rows = nn.Linear(3, 3), 0, [1, 2]

    @jit.script_method
    def forward(self, x):
        self.n += 1
        if x.sum() > 0:
            x = self.layer(x)
        return self.more(x)

    @jit.script_method
    def more(self, x, by: int = 2):
        return x * by + self.rows[0]


def test_methods_of_a_script_module_are_programs():
    net = Counting()
    assert net(x).equal(net.layer(x) * 2 + 1) and net.more(x, 3).equal(x * 3 + 1)
    net(-x)
    assert net.n == 2 and "ops.nn.linear" in net.code and "fn Counting.forward" in net.graph
    with adjoin.no_grad():
        net.layer.weight.zero_()
    assert net(x).equal(net.layer.bias.expand(2, 3) * 2 + 1)
    net.rows = [5]  # the program is made again
    assert net.more(x).equal(x * 2 + 5)
    net.layer = nn.Identity()
    assert net(x).equal(x * 2 + 5) and net.n == 4


def test_methods_are_defined_by_a_text():
    class Empty(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(3, 3)

    net, other = Empty(), Empty()
    net.define("""
        def forward(self, x):
            return self.part(x) * self.two()

        def two(self) -> int:
            return 2
    """)
    assert net(x).equal(net.part(x) * 2) and not hasattr(other, "two")
    assert "fn Empty.forward" in net.graph
    net.define("def three(self): return self.two() + 1")
    assert net.three() == 3
    file = io.BytesIO()
    net.save(file)
    file.seek(0)
    assert jit.load(file)(x).equal(net(x))
    with pytest.raises(RuntimeError, match="no method 'absent'"):
        net.define("def bad(self, x):\n    return self.absent(x)")
