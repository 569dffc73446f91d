"""tests/python/sparse/compressed_test.py: CSR, CSC, BSR, BSC: made, checked, converted; ops beside the same on dense tensors."""

import copy
import io
import itertools
import pickle
import random

import adjoin
import pytest
from random_sparse import LAYOUTS, dense, full, laid

COMPRESSED = LAYOUTS[1:]


def csr(**settings):
    return adjoin.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), **settings)


def test_parts():
    s = csr()
    assert s.layout is adjoin.sparse_csr and s.is_sparse_csr and not s.is_sparse and s.shape == (2, 3) and s._nnz() == 3
    assert (
        s.crow_indices().tolist() == [0, 2, 3]
        and s.col_indices().tolist() == [0, 2, 1]
        and s.values().tolist() == [1, 2, 3]
    )
    assert s.sparse_dim() == 2 and s.dense_dim() == 0 and s.to_dense().tolist() == [[1, 0, 2], [0, 3, 0]]
    assert adjoin.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0]).shape == (2, 3)
    assert csr(dtype=adjoin.float64).dtype is adjoin.float64 and csr(requires_grad=True).is_leaf
    assert adjoin.sparse_compressed_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], layout=adjoin.sparse_csr).shape == (
        2,
        3,
    )
    c = adjoin.sparse_csc_tensor([0, 1, 2, 3], [0, 1, 0], [1.0, 3.0, 2.0], (2, 3))
    assert c.ccol_indices().tolist() == [0, 1, 2, 3] and c.row_indices().tolist() == [0, 1, 0]
    assert c.to_dense().tolist() == s.to_dense().tolist()
    b = adjoin.sparse_bsr_tensor([0, 1, 2], [1, 0], [[[1.0, 2.0]], [[3.0, 4.0]]])
    assert b.shape == (2, 4) and b.to_dense().tolist() == [[0, 0, 1, 2], [3, 4, 0, 0]]
    d = adjoin.sparse_bsc_tensor([0, 1, 2], [1, 0], [[[1.0], [2.0]], [[3.0], [4.0]]], (4, 2))
    assert d.to_dense().tolist() == [[0, 3], [0, 4], [1, 0], [2, 0]]
    with pytest.raises(NotImplementedError, match="CSC and BSC have them, the layout is sparse_csr"):
        s.ccol_indices()
    with pytest.raises(NotImplementedError, match="COO tensors have indices"):
        s.indices()
    i32 = adjoin.sparse_csr_tensor(adjoin.tensor([0, 1]).int(), adjoin.tensor([0]).int(), [1.0], (1, 1))
    assert i32.crow_indices().dtype is i32.col_indices().dtype is adjoin.int32
    hybrid = adjoin.sparse_csr_tensor([0, 1, 2], [1, 0], [[1.0, 2.0], [3.0, 4.0]], (2, 2, 2))
    assert hybrid.dense_dim() == 1 and hybrid.to_dense().tolist() == [[[0, 0], [1, 2]], [[3, 4], [0, 0]]]


@pytest.mark.parametrize(
    "crow, col, values, size, says",
    [
        ([0, 2, 3], [0, 3, 1], [1.0, 2.0, 3.0], (2, 3), "between 0 and 2"),
        ([0, 2, 3], [0, -1, 1], [1.0, 2.0, 3.0], (2, 3), "between 0 and 2"),
        ([1, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), "begin with 0"),
        ([0, 2, 4], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), "end with 3"),
        ([0, 4, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), "must not fall"),
        ([0, 2, 3], [2, 0, 1], [1.0, 2.0, 3.0], (2, 3), "must rise"),
        ([0, 2, 3], [1, 1, 1], [1.0, 2.0, 3.0], (2, 3), "each index once"),
        ([0, 2, 3], [0, 2, 1], [1.0, 2.0], (2, 3), "as many"),
        ([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (3, 3), "4 elements"),
        ([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3, 1), "dimensions"),
        ([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, -3), "negative"),
        ([[0, 2, 3]], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), "one dimension"),
        ([[0, 2, 3]], [[0, 2, 1]], [[1.0, 2.0, 3.0]], (2, 2, 3), "stack"),
    ],
)
def test_bad_parts_raise(crow, col, values, size, says):
    with pytest.raises(RuntimeError, match=says):
        adjoin.sparse_csr_tensor(crow, col, values, size)
    with pytest.raises(RuntimeError, match=says.replace("between 0 and 2", "between")):
        adjoin.sparse_csc_tensor(crow, col, values, size[::-1] if len(size) == 2 else size)


def test_other_bad_input():
    with pytest.raises(TypeError, match="integers"):
        adjoin.sparse_csr_tensor([0.0, 1.0], [0], [1.0], (1, 1))
    with pytest.raises(RuntimeError, match="blocks of 2 by 2"):
        adjoin.sparse_bsr_tensor([0, 1], [0], adjoin.ones(1, 2, 2), (3, 2))
    with pytest.raises(ValueError, match="blocksize"):
        adjoin.ones(2, 2).to_sparse(layout=adjoin.sparse_bsr)
    with pytest.raises(RuntimeError, match="do not fill"):
        adjoin.ones(3, 2).to_sparse_bsr((2, 2))
    with pytest.raises(RuntimeError, match="2 sparse dimensions"):
        adjoin.ones(3).to_sparse_csr()
    with pytest.raises(TypeError, match="layout is wanted"):
        adjoin.sparse_compressed_tensor([0], [0], [1.0])
    with pytest.raises(NotImplementedError, match=r"sparse_csr.*to_dense\(\)"):
        csr().exp()
    with pytest.raises(NotImplementedError, match=r"sparse_csr.*to_dense\(\)"):
        csr().sum(0)


@pytest.mark.parametrize("source, target", itertools.product(("strided", *LAYOUTS), LAYOUTS))
def test_conversions(source, target):
    rng = random.Random(source + target)
    for shape, density in (((4, 6), 0.3), ((2, 2), 0.0), ((6, 4), 1.0), ((0, 4), 0.5), ((4, 0), 0.5)):
        d = dense(rng, shape, density)
        s = d if source == "strided" else laid(d, source)
        t = laid(s, target)
        assert t.layout is getattr(adjoin, target) and t.shape == d.shape and t.dtype is d.dtype
        assert full(t).tolist() == d.tolist() and t.to_dense().tolist() == d.tolist()
        if target in ("sparse_bsr", "sparse_bsc"):
            assert t.values().shape[1:] == (2, 2)
        elif source not in ("sparse_bsr", "sparse_bsc"):
            assert t._nnz() == int((d != 0).sum())


def test_printing():
    assert repr(csr()) == (
        "tensor(crow_indices=tensor([0, 2, 3]),\n       col_indices=tensor([0, 2, 1]),\n       values=tensor([1., 2., 3.]), size=(2, 3), nnz=3,\n"
        "       layout=adjoin.sparse_csr)"
    )
    assert "ccol_indices=tensor([0, 2" in repr(laid(adjoin.ones(2, 2), "sparse_csc"))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_files_and_copies(layout):
    s = laid(dense(random.Random(1), (4, 4)), layout)
    file = io.BytesIO()
    adjoin.save(s, file)
    file.seek(0)
    for t in (adjoin.load(file), pickle.loads(pickle.dumps(s)), copy.deepcopy(s), s.clone()):
        assert t.layout is s.layout and full(t).tolist() == full(s).tolist() and t._nnz() == s._nnz()
        t.values().zero_()
        assert int((full(s) != 0).sum()) > 0


OPS = {
    "s + s": lambda s, t, d: s + t,
    "s - 2 t": lambda s, t, d: adjoin.sub(s, t, alpha=2),
    "s * t": lambda s, t, d: s * t,
    "s * 2": lambda s, t, d: s * 2,
    "s / 4": lambda s, t, d: s / 4,
    "s * d": lambda s, t, d: s * d,
    "d * s": lambda s, t, d: d * s,
    "d + s": lambda s, t, d: d + s,
    "s + d": lambda s, t, d: s + d,
    "t": lambda s, t, d: s.t(),
    "transpose": lambda s, t, d: s.transpose(0, 1),
    "relu": lambda s, t, d: s.relu(),
    "sin": lambda s, t, d: s.sin(),
    "sum": lambda s, t, d: s.sum(),
    "neg": lambda s, t, d: -s,
    "zeros": lambda s, t, d: adjoin.zeros_like(s),
    "float": lambda s, t, d: s.float().double(),
    "s @ d": lambda s, t, d: s @ d.t(),
    "d @ s": lambda s, t, d: d.t() @ s,
    "s @ t": lambda s, t, d: s @ t.t(),
    "mv": lambda s, t, d: s.mv(d[0]),
}


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("case", OPS)
def test_values_beside_dense(case, layout):
    rng = random.Random(case + layout)
    f = OPS[case]
    for density in (0.3, 0.0, 1.0):
        d, e, x = dense(rng, (4, 6), density), dense(rng, (4, 6), 0.4), dense(rng, (4, 6), 1.0)
        got, want = f(laid(d, layout), laid(e, layout), x), f(d, e, x)
        assert got.shape == want.shape and got.dtype is want.dtype
        assert adjoin.allclose(full(got), want, rtol=1e-12, atol=1e-12)
        if case in ("s + s", "s * t", "s * 2", "relu", "neg", "zeros", "s * d", "float"):
            assert got.layout is getattr(adjoin, layout)


def test_products_with_indices_of_32_bits_and_of_every_dtype():
    rng = random.Random(5)
    for n, k, m in ((5, 7, 1), (5, 7, 3), (40, 33, 64), (9, 8, 70), (3, 3, 0)):
        d = dense(rng, (n, k))
        for dtype, tolerance in (
            (adjoin.float64, 1e-12),
            (adjoin.float32, 1e-5),
            (adjoin.complex64, 1e-5),
            (adjoin.int64, 0),
        ):
            s = d.to_sparse_csr().to(dtype)
            t = adjoin.sparse_csr_tensor(s.crow_indices().int(), s.col_indices().int(), s.values(), s.shape)
            x = dense(rng, (k, m), 1.0).to(dtype)
            for a in (s, t):
                assert adjoin.allclose(a @ x, d.to(dtype) @ x, rtol=tolerance, atol=tolerance)
                assert adjoin.allclose(full(a + a), d.to(dtype) * 2)
            assert (t + t).col_indices().dtype is adjoin.int32


def test_sampled_addmm():
    rng = random.Random(6)
    mask = dense(rng, (5, 4))
    a, b = dense(rng, (5, 3), 1.0), dense(rng, (3, 4), 1.0)
    for layout in ("sparse_csr", "sparse_coo", "sparse_csc"):
        s = laid(mask, layout)
        want = (2 * mask + 3 * (a @ b)).where(mask != 0, adjoin.zeros_like(mask))
        assert adjoin.allclose(full(adjoin.sparse.sampled_addmm(s, a, b, beta=2, alpha=3)), want)
    base = mask.to_sparse_csr()
    values = base.values().clone().requires_grad_()
    a, b = a.requires_grad_(), b.requires_grad_()

    def f(values, a, b):
        s = adjoin.sparse_csr_tensor(base.crow_indices(), base.col_indices(), values, (5, 4))
        return adjoin.sparse.sampled_addmm(s, a, b).values()

    assert adjoin.autograd.gradcheck(f, (values, a, b)) and adjoin.autograd.gradgradcheck(f, (values, a, b))
    with pytest.raises(RuntimeError, match="must have shape"):
        adjoin.sparse.sampled_addmm(base, b.t(), b)


def test_in_place():
    s = csr()
    s.mul_(3)
    assert s.values().tolist() == [3, 6, 9]
    s.relu_()
    s.zero_()
    assert s._nnz() == 0 and s.layout is adjoin.sparse_csr and s.to_dense().tolist() == [[0] * 3] * 2
    d = adjoin.ones(2, 3)
    d.add_(csr(), alpha=2)
    assert d.tolist() == [[3, 1, 5], [1, 7, 1]]


@pytest.mark.parametrize("index", [adjoin.int64, adjoin.int32])
@pytest.mark.parametrize(
    "rows, columns, count",
    [(1, 1, 1), (3, 63, 50), (40, 65, 3000), (300, 1000, 20_000), (2, 3_000_000, 300), (50, 2_200_000, 60_000)],
)
def test_sums_of_rows(rows, columns, count, index):
    """Each column once and in order, however many columns there are and rows share."""
    adjoin.manual_seed(rows)

    def drawn():
        at = adjoin.stack([adjoin.randint(0, rows, (count,)), adjoin.randint(0, columns, (count,))])
        s = adjoin.sparse_coo_tensor(at, adjoin.randn(count), (rows, columns)).coalesce().to_sparse_csr()
        parts = s.crow_indices().to(index), s.col_indices().to(index), s.values()
        return adjoin.sparse_csr_tensor(*parts, (rows, columns)), s.to_sparse_coo()

    (a, of_a), (b, of_b) = drawn(), drawn()
    for x, y, of_x, of_y in ((a, b, of_a, of_b), (a, a * 2, of_a, of_a * 2), (b, a * 0, of_b, of_a * 0)):
        made, want = x + y, (of_x + of_y).coalesce()
        assert made.col_indices().dtype == index
        found = made.to_sparse_coo().coalesce()
        assert adjoin.equal(found.indices(), want.indices()) and adjoin.equal(found.values(), want.values())
        assert made.col_indices().numel() == want.indices().shape[1]
        adjoin.sparse_csr_tensor(
            made.crow_indices(), made.col_indices(), made.values(), made.shape, check_invariants=True
        )


def test_sums_of_rows_that_do_not_rise():
    """Columns may be written after they were checked: what they are then is counted as it is written, and nothing beside it is."""
    for columns in ([2, 1, 1], [1, 1, 1], [0, 900, 0], [-5, 0, 1], [1 << 40, 0, 1]):
        a = adjoin.sparse_csr_tensor([0, 3, 5], [0, 1, 2, 0, 2], [1.0, 2, 3, 4, 5], (2, 3))
        b = adjoin.sparse_csr_tensor([0, 2, 3], [1, 2, 1], [10.0, 20, 30], (2, 3))
        a.col_indices()[:3] = adjoin.tensor(columns)
        for made in (a + b, b + a):
            assert made.values().numel() == made.col_indices().numel() == made.crow_indices()[-1]
            assert made.values().sum() == 75.0


def test_spdiags():
    diagonals, offsets = adjoin.arange(1.0, 10.0).reshape(3, 3), adjoin.tensor([0, -1, 2])
    s = adjoin.sparse.spdiags(diagonals, offsets, (3, 3))
    assert s.layout is adjoin.sparse_coo and s.to_dense().tolist() == [[1, 0, 9], [4, 2, 0], [0, 5, 3]]
    wide = adjoin.sparse.spdiags(diagonals, offsets, (3, 5), layout=adjoin.sparse_csr)
    assert wide.layout is adjoin.sparse_csr and wide.to_dense().tolist() == [
        [1, 0, 9, 0, 0],
        [4, 2, 0, 0, 0],
        [0, 5, 3, 0, 0],
    ]
    leaf = diagonals.clone().requires_grad_()
    adjoin.sparse.spdiags(leaf, offsets, (3, 3)).to_dense().sum().backward()
    assert leaf.grad.tolist() == [[1, 1, 1], [1, 1, 0], [0, 0, 1]]
    with pytest.raises(RuntimeError, match="once"):
        adjoin.sparse.spdiags(diagonals, adjoin.tensor([0, 0, 1]), (3, 3))


def test_equal():
    d = dense(random.Random(3), (4, 4))
    for layout in LAYOUTS:
        s = laid(d, layout)
        assert adjoin.equal(s, s.clone()) and not adjoin.equal(s, s * 2)
        assert not adjoin.equal(s, laid(adjoin.zeros(2, 2, dtype=d.dtype), layout))


@pytest.mark.parametrize("dim", [0, 1, -1, (0, 1)])
def test_sums_of_csr_along_dimensions(dim):
    d = adjoin.tensor([[1.0, 0, 2], [0, 0, 0], [0, 4, 3]])
    s = d.to_sparse_csr().requires_grad_()
    made = s.sum(dim, keepdim=True)
    assert made.layout is adjoin.sparse_csr and adjoin.equal(made.to_dense(), d.sum(dim, keepdim=True))
    assert s.sum(dim, keepdim=True, dtype=adjoin.float64).dtype is adjoin.float64
    weights = adjoin.arange(1.0, made.numel() + 1).reshape(made.shape)
    (made.to_dense() * weights).sum().backward()
    assert s.grad.layout is adjoin.sparse_csr
    assert adjoin.equal(s.grad.to_dense(), weights.expand(3, 3) * (d != 0))
    for other in (s, d.to_sparse_csc()):
        with pytest.raises(NotImplementedError, match="keepdim=True.*to_dense"):
            other.sum(dim)
