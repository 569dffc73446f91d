"""tests/python/toplevel/higher_order_test.py: control flow over tensors: values and gradients against loops; kept by programs that are traced."""

import pytest

import adjoin
from adjoin import nn
from adjoin._higher_order_ops import associative_scan, cond, foreach_map, map, scan, while_loop
from adjoin.export import export


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = (adjoin.rand(n, 2, dtype=adjoin.float64) + 0.5).requires_grad_()
    made = associative_scan(lambda a, b: a * b, x, 0, reverse=reverse, combine_mode="generic")
    wanted = x.flip(0).cumprod(0).flip(0) if reverse else x.cumprod(0)
    assert made.allclose(wanted)
    weights = adjoin.randn(n, 2, dtype=adjoin.float64)
    (got,), (right,) = (
        adjoin.autograd.grad((made * weights).sum(), x),
        adjoin.autograd.grad((wanted * weights).sum(), x),
    )
    assert got.allclose(right)
    assert associative_scan(lambda a, b: a + b, x.T, 1, combine_mode="generic").allclose(x.T.cumsum(1))


def test_associative_scan_keeps_the_order_of_trees():
    a, b = adjoin.rand(7, 3), adjoin.randn(7, 3)
    _, found = associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b), 0, combine_mode="generic")
    state, wanted = adjoin.zeros(3), []
    for i in range(7):
        state = a[i] * state + b[i]
        wanted.append(state)
    assert found.allclose(adjoin.stack(wanted), atol=1e-5)
    matrices = adjoin.randn(4, 3, 3, dtype=adjoin.float64)
    made = associative_scan(lambda p, q: p @ q, matrices, 0, combine_mode="generic")
    assert made[3].allclose(matrices[0] @ matrices[1] @ matrices[2] @ matrices[3])


def test_scan_map_and_lists():
    cell = nn.LSTMCell(3, 4)
    x = adjoin.randn(5, 3, requires_grad=True)
    start = adjoin.zeros(4), adjoin.zeros(4)
    (h, _), rows = scan(lambda carry, row: ((made := cell(row, carry)), made[0].clone()), start, x)
    state = start
    for row in x:
        state = cell(row, state)
    assert h.equal(state[0]) and rows[-1].equal(h) and rows.shape == (5, 4)
    total, doubled = map(lambda row, y: (row.sum() + y, {"twice": row * 2}), x, 1.0)
    assert total.equal(x.sum(1) + 1) and doubled["twice"].equal(x * 2)
    made = foreach_map(adjoin.lerp, [adjoin.zeros(2), adjoin.ones(3)], [adjoin.ones(2), adjoin.zeros(3)], 0.25)
    assert [t.tolist() for t in made] == [[0.25] * 2, [0.75] * 3]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda x: associative_scan(lambda a, b: a, x, 0), "combine_mode='generic'"),
        (lambda x: associative_scan(lambda a, b: a, x[:0], 0, combine_mode="generic"), "not empty"),
        (lambda x: associative_scan(lambda a, b: (a, b), x, 0, combine_mode="generic"), "form"),
        (lambda x: map(lambda row: row, x[:0]), "not empty"),
        (lambda x: map(lambda row: row, (x, x[:1])), "alike"),
        (lambda x: foreach_map(adjoin.add, [x], [x, x]), "one length"),
        (lambda x: cond(x > 0, lambda: 1, lambda: 2), "one is wanted"),
    ],
)
def test_what_cannot_be_walked_is_refused(act, told):
    with pytest.raises((ValueError, RuntimeError), match=told):
        act(adjoin.ones(3, 2))


class Chooses(nn.Module):
    def forward(self, x):
        return adjoin.cond((x.sum() > 0).unsqueeze(0), lambda t: (t.sin(),), lambda t: (t.cos(),), (x,))[0]


class Repeats(nn.Module):
    def forward(self, x):
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (adjoin.tensor(0), x))[1]


def test_a_program_keeps_them():
    program = export(Chooses(), (adjoin.ones(3),)).module()
    for x in (adjoin.ones(3), -adjoin.ones(3)):
        assert program(x).equal(Chooses()(x))
    assert export(Repeats(), (adjoin.ones(2),)).module()(adjoin.full((2,), 3.0)).tolist() == [24, 24]
