"""tests/python/graph/script_swap_test.py: parts of a scripted module that become other modules, and interfaces of such parts."""

import io

import adjoin
import pytest
from adjoin import jit, nn


@jit.interface
class Maps(nn.Module):
    def forward(self, x):
        pass


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y


class Inner(nn.Module):
    part: Maps

    def __init__(self):
        super().__init__()
        self.a, self.part, self.k = nn.Linear(3, 3), nn.Tanh(), 2

    def forward(self, x):
        return self.part(self.a(x)) * self.k


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = Inner(), nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.inner(x))


def test_a_part_becomes_another():
    m, x, new = Outer(), adjoin.randn(2, 3), nn.Linear(3, 3)
    s = jit.script(m)
    held = s.inner
    s.inner.k = 5
    s.inner.a = new
    assert s(x).equal(m.head(adjoin.tanh(new(x)) * 5)) and s.inner is held and s.inner.k == 5
    assert s.inner.a.weight is new.weight and m.inner.a is not new and m.inner.k == 2
    s.inner.part = Twice()
    assert s(x).equal(m.head(new(x) * 2 * 5))
    s.inner.a.weight = nn.Parameter(adjoin.zeros(3, 3))
    assert s(x).equal(m.head(nn.functional.linear(x, adjoin.zeros(3, 3), new.bias) * 2 * 5))
    s.head = jit.script(nn.Linear(3, 4))
    assert s(x).shape == (2, 4) and s.inner(x).shape == (2, 3)
    file = io.BytesIO()
    s.save(file)
    file.seek(0)
    assert jit.load(file)(x).equal(s(x))
    s(x).sum().backward()
    assert s.head.weight.grad is not None
    assert s.to(adjoin.float64)(x.double()).dtype is adjoin.float64
    row = jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    row.add_module("1", nn.Tanh())
    assert row(x).equal(row[0](x).tanh())


def test_what_cannot_change_is_refused():
    s = jit.script(Outer())
    with pytest.raises(RuntimeError, match=r"'part' is a Maps; Sum has no method forward\(self, x\)"):
        s.inner.part = Sum()
    with pytest.raises(
        RuntimeError, match="a scripted Inner has no part 'other', so no code of it would call this ReLU"
    ):
        s.inner.other = nn.ReLU()
    with pytest.raises(TypeError, match="'head' is a module; a module can take its place, not int"):
        s.head = 3
    with pytest.raises(RuntimeError, match="'head' cannot go from a scripted Outer"):
        del s.head
    file = io.BytesIO()
    s.save(file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="'head' of a program from a file cannot become another module"):
        jit.load(file).head = nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match="jit.interface: a class is wanted, not int"):
        jit.interface(3)
