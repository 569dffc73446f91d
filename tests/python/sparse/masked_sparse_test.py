"""tests/python/sparse/masked_sparse_test.py: reductions of sparse tensors under a mask beside loops over the elements that it names."""

import itertools
import math

import adjoin
import pytest
from adjoin import masked

FOLD = {"sum": sum, "prod": math.prod, "amax": max, "amin": min, "mean": lambda v: sum(v) / len(v)}


def numbers(shape, seed):
    """A tensor with many zeros, and a mask."""
    adjoin.manual_seed(seed)
    x = adjoin.randn(shape, dtype=adjoin.float64)
    return x * (adjoin.rand(shape) < 0.5), adjoin.rand(shape) < 0.6


def by_hand(name, x, mask, dims):
    """{place of the result, reduced dimensions 0: number}, of the places where the mask names something."""
    groups = {}
    for place in itertools.product(*map(range, x.shape)):
        if mask[place]:
            groups.setdefault(tuple(0 if d in dims else i for d, i in enumerate(place)), []).append(x[place].item())
    return {place: FOLD[name](values) for place, values in groups.items()}


def check(made, want):
    """A kept result holds these numbers at these places, and nothing else."""
    made = made.to_sparse_coo().coalesce()
    places = [tuple(p) for p in made.indices().t().tolist()]
    assert dict(zip(places, made.values().tolist(), strict=True)) == pytest.approx(want)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_coo(name, dims):
    x, mask = numbers((3, 4, 5), 3)
    mask[1] = False
    want = by_hand(name, x, mask, dims)
    for given in (mask, mask.to_sparse()):
        made = getattr(masked, name)(x.to_sparse(), dims, keepdim=True, mask=given)
        assert made.layout is adjoin.sparse_coo and made.shape == tuple(
            1 if d in dims else n for d, n in enumerate(x.shape)
        )
        check(made, want)
        less = getattr(masked, name)(x.to_sparse(), dims, mask=given)
        assert less.shape == tuple(n for d, n in enumerate(x.shape) if d not in dims)
        check(less, {tuple(i for d, i in enumerate(p) if d not in dims): v for p, v in want.items()})


@pytest.mark.parametrize("name", FOLD)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_csr(name, dims):
    x, mask = numbers((4, 6), 5)
    for given in (mask, mask.to_sparse_csr()):
        made = getattr(masked, name)(x.to_sparse_csr(), dims, keepdim=True, mask=given)
        assert made.layout is adjoin.sparse_csr
        check(made, by_hand(name, x, mask, dims))


def test_a_mask_is_spread():
    x, _ = numbers((3, 4), 7)
    for row in (adjoin.tensor([True, False, True, True]), adjoin.tensor([[True], [False], [True]])):
        want = by_hand("amax", x, row.expand(3, 4), (1,))
        for given in (row, row.to_sparse()):
            check(masked.amax(x.to_sparse(), 1, keepdim=True, mask=given), want)
    with pytest.raises(RuntimeError, match="not spread"):
        masked.sum(x.to_sparse(), mask=adjoin.ones(3, 5, dtype=adjoin.bool).to_sparse())


@pytest.mark.parametrize("name", ["sum", "prod", "amax"])
def test_dense_dimensions(name):
    x, mask = numbers((4, 3, 2), 9)
    s = x.to_sparse(1)
    made = getattr(masked, name)(s, 0, keepdim=True, mask=mask)
    full = getattr(masked, name)(x, 0, keepdim=True, mask=mask)
    assert made.sparse_dim() == 1 and adjoin.allclose(made.to_dense(), full)
    inner = getattr(masked, name)(s, (1,), mask=mask)
    at = inner.coalesce().indices()[0]
    assert adjoin.allclose(inner.coalesce().values(), getattr(masked, name)(x, (1,), mask=mask)[at])


def test_without_a_mask():
    x, _ = numbers((3, 4), 11)
    assert adjoin.allclose(masked.sum(x.to_sparse(), 0).to_dense(), x.sum(0))
    assert masked.sum(x.to_sparse().to(adjoin.int32)).dtype is adjoin.int64
    nothing = adjoin.zeros(3, 4).to_sparse()
    assert masked.sum(nothing, 1)._nnz() == 0 and masked.sum(nothing)._nnz() == 0
    for name in ("prod", "amax", "amin"):
        with pytest.raises(ValueError, match="mask"):
            getattr(masked, name)(x.to_sparse(), 0)
    with pytest.raises(ValueError, match="keepdim"):
        masked.sum(x.to_sparse_csr(), 0)
    for wrong in (x.to_sparse(), x.to_sparse_csc()):
        with pytest.raises(ValueError, match="CSR"):
            masked.mean(wrong, 0, mask=x > 0)


def test_gradients():
    x, mask = numbers((3, 4), 13)
    s = x.to_sparse().requires_grad_()
    masked.sum(s * s, 1, mask=mask).to_dense().sum().backward()
    assert adjoin.allclose(s.grad.to_dense(), 2 * x * mask)


@pytest.mark.parametrize("name", ["prod", "amax", "amin"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_nothing_under_the_mask_of_all_dimensions_gives_the_identity(name, keepdim):
    x, _ = numbers((3, 4), 11)
    none = adjoin.zeros(3, 4, dtype=adjoin.bool)
    want = {"prod": 1.0, "amax": -math.inf, "amin": math.inf}[name]
    for given, dims in ((none, ()), (none.to_sparse(), (0, 1)), (none.to_sparse(), (-1, 0))):
        made = getattr(masked, name)(x.to_sparse(), dims, keepdim=keepdim, mask=given)
        assert made._nnz() == 1 and made.to_dense().tolist() == ([[want]] if keepdim else want)
    rows = getattr(masked, name)(x.to_sparse(1), 0, keepdim=keepdim, mask=none)
    assert rows.to_dense().tolist() == ([[want] * 4] if keepdim else [want] * 4)
    part = getattr(masked, name)(x.to_sparse(), 0, keepdim=keepdim, mask=none)  # places that lack a value are no places
    assert part._nnz() == 0
