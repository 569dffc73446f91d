"""tests/python/sparse/repeated_test.py: products of sparse tensors of which one is repeated, and of sparse numbers; their gradients."""

import adjoin
import pytest

FINE = adjoin.float64


def sparse(shape, sparse_dim, count, coalesce):
    places = [adjoin.randint(0, size, (count,)) for size in shape[:sparse_dim]]
    made = adjoin.sparse_coo_tensor(adjoin.stack(places), adjoin.randn((count, *shape[sparse_dim:]), dtype=FINE), shape)
    return made.coalesce() if coalesce else made


def at_places(dense, like):
    """Zero where nothing stands in ``like``."""
    like = like.coalesce()
    there = adjoin.sparse_coo_tensor(like.indices(), adjoin.ones_like(like.values()), like.shape)
    return dense * there.to_dense()


@pytest.mark.parametrize("coalesce", [True, False])
@pytest.mark.parametrize("sparse_dim", [1, 2, 3])
@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 1, 4), (1, 3, 4), (1, 1, 1)])
def test_a_factor_is_repeated_and_its_gradient_summed(shape, sparse_dim, coalesce):
    adjoin.manual_seed(2)
    x, y = sparse((2, 3, 4), sparse_dim, 7, coalesce), sparse(shape, sparse_dim, 5, coalesce)
    weights = adjoin.randn(2, 3, 4, dtype=FINE)
    for one, other in ((x, y), (y, x)):
        product = one * other
        assert product.layout is adjoin.sparse_coo and product.shape == (2, 3, 4)
        adjoin.testing.assert_close(product.to_dense(), one.to_dense() * other.to_dense())
        a, b = one.clone().requires_grad_(), other.clone().requires_grad_()
        ((a * b).to_dense() * weights).sum().backward()
        c, d = one.to_dense().requires_grad_(), other.to_dense().requires_grad_()
        ((c * d) * weights).sum().backward()
        for got, wanted, like in ((a.grad, c.grad, one), (b.grad, d.grad, other)):
            assert got.shape == like.shape
            adjoin.testing.assert_close(at_places(got.to_dense(), like), at_places(wanted, like))


@pytest.mark.parametrize("number", [2.5, 0.0])
def test_a_sparse_number_is_a_factor(number):
    x = sparse((2, 3, 4), 2, 6, False)
    n = adjoin.tensor(number, dtype=FINE).to_sparse()
    for product in (x * n, n * x):
        adjoin.testing.assert_close(product.to_dense(), x.to_dense() * number)
    a, b = x.clone().requires_grad_(), n.clone().requires_grad_()
    (a * b).to_dense().sum().backward()
    assert b.grad.shape == () and b.grad.to_dense() == (x.to_dense().sum() if number else 0)
    adjoin.testing.assert_close(at_places(a.grad.to_dense(), x), at_places(adjoin.full(x.shape, number, dtype=FINE), x))
    whole, half = adjoin.tensor([1, 0, 3]).to_sparse(), adjoin.tensor(0.5).to_sparse()
    assert (whole * half).dtype is adjoin.float32 and (whole * half).to_dense().tolist() == [0.5, 0.0, 1.5]


def test_what_does_not_broadcast_is_refused():
    with pytest.raises(RuntimeError, match="do not broadcast"):
        sparse((2, 3), 1, 2, True) * sparse((2, 4), 1, 2, True)
    with pytest.raises(RuntimeError, match="sparse dimensions"):
        sparse((2, 3), 1, 2, True) * sparse((2, 3), 2, 2, True)
    compressed = adjoin.eye(3).to_sparse_csr()
    with pytest.raises(NotImplementedError, match="COO tensors are repeated"):
        compressed * adjoin.ones(1, 3).to_sparse_csr()
    for wrong in (
        (adjoin.ones(1, 3), adjoin.tensor([0]), (3, 3, 3)),
        (adjoin.ones(2, 3), adjoin.tensor([0, 0]), (3, 3)),
        (adjoin.ones(2, 3), adjoin.tensor([0]), (3, 3)),
        (adjoin.ones(1, 3), adjoin.tensor([0.0]), (3, 3)),
    ):
        with pytest.raises(RuntimeError, match="spdiags"):
            adjoin.sparse.spdiags(*wrong)
