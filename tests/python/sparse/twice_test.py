"""tests/python/sparse/twice_test.py: elements that stand at one place twice have the gradient of their sum; results have a dense op's dtype."""

import adjoin
import pytest

PLACES = adjoin.tensor([[0, 0, 1], [1, 1, 2]])
Q = adjoin.arange(6.0, dtype=adjoin.float64).reshape(2, 3) + 1


def made(values):
    return adjoin.sparse_coo_tensor(PLACES, values, (2, 3))


def size(t):
    return (t if t.layout is adjoin.strided else t.to_dense()).square().sum()


FUNCTIONS = {
    "to_dense": lambda s: s,
    "coalesce": lambda s: s.coalesce(),
    "s * d": lambda s: s * Q,
    "s * 2": lambda s: s * 2,
    "s + s": lambda s: s + s,
    "t": lambda s: s.t(),
    "to_sparse_csr": lambda s: s.to_sparse_csr(),
    "sparse.sum 0": lambda s: adjoin.sparse.sum(s, 0),
    "sparse.sum 1": lambda s: adjoin.sparse.sum(s, 1),
    "sum, keepdim": lambda s: s.sum(1, keepdim=True),
    "select": lambda s: s[0],
    "index_select": lambda s: s.index_select(1, adjoin.tensor([1, 2])),
    "unsqueeze": lambda s: s.unsqueeze(0),
    "sparse.mm": lambda s: adjoin.sparse.mm(s, Q.t()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_count_what_stands_twice_once(name):
    f = FUNCTIONS[name]
    values = adjoin.tensor([1.0, 2.0, 5.0], dtype=adjoin.float64)
    assert adjoin.autograd.gradcheck(lambda v: size(f(made(v))), [values.clone().requires_grad_()])
    # The sparse leaf itself: the slope of the sum at the place.
    for leaf in (made(values).requires_grad_(), made(values).coalesce().detach().requires_grad_()):
        (slope,) = adjoin.autograd.grad(size(f(leaf)), leaf)
        expected = adjoin.autograd.grad(size(f(dense := made(values).coalesce().detach().requires_grad_())), dense)[0]
        assert adjoin.allclose(slope.to_dense(), expected.to_dense()), leaf


def test_the_gradient_of_a_dense_factor():
    q = Q.clone().requires_grad_()
    s = made(adjoin.tensor([1.0, 2.0, 5.0], dtype=adjoin.float64))
    (slope,) = adjoin.autograd.grad(size(s * q), q)
    assert slope.tolist() == (2 * s.to_dense() ** 2 * Q).tolist()


def test_dtypes_are_those_of_dense_ops():
    d = adjoin.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=adjoin.float64)
    half = adjoin.ones(2, 2, dtype=adjoin.float16)
    assert (d.to_sparse() + half).dtype is (half + d.to_sparse_csr()).dtype is adjoin.float64
    bools, ints = d.bool().to_sparse(), d.int().to_sparse()
    for b in (bools, d.bool().to_sparse_csr()):
        assert b.add(b, alpha=3).dtype is adjoin.bool and b.add(b, alpha=3).to_dense().tolist() == d.bool().tolist()
    for s in (bools, ints):
        assert s.sum(0).dtype is s.sum(-1, keepdim=True).dtype is s.sum().dtype is adjoin.int64
        assert adjoin.sparse.sum(s, 0).dtype is s.dtype
    assert bools.sum(0).to_dense().tolist() == [2, 1]
    for layout in ("sparse_coo", "sparse_csr", "sparse_csc"):
        a, b = (t.to_sparse(layout=getattr(adjoin, layout)) for t in (d, d.bool()))
        assert (a - b).to_dense().tolist() == (d - d.bool()).tolist()
        assert (d - b).tolist() == (d - d.bool()).tolist()
        with pytest.raises(RuntimeError, match="logical_xor"):
            b - b
    with pytest.raises(RuntimeError, match="alpha is a fraction"):
        ints.add(ints, alpha=0.5)


def test_places_of_two_kinds_are_not_multiplied():
    """A row for each element and a row for each line: the second was read where the first stands."""
    d = adjoin.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match="1 and 2 sparse dimensions"):
        d.to_sparse(1) * d.to_sparse()


def test_products_of_compressed_matrices_lie_by_rows():
    d = adjoin.tensor([[1.0, 0.0], [2.0, 3.0]])
    for a in (d.to_sparse_csr(), d.to_sparse_csc()):
        for b in (d.to_sparse_csr(), d.to_sparse_csc()):
            made = a @ b
            assert made.layout is adjoin.sparse_csr and made.to_dense().tolist() == (d @ d).tolist()


@pytest.mark.parametrize("dtype", [adjoin.bool, adjoin.int8, adjoin.int32, adjoin.float16, adjoin.complex64])
def test_a_line_of_the_only_sparse_dimension_keeps_its_dtype(dtype):
    d = adjoin.tensor([[0, 1, 0], [1, 0, 1]]).to(dtype)
    line = d.to_sparse(1)[1]
    assert line.dtype is dtype and line.tolist() == d[1].tolist()
    twice = adjoin.sparse_coo_tensor([[0, 0]], d, (2, 3))
    assert twice[0].tolist() == (d[0] | d[1] if dtype is adjoin.bool else d.sum(0)).tolist()
