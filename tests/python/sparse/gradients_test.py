"""tests/python/sparse/gradients_test.py: derivatives with sparse tensors: values beside dense ones, layouts as PyTorch 2.15 has them."""

import random

import adjoin
import pytest
from random_sparse import LAYOUTS, coo, dense, full, laid

STRIDED, COO = "strided", "sparse_coo"


def name(t):
    return str(t.layout).rpartition(".")[2]


def total(y):
    return (y if y.layout is adjoin.strided else y.to_dense()).sum()


D, E = adjoin.arange(8.0).reshape(4, 2), adjoin.arange(16.0).reshape(4, 4) + 1

# For a leaf s of 4 by 4: the layout of its gradient where the sum of the result is strided, and, where PyTorch has it, where the
# sum is taken of the dense copy. `own`: as the leaf's.
GOLDEN = {
    "s @ d": (lambda s: s @ D, STRIDED),
    "d @ s": (lambda s: D.t() @ s, STRIDED),
    "mv": (lambda s: s.mv(adjoin.ones(4)), STRIDED),
    "sparse.mm": (lambda s: adjoin.sparse.mm(s, D), "own"),
    "sparse.addmm": (lambda s: adjoin.sparse.addmm(adjoin.ones(4, 2), s, D), "own"),
    "addmm": (lambda s: adjoin.addmm(adjoin.ones(4, 2), s, D), STRIDED),
    "sum": (lambda s: s.sum(), STRIDED),
    "sparse.sum": (lambda s: adjoin.sparse.sum(s), "own"),
    "s + s": (lambda s: s + s, "own"),
    "s - s": (lambda s: s - s * 2, "own"),
    "s * 2": (lambda s: s * 2, "own"),
    "s / 2": (lambda s: s / 2, "own"),
    "s * d": (lambda s: s * E, "own"),
    "d + s": (lambda s: E + s, STRIDED),
    "s * s": (lambda s: s * s, "own"),
    "relu": (lambda s: s.relu(), "own"),
    "abs": (lambda s: s.abs(), "own"),
    "neg": (lambda s: -s, "own"),
    "pow": (lambda s: s**2, "own"),
    "sin": (lambda s: s.sin(), "own"),
    "tanh": (lambda s: s.tanh(), "own"),
    "values": (lambda s: s.values(), "own"),
    "to_dense": (lambda s: s.to_dense(), "own"),
    "clone": (lambda s: s.clone(), "own"),
    "double": (lambda s: s.double(), "own"),
    "t": (lambda s: s.t(), "own"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", GOLDEN)
def test_layout_of_a_leafs_gradient(case, layout):
    f, wanted = GOLDEN[case]
    base = dense(random.Random(case), (4, 4), 0.5, adjoin.float32)
    s = laid(base, layout).requires_grad_()
    total(f(s)).backward()
    assert name(s.grad) == (layout if wanted == "own" else wanted)
    # Its values: those of the dense leaf, at the places that s has.
    leaf = full(s.detach()).requires_grad_()
    kept = full(laid(base, layout) * 0 + laid(base, layout).sgn().abs()) != 0
    if case == "values":
        leaf.sum().backward()
    elif case.startswith("sparse."):
        plain = {"sparse.mm": lambda: leaf @ D, "sparse.addmm": lambda: leaf @ D + 1, "sparse.sum": lambda: leaf.sum()}
        plain[case]().sum().backward()
    else:
        f(leaf).sum().backward()
    got = full(s.grad.detach())
    assert adjoin.allclose(got[kept], leaf.grad[kept], rtol=1e-5), (got, leaf.grad)
    if wanted == STRIDED:
        assert adjoin.allclose(got, leaf.grad, rtol=1e-5)
    elif layout not in ("sparse_bsr", "sparse_bsc"):
        assert not got[~kept].any()


def test_the_dense_operands_gradient_is_strided():
    rng = random.Random(1)
    for layout in LAYOUTS:
        base = dense(rng, (4, 4))
        for f in (lambda s, d: s @ d, lambda s, d: d @ s, lambda s, d: s * d, lambda s, d: s + d, lambda s, d: d - s,
                  lambda s, d: s * d[:1], lambda s, d: s / (d + 9), lambda s, d: adjoin.sparse.mm(s, d),
                  lambda s, d: s.mv(d[0])):  # fmt: skip
            d = dense(rng, (4, 4), 1.0).requires_grad_()
            e = d.detach().requires_grad_()
            total(f(laid(base, layout), d) * 3).backward()
            plain = f(base, e) if layout and "sparse" not in f.__code__.co_names else base @ e
            (plain * 3).sum().backward()
            assert d.grad.layout is adjoin.strided and adjoin.allclose(d.grad, e.grad), layout


FUNCTIONS = {
    "mm": lambda s, d: s @ d,
    "sparse.mm": lambda s, d: adjoin.sparse.mm(s, d),
    "mul": lambda s, d: (s * d).to_dense(),
    "add": lambda s, d: s + d,
    "square": lambda s, d: (s * s).to_dense(),
    "tanh": lambda s, d: s.tanh().to_dense() * d,
    "sin twice": lambda s, d: s.sin().sin().to_dense() * d,
    "power": lambda s, d: (s**3).to_dense() * d,
    "transpose": lambda s, d: s.t().to_dense() * d,
    "sum": lambda s, d: s.sum() * d,
    "values": lambda s, d: s._values().sum() ** 2 * d,
    "product": lambda s, d: (s @ s).to_dense() * d,
    "div": lambda s, d: (s / (d * d + 1)).to_dense(),
}


@pytest.mark.parametrize("case", FUNCTIONS)
@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr", "sparse_csc"))
def test_first_and_second_derivatives(case, layout):
    """Through the values of a sparse tensor, which the checker moves one by one."""
    f = FUNCTIONS[case]
    rng = random.Random(case)
    base = laid(dense(rng, (3, 3), 0.5), layout)
    d = dense(rng, (3, 3), 1.0).requires_grad_()
    values = base.values().detach().clone().requires_grad_()

    def of_values(values, d):
        if layout == "sparse_coo":
            s = adjoin.sparse_coo_tensor(base.indices(), values, (3, 3), is_coalesced=True)
        elif layout == "sparse_csr":
            s = adjoin.sparse_csr_tensor(base.crow_indices(), base.col_indices(), values, (3, 3))
        else:
            s = adjoin.sparse_csc_tensor(base.ccol_indices(), base.row_indices(), values, (3, 3))
        return f(s, d)

    assert adjoin.autograd.gradcheck(of_values, (values, d))
    assert adjoin.autograd.gradgradcheck(of_values, (values, d))


def test_gradients_of_slices_and_sums():
    rng = random.Random(2)
    base = coo(rng, (3, 4), 7).coalesce()
    values = base.values().detach().clone().requires_grad_()
    index = adjoin.tensor([2, 0, 2])
    for f in (lambda s: s.select(0, 1), lambda s: s[:, 1:3], lambda s: s.index_select(0, index), lambda s: s.unsqueeze(0),
              lambda s: adjoin.cat([s, s * 2]), lambda s: s.sum(0), lambda s: adjoin.sparse.sum(s, 1),
              lambda s: adjoin.sparse.softmax(s, 1), lambda s: adjoin.sparse.log_softmax(s, 0), lambda s: s.norm(),
              lambda s: s.mean()):  # fmt: skip

        def of_values(values, f=f):
            s = f(adjoin.sparse_coo_tensor(base.indices(), values, (3, 4), is_coalesced=True))
            return s if s.layout is adjoin.strided else s.to_dense()

        assert adjoin.autograd.gradcheck(of_values, (values,))


def test_gradients_where_places_repeat():
    values = adjoin.tensor([1.0, 2.0, 3.0], requires_grad=True)
    s = adjoin.sparse_coo_tensor([[0, 1, 0]], values, (2,))
    (s.coalesce().values() * adjoin.tensor([10.0, 20.0])).sum().backward(retain_graph=True)
    assert values.grad.tolist() == [10, 20, 10]
    values.grad = None
    (s * s).to_dense().sum().backward()  # (1 + 3)^2 + 2^2
    assert values.grad.tolist() == [8, 4, 8]


def test_to_dense_whose_gradient_is_not_masked():
    s = adjoin.sparse_coo_tensor([[0], [1]], [2.0], (2, 2)).requires_grad_()
    s.to_dense(masked_grad=False).sum().backward()
    assert full(s.grad).tolist() == [[1, 1], [1, 1]]
    d = adjoin.eye(2).requires_grad_()
    (d.to_sparse() * 3).to_dense().sum().backward()
    assert d.grad.layout is adjoin.strided and d.grad.tolist() == [[3, 0], [0, 3]]


def test_gradients_add_up():
    s = adjoin.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).requires_grad_()
    (s * 2).to_dense().sum().backward()
    (s * 3).to_dense().sum().backward()
    assert name(s.grad) == COO and full(s.grad).tolist() == [[0, 5], [5, 0]]
    s.sum().backward()
    assert name(s.grad) == STRIDED and s.grad.tolist() == [[1, 6], [6, 1]]


def test_hooks_and_a_graph_used_twice():
    seen = []
    s = adjoin.sparse_coo_tensor([[0]], [2.0], (2,)).requires_grad_()
    s.register_hook(lambda g: seen.append(name(g)))
    y = (s * 2).to_dense().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [COO, COO] and full(s.grad).tolist() == [4, 0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_checker_takes_sparse_tensors(layout):
    s = laid(dense(random.Random(layout), (4, 4), 0.5), layout).requires_grad_()
    d = dense(random.Random(2), (4, 2), 1.0).requires_grad_()
    assert adjoin.autograd.gradcheck(adjoin.sparse.mm, (s, d), masked=True)
    assert adjoin.autograd.gradgradcheck(lambda s, d: (s * 2).sin() @ d, (s, d))
    wrong = adjoin.sparse.as_sparse_gradcheck(adjoin.autograd.gradcheck)
    assert not wrong(lambda s: s + s.detach(), (s,), raise_exception=False) or s._nnz() == 0
