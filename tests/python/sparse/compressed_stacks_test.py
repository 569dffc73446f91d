"""tests/python/sparse/compressed_stacks_test.py: stacks of compressed matrices: made, read, converted, computed with, refused; layouts of factories."""

import copy
import pickle

import adjoin
import pytest

LAYOUTS = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def dense(*lead):
    """Matrices of 4 by 6 with two rows and columns of each that are filled."""
    x = adjoin.zeros(*lead, 4, 6, dtype=adjoin.float64)
    x[..., 0, 2:4] = 1 + adjoin.arange(2.0)
    x[..., 1, 2:4] = 3 + adjoin.arange(2.0)
    x[..., 2:4, 0:2] = adjoin.arange(4.0).reshape(2, 2) - 7
    return x * (1 + adjoin.arange(float(x[..., 0, 0].numel())).reshape(*lead, 1, 1))


def stack(layout, *lead):
    """The same as a compressed stack, from the parts of its matrices."""
    blocks = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    parts = [x.to_sparse(layout=getattr(adjoin, layout), **blocks) for x in dense(*lead).reshape(-1, 4, 6)]
    first, second = ("crow", "col") if layout in ("sparse_csr", "sparse_bsr") else ("ccol", "row")
    gathered = [
        adjoin.stack([read(p) for p in parts]).unflatten(0, lead)
        for read in (
            lambda p: getattr(p, f"{first}_indices")(),
            lambda p: getattr(p, f"{second}_indices")(),
            lambda p: p.values(),
        )
    ]
    return getattr(adjoin, f"{layout}_tensor")(*gathered, (*lead, 4, 6))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lead", [(2,), (2, 3), (1, 1, 2)])
def test_read_and_converted(layout, lead):
    s, x = stack(layout, *lead), dense(*lead)
    assert str(s.layout) == f"adjoin.{layout}" and s.shape == x.shape and s.sparse_dim() == 2 and s.dense_dim() == 0
    assert adjoin.equal(s.to_dense(), x) and s.values().shape[: len(lead)] == lead
    assert s._nnz() == (2 if "bs" in layout else 8)
    coo = s.to_sparse_coo().coalesce()
    assert coo.sparse_dim() == x.dim() and adjoin.equal(coo.to_dense(), x)
    for made in (s.clone(), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.float().double()):
        assert made.layout is s.layout and adjoin.equal(made.to_dense(), x)
    assert f"layout=adjoin.{layout}" in repr(s)
    size_left_open = {"sparse_csr": (4, 4), "sparse_bsr": (4, 4), "sparse_csc": (4, 6), "sparse_bsc": (4, 6)}
    make = adjoin.sparse_compressed_tensor
    first = s.crow_indices() if layout in ("sparse_csr", "sparse_bsr") else s.ccol_indices()
    second = s.col_indices() if layout in ("sparse_csr", "sparse_bsr") else s.row_indices()
    assert make(first, second, s.values(), layout=s.layout).shape == (*lead, *size_left_open[layout])


def test_from_dense_and_between_rows_and_columns():
    x = dense(2, 3)
    for made in (x.to_sparse_csr(), x.to_sparse_csc().to_sparse_csr(), stack("sparse_csc", 2, 3).to_sparse_csr()):
        assert made.layout is adjoin.sparse_csr and made.crow_indices().shape == (2, 3, 5)
        assert adjoin.equal(made.to_dense(), x) and adjoin.equal(made.values(), stack("sparse_csr", 2, 3).values())
    x[0, 0, 3, 5] = 1
    with pytest.raises(RuntimeError, match="as many elements"):
        x.to_sparse_csr()
    y = dense(2)
    y[0, 3, 5], y[1, 0, 2] = 1, 0
    y[0, 0, 2] = 0
    y[1, 3, 4] = 2
    assert adjoin.equal(y.to_sparse_csc().to_dense(), y)
    y[0, 3, 4], y[1, 3, 4] = 1, 0
    with pytest.raises(RuntimeError, match="as many elements"):
        y.to_sparse_csr()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_computed_with(layout):
    s, x = stack(layout, 2), dense(2)
    assert adjoin.equal((s * 3).to_dense(), x * 3) and adjoin.equal(s.sum(), x.sum())
    assert adjoin.equal((s * x).to_dense(), x * x) and adjoin.equal((s * s).to_dense(), x * x)
    assert adjoin.equal((s + s).to_dense(), 2 * x) and adjoin.equal(s.relu().to_dense(), x.relu())
    assert adjoin.equal((-s).to_dense(), -x) and (s / 2).layout is s.layout and adjoin.equal(s + x, 2 * x)
    leaf = s.detach().requires_grad_()
    (leaf * 2).sum().backward()
    assert adjoin.equal(leaf.grad.to_dense()[x != 0], adjoin.full_like(x[x != 0], 2))
    for refused in (lambda: s @ adjoin.ones(2, 6, 1, dtype=x.dtype), lambda: s.sum(0), lambda: s.transpose(0, 1)):
        with pytest.raises((NotImplementedError, RuntimeError)):
            refused()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_like_another(layout):
    for s in (stack(layout, 2), stack(layout, 2, 2)):
        made = adjoin.zeros_like(s)
        assert made.layout is s.layout and made.shape == s.shape and made._nnz() == 0 and not made.to_dense().any()
        drawn = adjoin.randn_like(s)
        assert (
            drawn.layout is s.layout
            and drawn._nnz() == s._nnz()
            and drawn.to_dense()[dense(*s.shape[:-2]) == 0].abs().sum() == 0
        )
        assert (
            not adjoin.equal(drawn.values(), s.values())
            and adjoin.randn_like(s, dtype=adjoin.float32).dtype is adjoin.float32
        )
        assert adjoin.zeros_like(s, layout=adjoin.sparse_coo).layout is adjoin.sparse_coo
        other = {
            "sparse_csr": "sparse_csc",
            "sparse_csc": "sparse_csr",
            "sparse_bsr": "sparse_bsc",
            "sparse_bsc": "sparse_bsr",
        }
        turned = adjoin.zeros_like(s, layout=getattr(adjoin, other[layout]))
        assert str(turned.layout) == f"adjoin.{other[layout]}" and turned.shape == s.shape and turned._nnz() == 0


def test_one_matrix_like_another():
    s = dense().to_sparse_csr()
    assert adjoin.zeros_like(s, layout=adjoin.sparse_csc, dtype=adjoin.float32).dtype is adjoin.float32
    assert adjoin.zeros_like(s, layout=adjoin.sparse_csr, requires_grad=True).requires_grad
    assert adjoin.randn_like(s, layout=adjoin.sparse_csr).values().numel() == 8
    for wrong in (lambda: adjoin.ones(2, layout=adjoin.sparse_coo), lambda: adjoin.ones(2, layout=adjoin.jagged)):
        with pytest.raises(NotImplementedError, match="strided"):
            wrong()
    with pytest.raises(TypeError, match="layout"):
        adjoin.zeros_like(s, layout="sparse_csr")


def test_wrong_parts():
    rows, columns = adjoin.tensor([[0, 1, 2], [0, 2, 2]]), adjoin.tensor([[0, 1], [0, 1]])
    values = adjoin.ones(2, 2)
    assert adjoin.sparse_csr_tensor(rows, columns, values, (2, 2, 2)).to_dense().sum() == 4
    for parts, says in (
        ((rows, columns[:1], values), "stack"),
        ((rows, columns, values[0]), "values"),
        ((rows, columns[0], values), "one dimension"),
        ((rows + 1, columns, values), "begin with 0"),
        ((rows, columns + 1, values), "between 0"),
        ((rows, columns.flip(1), values), "rise"),
    ):
        with pytest.raises(RuntimeError, match=says):
            adjoin.sparse_csr_tensor(*parts, (2, 2, 2))
    with pytest.raises(RuntimeError, match="size"):
        adjoin.sparse_csr_tensor(rows, columns, values, (2, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_dense_stacks_convert_and_come_back(layout, lead):
    kind, x = getattr(adjoin, layout), dense(*lead)
    blocks = {"blocksize": (2, 2)}
    s = x.to_sparse(layout=kind, **(blocks if "_bs" in layout else {}))
    assert s.layout is kind and s.to_dense().equal(x)
    for other in LAYOUTS:
        made = s.to_sparse(layout=getattr(adjoin, other), **(blocks if "_bs" in other else {}))
        assert made.layout is getattr(adjoin, other) and made.to_dense().equal(x)
    empty = adjoin.zeros(0, 4, 6).to_sparse(layout=kind, **(blocks if "_bs" in layout else {}))
    assert empty.shape == (0, 4, 6) and empty.to_dense().shape == (0, 4, 6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_uneven_stacks_are_refused(layout):
    x = dense(2)
    x[1] = 0
    with pytest.raises(RuntimeError, match="as many elements each"):
        x.to_sparse(layout=getattr(adjoin, layout), **({"blocksize": (2, 2)} if "_bs" in layout else {}))


def gradients(s, f):
    """The gradient of a weighted sum of f, through a sparse tensor and through the dense one at its places."""
    p, q = s.detach().clone().requires_grad_(), s.to_dense().requires_grad_()
    weights = adjoin.arange(float(f(q).numel())).reshape(f(q).shape).double() + 1
    (f(p).to_dense() * weights).sum().backward()
    (f(q) * weights).sum().backward()
    assert p.grad.layout is s.layout
    return p.grad.to_dense(), q.grad * (s.to_dense() != 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_matrix_row_or_dense_part_is_selected(layout):
    s, x = stack(layout, 2, 3), dense(2, 3)
    assert s.select(0, 1).to_dense().equal(x[1]) and s.select(1, -1).to_dense().equal(x[:, -1])
    one = s[0, 1]
    assert one.layout is s.layout and one.select(0, 1).to_dense().equal(x[0, 1, 1])
    assert one.select(1, 2).to_dense().equal(x[0, 1, :, 2]) and s[1, 2, 0, 3].item() == x[1, 2, 0, 3]
    assert one.select(0, 1).is_coalesced() and one.select(1, 2).indices()[0].diff().gt(0).all()
    for whole, f in ((s, lambda t: t.select(0, 1)), (one, lambda t: t.select(0, 1)), (one, lambda t: t.select(1, 2))):
        ours, wanted = gradients(whole, f)
        assert ours.equal(wanted)
    with pytest.raises(NotImplementedError, match="select a matrix first"):
        s.select(2, 0)
    with pytest.raises(IndexError, match="out of range"):
        s.select(0, 2)
    blocks = {"blocksize": (2, 2)} if "_bs" in layout else {}
    parts = (x[0, 0].unsqueeze(-1) * adjoin.tensor([1.0, 2.0, 3.0]).double()).to_sparse(
        layout=s.layout, dense_dim=1, **blocks
    )
    assert parts.select(2, 1).to_dense().equal(2 * x[0, 0])
    ours, wanted = gradients(parts, lambda t: t.select(2, 1))
    assert ours.equal(wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stacks_are_copied_and_transposed(layout):
    s, x = stack(layout, 2, 3), dense(2, 3)
    assert adjoin.zeros_like(s).copy_(s).to_dense().equal(x)
    assert s.transpose(-1, -2).to_dense().equal(x.transpose(-1, -2)) and s.mT.layout is not s.layout
    assert s.transpose(0, 1).to_dense().equal(x.transpose(0, 1)) and s.transpose(0, 1).layout is s.layout
    with pytest.raises(RuntimeError, match="apart"):
        s.transpose(1, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_have_gradients_at_other_places(layout):
    s = stack(layout, 2)
    first, second = ("crow", "col") if layout in ("sparse_csr", "sparse_bsr") else ("ccol", "row")
    places = [getattr(s, f"{n}_indices")() for n in (first, second)]
    made = lambda v: getattr(adjoin, f"{layout}_tensor")(*places, v, (2, 4, 6)).to_dense(masked_grad=False)
    assert adjoin.autograd.gradcheck(made, (s.values().clone().requires_grad_(),))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_like_factories_keep_places(layout):
    s = stack(layout, 2)
    assert adjoin.ones_like(s).to_dense().equal((s.to_dense() != 0).double())
    assert adjoin.full_like(s, 3, dtype=adjoin.int32).values().tolist() == (s.values() * 0 + 3).int().tolist()
    assert adjoin.empty_like(s)._nnz() == s._nnz() and adjoin.zeros_like(s)._nnz() == 0
    t = s.clone().fill_(7)
    assert t.values().eq(7).all() and s.values().ne(7).any()
    assert s.to("meta")._nnz() == 0 and s.to("meta").shape == s.shape and s.to("meta").layout is s.layout
