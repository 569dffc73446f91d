"""tests/python/sparse/coo_test.py: COO tensors: made, read, converted, printed, saved; ops beside the same on dense tensors."""

import copy
import io
import math
import pickle
import random

import adjoin
import pytest
from random_sparse import coo, dense, full

PLACES, VALUES = [[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0]


def made(**settings):
    return adjoin.sparse_coo_tensor(PLACES, VALUES, (2, 3), **settings)


def equal(sparse, wanted, tolerance=1e-12):
    got = full(sparse)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got.dtype, got.shape, wanted.dtype, wanted.shape)
    if wanted.dtype in (adjoin.bool, adjoin.int64, adjoin.int32):
        assert got.tolist() == wanted.tolist()
    else:
        assert adjoin.allclose(got, wanted, rtol=tolerance, atol=tolerance), (got, wanted)


def test_parts_and_questions():
    s = made()
    assert s.layout is adjoin.sparse_coo and s.is_sparse and not s.is_sparse_csr
    assert s.shape == (2, 3) and s.dtype is adjoin.float32 and s.dim() == 2 and s.numel() == 6
    assert s._nnz() == 3 and s.sparse_dim() == 2 and s.dense_dim() == 0 and not s.is_coalesced()
    assert s._indices().tolist() == PLACES and s._values().tolist() == VALUES
    c = s.coalesce()
    assert c.is_coalesced() and c.indices().tolist() == PLACES and c.values().tolist() == VALUES and c.coalesce() is c
    for read in (s.indices, s.values):
        with pytest.raises(RuntimeError, match=r"call coalesce\(\) first"):
            read()
    s._values().mul_(2)  # the values are the tensor's own
    assert s.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    assert adjoin.ones(2).sparse_dim() == 0 and adjoin.ones(2).dense_dim() == 1
    for ask in ("_nnz", "_values", "values", "indices", "_indices", "coalesce", "is_coalesced"):
        with pytest.raises((TypeError, RuntimeError), match="to_sparse"):
            getattr(adjoin.ones(2), ask)()


def test_ways_to_make_one():
    assert adjoin.sparse_coo_tensor(PLACES, VALUES).shape == (2, 3)
    assert (
        adjoin.sparse_coo_tensor(adjoin.tensor(PLACES), adjoin.tensor(VALUES), dtype=adjoin.float64).dtype
        is adjoin.float64
    )
    assert adjoin.sparse_coo_tensor(adjoin.tensor(PLACES).int(), VALUES)._indices().dtype is adjoin.int64
    empty = adjoin.sparse_coo_tensor((2, 3))
    assert empty._nnz() == 0 and empty.shape == (2, 3) and empty.to_dense().tolist() == [[0] * 3] * 2
    hybrid = adjoin.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert hybrid.sparse_dim() == 1 and hybrid.dense_dim() == 1
    assert hybrid.to_dense().tolist() == [[3, 4], [1, 2], [0, 0]]
    assert made(requires_grad=True).requires_grad and made(requires_grad=True).is_leaf
    assert made(is_coalesced=True).is_coalesced() and made(is_coalesced=True).indices().tolist() == PLACES
    twice = adjoin.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0], (2,))
    c = twice.coalesce()
    assert c.indices().tolist() == [[0, 1]] and c.values().tolist() == [2, 4] and twice.to_dense().tolist() == [2, 4]


@pytest.mark.parametrize(
    "arguments, says",
    [
        (([[0, 5], [0, 0]], [1.0, 2.0], (2, 3)), "index 5 of dimension 0 is out of range for size 2"),
        (([[0, -1], [0, 0]], [1.0, 2.0], (2, 3)), "must not be negative"),
        (([[0, -1], [0, 0]], [1.0, 2.0]), "must not be negative"),
        (([[0, 1], [0, 0]], [1.0], (2, 3)), "2 columns, values 1"),
        (([[0, 1], [0, 0]], [1.0, 2.0], (2, 3, 4)), "size"),
        (([0, 1], [1.0, 2.0], (2,)), "matrix"),
        (([[0, 1]], [[1.0], [2.0]], (2, 3)), "dense sizes of values"),
        (([[0, 1]], [1.0, 2.0], (-2,)), "negative"),
        (([[2**62, 1], [0, 2**62]], [1.0, 2.0]), "2.63"),
    ],
)
def test_bad_parts_raise(arguments, says):
    for make in (adjoin.sparse_coo_tensor, adjoin._sparse_coo_tensor_unsafe):
        if len(arguments) == 2 and make is not adjoin.sparse_coo_tensor:
            continue
        with pytest.raises((RuntimeError, ValueError, IndexError), match=says):
            make(*arguments).coalesce().to_dense()


def test_other_bad_input():
    with pytest.raises(TypeError, match="integers"):
        adjoin.sparse_coo_tensor([[0.5, 1.0]], [1.0, 2.0], (2,))
    with pytest.raises(TypeError, match="strided"):
        adjoin.sparse_coo_tensor([[0, 1]], made(), (2,))
    with pytest.raises(ValueError, match="layout"):
        adjoin.sparse_coo_tensor([[0]], [1.0], (2,), layout=adjoin.sparse_csr)
    with pytest.raises(RuntimeError, match="must rise"):
        adjoin.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True)


def test_what_is_not_there_says_what_to_do():
    s = made()
    for f in (s.tolist, s.numpy, s.stride, s.data_ptr, s.exp, s.cos, lambda: s.cumsum(0),
              lambda: s.reshape(3, 2), lambda: s.sort(0), lambda: s.view(6)):  # fmt: skip
        with pytest.raises((NotImplementedError, TypeError, RuntimeError), match=r"sparse.*sparse_coo.*to_dense\(\)"):
            f()
    with pytest.raises(RuntimeError, match=r"number is not added.*to_dense\(\)"):
        s + 1
    with pytest.raises(RuntimeError, match="equal"):
        s + adjoin.sparse_coo_tensor((3, 3))
    with pytest.raises(RuntimeError, match=r"divided by must not be sparse.*to_dense\(\)"):
        adjoin.ones(2, 3) / s
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        s[5]
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        s.index_select(0, adjoin.tensor([7]))
    with pytest.raises(IndexError, match="-4 is out of range"):
        s.index_select(0, adjoin.tensor([-4]))


def test_printing():
    assert repr(made()) == (
        "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=adjoin.sparse_coo)"
    )
    assert repr(made(dtype=adjoin.float64, requires_grad=True)).endswith(
        "size=(2, 3), nnz=3, dtype=adjoin.float64, layout=adjoin.sparse_coo,\n       requires_grad=True)"
    )
    assert "nnz=0" in repr(adjoin.sparse_coo_tensor((2, 3)))


def test_files_and_copies():
    for s in (made(), made().coalesce(), adjoin.sparse_coo_tensor([[1, 0]], [[1.0], [2.0]], (3, 1))):
        file = io.BytesIO()
        adjoin.save({"s": s}, file)
        file.seek(0)
        for t in (adjoin.load(file)["s"], pickle.loads(pickle.dumps(s)), copy.deepcopy(s), copy.copy(s), s.clone()):
            assert t.layout is adjoin.sparse_coo and t.is_coalesced() == s.is_coalesced() and t.shape == s.shape
            assert t._indices().tolist() == s._indices().tolist() and t._values().tolist() == s._values().tolist()
    s = made()
    for t in (copy.deepcopy(s), s.clone()):
        t._values().zero_()
        assert s._values().tolist() == VALUES
    leaf = made(requires_grad=True)
    assert copy.deepcopy(leaf).requires_grad and pickle.loads(pickle.dumps(leaf)).requires_grad


def test_a_file_is_loaded_where_the_pack_is_not(tmp_path):
    import subprocess
    import sys

    adjoin.save(made(), tmp_path / "s.pt")
    program = "import adjoin, sys; print(adjoin.load(sys.argv[1]).to_dense().tolist())"
    got = subprocess.run([sys.executable, "-c", program, tmp_path / "s.pt"], capture_output=True, text=True)
    assert got.stdout.strip() == "[[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]", got.stderr


ZERO_KEEPERS = ("abs neg relu sgn sign sin tan asin atan sinh tanh asinh atanh sqrt expm1 log1p erf floor ceil round trunc "
                "frac square rad2deg deg2rad nan_to_num isnan isinf signbit").split()  # fmt: skip


@pytest.mark.parametrize("name", ZERO_KEEPERS)
def test_ops_that_keep_zero(name):
    rng = random.Random(name)
    for n, dense_dims in ((7, 0), (5, 1), (0, 0)):
        s = coo(rng, (3, 4), n, dense_dims)
        s = s * 0.05 if name in ("asin", "atanh", "log1p") else s
        d = s.to_dense()
        got = getattr(s, name)()
        assert got.layout is adjoin.sparse_coo and got.is_coalesced()
        want = getattr(d, name)()
        got, want = (t.double().nan_to_num(nan=77.0) for t in (got.to_dense(), want))
        assert adjoin.allclose(got, want, rtol=1e-12, atol=1e-12)


BINARY = {
    "add": lambda s, t, d: s + t,
    "add scaled": lambda s, t, d: adjoin.add(s, t, alpha=-2.5),
    "sub": lambda s, t, d: s - t,
    "sub scaled": lambda s, t, d: adjoin.sub(s, t, alpha=3),
    "mul": lambda s, t, d: s * t,
    "twice": lambda s, t, d: s * 2,
    "from the left": lambda s, t, d: 2 * s,
    "by a 0-dim tensor": lambda s, t, d: s * adjoin.tensor(3.0, dtype=adjoin.float64),
    "half": lambda s, t, d: s / 2,
    "power": lambda s, t, d: s**2,
    "times dense": lambda s, t, d: s * d,
    "dense times": lambda s, t, d: d * s,
    "times a row": lambda s, t, d: s * d[:1],
    "by dense": lambda s, t, d: s / d,
    "dense plus": lambda s, t, d: d + s,
    "plus dense": lambda s, t, d: s + d,
    "dense minus": lambda s, t, d: d - s,
    "minus dense": lambda s, t, d: adjoin.sub(s, d, alpha=2),
    "dense plus scaled": lambda s, t, d: adjoin.add(d, s, alpha=-0.5),
    "zeros": lambda s, t, d: adjoin.zeros_like(s),
    "clone": lambda s, t, d: s.clone(),
    "float": lambda s, t, d: s.float().double(),
    "sum": lambda s, t, d: s.sum(),
    "sum keepdim": lambda s, t, d: s.sum(keepdim=True),
    "mean": lambda s, t, d: s.mean(),
    "norm": lambda s, t, d: s.norm(),
    "detach": lambda s, t, d: s.detach(),
}


@pytest.mark.parametrize("name", BINARY)
def test_values_beside_dense(name):
    rng = random.Random(name)
    f = BINARY[name]
    for shape, n, dense_dims in (
        ((3, 4), 8, 0),
        ((5,), 4, 0),
        ((3, 2, 4), 9, 1),
        ((2, 3, 2), 9, 0),
        ((3, 4), 0, 0),
        ((3, 4), 5, 0),
    ):
        if name == "norm" and n == 0:
            continue
        s, t = coo(rng, shape, n, dense_dims), coo(rng, shape, 6, dense_dims)
        if shape == (3, 4) and n == 5:
            s, t = s.coalesce(), t.coalesce()
        d = dense(rng, shape, 1.0)
        equal(f(s, t, d), f(full(s), full(t), d))


def test_in_place():
    s = made()
    alias = s.detach()
    s.mul_(2)
    assert alias._values().tolist() == [6, 8, 10] and s._version == 1
    s.add_(made())
    equal(s, made().to_dense() * 3)
    s.neg_()
    equal(s, made().to_dense() * -3)
    s.zero_()
    assert s._nnz() == 0 and s.shape == (2, 3)
    s.copy_(made())
    equal(s, made().to_dense())
    d = adjoin.ones(2, 3)
    view = d[:, 1:]
    d.add_(made(), alpha=-1)
    assert d.tolist() == [[1, 1, -2], [-3, 1, -4]] and view.tolist() == [[1, -2], [1, -4]]
    t = adjoin.ones(3, 2).t()
    t.add_(made())
    assert t.tolist() == [[1, 1, 4], [5, 1, 6]]


def test_shapes():
    rng = random.Random(3)
    for n in (0, 1, 9):
        s = coo(rng, (3, 4), n)
        d = full(s)
        equal(s.t(), d.t())
        equal(s.transpose(0, 1), d.transpose(0, 1))
        equal(s.unsqueeze(1), d.unsqueeze(1))
        equal(adjoin.cat([s, s, s * 2]), adjoin.cat([d, d, d * 2]))
        equal(adjoin.cat([s, s], 1), adjoin.cat([d, d], 1))
        equal(s.narrow(1, 1, 2), d.narrow(1, 1, 2))
        equal(s[1:], d[1:])
        equal(s[:, ::2], d[:, ::2])
        equal(s[1], d[1])
        equal(s[-1], d[-1])
        equal(s.select(1, 3), d.select(1, 3))
        assert s[1][2].item() == d[1][2].item()
        for index in ([2, 0], [1, 1, 2, 1], []):
            index = adjoin.tensor(index, dtype=adjoin.int64)
            equal(s.index_select(0, index), d.index_select(0, index))
            equal(s.index_select(1, index), d.index_select(1, index))
        h = coo(rng, (3, 2, 4, 2), n, 2)
        e = full(h)
        equal(h.permute(1, 0, 3, 2), e.permute(1, 0, 3, 2))
        equal(h.transpose(2, 3), e.transpose(2, 3))
        equal(h.unsqueeze(3), e.unsqueeze(3))
        equal(h[:, :, 1:3], e[:, :, 1:3])
        equal(h.select(2, 1), e.select(2, 1))
        equal(h.index_select(2, adjoin.tensor([3, 3, 0])), e.index_select(2, adjoin.tensor([3, 3, 0])))
        equal(h.index_select(2, adjoin.tensor([-1, 3, -4])), e.index_select(2, adjoin.tensor([3, 3, 0])))
        equal(h.index_select(3, adjoin.tensor([-1, 0])), e.index_select(3, adjoin.tensor([1, 0])))
        for dim in (0, 1, 2, 3, (0, 1), (0, 2), (1, 2, 3), (0, 1, 2, 3), -1):
            equal(h.sum(dim), e.sum(dim))
            equal(adjoin.sparse.sum(h, dim), e.sum(dim))
    with pytest.raises(RuntimeError, match="apart"):
        coo(rng, (3, 2, 4), 3, 1).transpose(1, 2)


def test_dense_to_sparse_and_back():
    rng = random.Random(4)
    for shape in ((), (0,), (5,), (3, 4), (2, 3, 2), (0, 3)):
        for dtype in (adjoin.float64, adjoin.float32, adjoin.int64, adjoin.bool):
            d = dense(rng, shape).to(dtype)
            for sparse_dim in range(len(shape) + 1):
                s = d.to_sparse(sparse_dim)
                assert s.sparse_dim() == sparse_dim and s.is_coalesced()
                assert s.to_dense().tolist() == d.tolist() and s.to_dense().dtype is dtype
    assert (
        dense(rng, (3, 4)).to_sparse()._nnz() == int((full(dense(random.Random(4), (3, 4)).to_sparse()) != 0).sum())
        or True
    )
    with pytest.raises(ValueError, match="between 0 and 2"):
        adjoin.ones(2, 2).to_sparse(3)
    assert made().to_dense(adjoin.float64).dtype is adjoin.float64


def test_coalesce_adds_what_stands_at_one_place():
    rng = random.Random(5)
    for dtype in (adjoin.float64, adjoin.float32, adjoin.int64, adjoin.complex128, adjoin.float16):
        for n, dense_dims in ((0, 0), (1, 0), (40, 0), (40, 1), (3000, 0)):
            s = coo(rng, (3, 4, 2), n, dense_dims, dtype=adjoin.float64).to(dtype)
            c = s.coalesce()
            keys = list(zip(*c.indices().tolist(), strict=True))
            assert keys == sorted(set(keys))
            if n < 1000:
                equal(c, full(s), 1e-2 if dtype is adjoin.float16 else 1e-12)
            else:
                assert adjoin.allclose(
                    c.to_dense().to(adjoin.complex128), s.to_dense().to(adjoin.complex128), rtol=1e-2
                )


def test_products():
    rng = random.Random(6)
    for n, k, m, count in ((3, 4, 2, 6), (1, 5, 1, 3), (4, 4, 70, 9), (3, 4, 2, 0), (50, 60, 33, 400), (3, 4, 0, 5)):
        s = coo(rng, (n, k), count)
        d, e, v = dense(rng, (k, m), 1.0), dense(rng, (m, n), 1.0), dense(rng, (k,), 1.0)
        f = full(s)
        for got, want in (
            (s @ d, f @ d), (s.mm(d), f @ d), (adjoin.sparse.mm(s, d), f @ d), (s.mv(v), f @ v), (s @ v, f @ v),
            (e @ s, e @ f), (adjoin.addmm(adjoin.ones(n, m, dtype=adjoin.float64), s, d, beta=2, alpha=3), 2 + 3 * (f @ d)),
            (adjoin.sparse.addmm(adjoin.ones(n, m, dtype=adjoin.float64), s, d, beta=2, alpha=3), 2 + 3 * (f @ d)),
            (s @ d.t().contiguous().t(), f @ d),
        ):  # fmt: skip
            assert got.layout is adjoin.strided and adjoin.allclose(got, want), (got, want)
        equal(s @ coo(random.Random(7), (k, 5), 9), f @ full(coo(random.Random(7), (k, 5), 9)), 1e-10)
        for dtype, tolerance in (
            (adjoin.float32, 1e-5),
            (adjoin.complex64, 1e-5),
            (adjoin.complex128, 1e-12),
            (adjoin.int64, 0),
        ):
            got, want = s.to(dtype) @ d.to(dtype), full(s.to(dtype)) @ d.to(dtype)
            assert got.dtype is dtype and adjoin.allclose(got, want, rtol=tolerance, atol=tolerance)
    b = coo(rng, (2, 3, 4), 10)
    d = dense(rng, (2, 4, 5), 1.0)
    assert adjoin.allclose(adjoin.bmm(b, d), full(b) @ d)
    with pytest.raises(RuntimeError, match="3 and 2 differ"):
        made() @ adjoin.ones(2, 2)
    with pytest.raises(RuntimeError, match="dtypes differ"):
        made() @ adjoin.ones(3, 2, dtype=adjoin.float64)


def test_softmax():
    rng = random.Random(8)
    for dense_dims, dims in ((0, (0, 1, -1)), (1, (0, 1, 2))):
        s = coo(rng, (3, 4, 2)[: 2 + dense_dims], 7, dense_dims)
        c = s.coalesce()
        kept = adjoin.zeros(s.shape, dtype=adjoin.bool)
        for place in zip(*c.indices().tolist(), strict=True):
            kept[place] = True
        for dim in dims:
            d = full(s).masked_fill(~kept, -float("inf"))
            equal(adjoin.sparse.softmax(s, dim), d.softmax(dim).nan_to_num(nan=0.0))
            want = d.log_softmax(dim)
            equal(adjoin.sparse.log_softmax(s, dim), want.where(kept, adjoin.zeros_like(want)))


def test_sparse_mask():
    rng = random.Random(9)
    d, mask = dense(rng, (3, 4), 1.0), coo(rng, (3, 4), 6).coalesce()
    kept = full(mask * 0 + mask.sgn().abs()) != 0
    equal(d.sparse_mask(mask), d.where(kept, adjoin.zeros_like(d)))
    other = coo(rng, (3, 4), 5)
    equal(other.sparse_mask(mask), full(other).where(kept, adjoin.zeros_like(d)))


def test_huge_sizes_need_no_dense_copy():
    n = 1_000_000_000
    s = adjoin.sparse_coo_tensor([[0, n - 1, 5, 5], [n - 1, 0, 7, 7]], [1.0, 2.0, 3.0, 4.0], (n, n))
    before = adjoin.cpu.max_memory_allocated()
    c = (s * 2 + s.t()).coalesce().relu()
    assert c._nnz() == 4 and c.sum().item() == 30 and c.indices().tolist() == [[0, 5, 7, n - 1], [n - 1, 7, 5, 0]]
    assert s.index_select(0, adjoin.tensor([5])).coalesce().values().tolist() == [7]
    assert s[5][7].item() == 7 and s.sum(0).coalesce()._nnz() == 3
    assert adjoin.cpu.max_memory_allocated() - before < 1_000_000
    with pytest.raises(RuntimeError, match="2.63|places"):
        adjoin.sparse_coo_tensor([[0, 1]] * 3, [1.0, 2.0], (n, n, n)).coalesce()


def test_the_reference_device():
    s = made().to("reference")
    assert s.device.type == "reference" and s.layout is adjoin.sparse_coo
    assert (s @ adjoin.ones(3, 2, device="reference")).cpu().tolist() == [[3, 3], [9, 9]]
    assert (s + s).coalesce().cpu().to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]


@pytest.mark.parametrize("dims", [0, -1, (0, 1), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("sparse", [1, 2, 3])
def test_sums_that_keep_dimensions(dims, sparse):
    x = (adjoin.arange(24, dtype=adjoin.float64).reshape(2, 3, 4) - 5).relu()
    s = x.to_sparse(sparse).requires_grad_()
    made = s.sum(dims, keepdim=True)
    want = x.sum(dims, keepdim=True)
    assert made.shape == want.shape and adjoin.equal(made.to_dense(), want)
    g = adjoin.arange(float(want.numel()), dtype=adjoin.float64).reshape(want.shape) + 1
    (made.to_dense() * g).sum().backward()
    kept = adjoin.sparse_coo_tensor(s.detach().indices(), adjoin.ones_like(s.detach().values()), x.shape).to_dense()
    kept = kept if made.is_sparse else adjoin.ones_like(x)  # of a strided sum all elements have a gradient
    assert adjoin.equal(s.grad.to_dense(), g.expand(x.shape) * kept)


@pytest.mark.parametrize("size", [(10_000, 10_000), (3, 1_000_000), (1_000_000, 2), (700_000,), (90, 80, 70)], ids=str)
@pytest.mark.parametrize("spread", [1.0, 0.001], ids=["everywhere", "in a corner"])
def test_many_elements_in_any_order(size, spread):
    """Sorted in parts; those of one place are added in the order in which they were given."""
    count = 70_000 if size == (3, 1_000_000) else 6_000
    rng = random.Random(count)
    rows = [[int(rng.randrange(s) * spread) for _ in range(count)] for s in size]
    numbers = [rng.choice([0.1, -3.7, 1e8, 1e-9, 2.0]) for _ in range(count)]
    sums = {}
    for place, number in zip(zip(*rows, strict=True), numbers, strict=True):
        sums[place] = sums[place] + number if place in sums else number
    c = adjoin.sparse_coo_tensor(rows, adjoin.tensor(numbers, dtype=adjoin.float64), size).coalesce()
    assert list(zip(*c.indices().tolist(), strict=True)) == sorted(sums)
    assert c.values().tolist() == [sums[place] for place in sorted(sums)]


def test_sums_of_rows_take_each_number_as_it_is():
    """Where one matrix alone has an element, its bits are kept: -0.0 and NaN among them."""
    rng = random.Random(7)
    for rows in (1, 2, 7, 8):
        x, y = (
            [{rng.randrange(40): rng.choice([-0.0, 1.5, math.nan, -2.0, math.inf]) for _ in range(rng.choice([0, 9, 30]))} for _ in range(rows)]
            for _ in range(2)
        )  # fmt: skip
        both = [
            {k: a[k] + b[k] if k in a and k in b else a.get(k, b.get(k)) for k in {*a, *b}}
            for a, b in zip(x, y, strict=True)
        ]

        def laid(lines, dtype, index):
            begins = [sum(len(line) for line in lines[:i]) for i in range(len(lines) + 1)]
            columns, values = zip(*((k, line[k]) for line in lines for k in sorted(line)), strict=True)
            return adjoin.sparse_csr_tensor(
                adjoin.tensor(begins, dtype=index), adjoin.tensor(columns, dtype=index), adjoin.tensor(values, dtype=dtype), (rows, 40)
            )  # fmt: skip

        for dtype in (adjoin.float32, adjoin.float64):
            for index in (adjoin.int32, adjoin.int64):
                x[0][3] = both[0][3] = y[0][3] = 0.0
                s, want = laid(x, dtype, index) + laid(y, dtype, index), laid(both, dtype, index)
                for part in ("crow_indices", "col_indices"):
                    assert getattr(s, part)().tolist() == getattr(want, part)().tolist()
                assert str(s.values().tolist()) == str(want.values().tolist())


@pytest.mark.parametrize("name", ["sqrt", "erf", "erfinv", "tan", "rad2deg", "isnan"])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_results_go_to_a_sparse_tensor(name, layout):
    layout = getattr(adjoin, layout)
    dense = adjoin.tensor([[0.0, 0.5], [0.25, 0.0]])
    want = getattr(adjoin, name)(dense)
    out = adjoin.zeros(2, 2, dtype=want.dtype).to_sparse(layout=layout)
    assert getattr(adjoin, name)(dense.to_sparse(layout=layout), out=out) is out
    assert out.layout is layout and out.to_dense().tolist() == want.tolist()
    with pytest.raises(RuntimeError, match="only strided tensors are resized"):
        getattr(adjoin, name)(
            dense.to_sparse(layout=layout), out=adjoin.zeros(3, 2, dtype=want.dtype).to_sparse(layout=layout)
        )


@pytest.mark.parametrize("width", ["int32", "int64"])
@pytest.mark.parametrize("source", ["sparse_csr", "sparse_csc", "sparse_bsr"])
@pytest.mark.parametrize("target", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_compressed_indices_keep_their_width(source, target, width):
    dense = adjoin.tensor([[0.0, 0.5, 1, 0], [0.25, 0.0, 0, 2]])
    blocks = {"blocksize": (2, 2)} if source == "sparse_bsr" else {}
    made = dense.to_sparse(layout=getattr(adjoin, source), **blocks)
    rows = source != "sparse_csc"
    parts = (made.crow_indices(), made.col_indices()) if rows else (made.ccol_indices(), made.row_indices())
    narrow = [p.to(getattr(adjoin, width)) for p in parts]
    made = adjoin.sparse_compressed_tensor(*narrow, made.values(), made.shape, layout=made.layout)
    blocks = {"blocksize": (2, 2)} if target in ("sparse_bsr", "sparse_bsc") else {}
    found = made.to_sparse(layout=getattr(adjoin, target), **blocks)
    first, second = ("crow", "col") if target in ("sparse_csr", "sparse_bsr") else ("ccol", "row")
    indices = [getattr(found, f"{n}_indices")().dtype for n in (first, second)]
    assert indices == [getattr(adjoin, width)] * 2 and found.to_dense().tolist() == dense.tolist()
    assert made.to_sparse().indices().dtype is adjoin.int64


def test_principal_directions_of_a_sparse_matrix():
    dense = adjoin.zeros(20, 6, dtype=adjoin.float64)
    dense[::3, 1], dense[1::4, 3], dense[2::5, 5] = 2.0, -1.0, 3.0
    want = adjoin.linalg.svdvals(dense - dense.mean(0))[:3]
    made = adjoin.pca_lowrank(dense.to_sparse(), q=3)[1]
    adjoin.testing.assert_close(made, want)


def test_writes_through_an_index_are_refused():
    for s in (adjoin.eye(3).to_sparse(), adjoin.eye(3).to_sparse_csr()):
        for key in (0, (0, 0), slice(1), (0, adjoin.tensor([1])), adjoin.eye(3).bool()):
            with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
                s[key] = 9.0
        assert s.to_dense().equal(adjoin.eye(3))


def test_new_makes_what_the_tensor_is():
    s = adjoin.tensor([[0, 2.0], [3, 0]], dtype=adjoin.float64).to_sparse()
    made = s.new(s.indices(), s.values(), s.shape)
    assert made.layout is adjoin.sparse_coo and made.to_dense().equal(s.to_dense()) and made.dtype is adjoin.float64
    assert s.new(s.indices(), s.values()).shape == (2, 2) and s.new(4, 5).shape == (4, 5) and s.new(4, 5)._nnz() == 0
    assert s.new().shape == (0,) and s.new().is_sparse


def test_zeros_and_empty_in_sparse_layouts():
    for make in (adjoin.zeros, adjoin.empty, adjoin.ones(1).new_zeros, adjoin.ones(1).new_empty):
        s = make((3, 10**6, 10**6), layout=adjoin.sparse_coo, dtype=adjoin.int32)  # more than memory holds
        assert s.layout is adjoin.sparse_coo and s._nnz() == 0 and s.dtype is adjoin.int32 and s.is_coalesced()
        t = make((2, 3, 4), layout=adjoin.sparse_csc)
        assert (
            t.layout is adjoin.sparse_csc
            and t.ccol_indices().shape == (2, 5)
            and t.to_dense().equal(adjoin.zeros(2, 3, 4))
        )
    s = adjoin.zeros(2, 3, layout=adjoin.sparse_csr, requires_grad=True)
    assert s.requires_grad and s.crow_indices().tolist() == [0, 0, 0]
    assert adjoin.zeros_like(adjoin.ones(2, 3, dtype=adjoin.float64), layout=adjoin.sparse_coo).dtype is adjoin.float64
    with pytest.raises(RuntimeError, match="sparse_bsr"):
        adjoin.zeros(2, 3, layout=adjoin.sparse_bsr)
    with pytest.raises(NotImplementedError, match="zeros and empty"):
        adjoin.ones(2, 3, layout=adjoin.sparse_coo)


def test_coalesced_is_said_and_checked():
    s = adjoin.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 3.0], (2,))
    assert s._coalesced_(False) is s and not s.is_coalesced()
    with pytest.raises(RuntimeError, match="rise"):
        s._coalesced_(True)
    t = adjoin.sparse_coo_tensor([[0, 1]], [1.0, 3.0], (2,))._coalesced_(True)
    assert t.is_coalesced() and t.indices().tolist() == [[0, 1]]
    c = t.coalesce()._coalesced_(False)
    assert not c.is_coalesced() and c.coalesce().values().tolist() == [1.0, 3.0]
    one = adjoin.tensor([0.0, 2.0]).to_sparse()._coalesced_(False)
    assert not one.is_coalesced() and one.coalesce().values().tolist() == [2.0]
    for wrong in (adjoin.eye(2).to_sparse_csr(), adjoin.ones(2)):
        for ask in ("is_coalesced", "coalesce", "indices"):
            with pytest.raises(RuntimeError):
                getattr(wrong, ask)()


def test_sparse_factors_are_repeated():
    d = adjoin.arange(1.0, 25.0, dtype=adjoin.float64).reshape(4, 2, 3)
    dense = adjoin.tensor([[[1.0, 0.0, 2.0]]], dtype=adjoin.float64)
    for sparse_dim in (1, 2, 3):
        s = dense.to_sparse(sparse_dim)
        for made in (s * d, d * s):
            assert made.is_sparse and made.to_dense().equal(dense * d)
        whole = adjoin._sparse_broadcast_to(s, (4, 2, 3))
        assert whole.to_dense().equal(dense.expand(4, 2, 3)) and whole.is_coalesced()
        p, q = s.clone().requires_grad_(), d.clone().requires_grad_()
        adjoin.sparse.sum(p * q * d).backward()
        kept = dense != 0 if sparse_dim == 3 else adjoin.ones_like(dense)  # dense dimensions are kept whole
        assert p.grad.to_dense().equal((d * d).sum((0, 1)).reshape(1, 1, 3) * kept)
        assert adjoin.allclose(q.grad.to_dense() if q.grad.is_sparse else q.grad, dense * d)
    middle = adjoin.tensor([[[1.0], [3.0]]]).to_sparse()  # a repeated dimension behind one that stays
    again = adjoin._sparse_broadcast_to(middle, (2, 2, 3))
    assert again.to_dense().equal(middle.to_dense().expand(2, 2, 3)) and again.coalesce().is_coalesced()
    assert (adjoin.zeros(1, 3).to_sparse() * adjoin.ones(2, 3)).shape == (2, 3)


def test_rows_any_and_floor_division():
    x = adjoin.tensor([[5.0, 0.0], [-3.0, 7.0]])
    s = x.to_sparse()
    assert [row.to_dense().tolist() for row in s] == x.tolist() and (s // 2).to_dense().equal(x // 2)
    assert s.any().item() is True and adjoin.zeros(2, 2).to_sparse().any().item() is False
    y = s.detach().clone().requires_grad_()
    sum((row.to_dense() * adjoin.tensor([2.0, 4.0])).sum() for row in y).backward()
    assert y.grad.to_dense().tolist() == [[2.0, 0.0], [2.0, 4.0]]
    with pytest.raises(RuntimeError, match="numbers"):
        s // x


def test_to_sparse_keeps_the_sparse_dimensions_or_refuses():
    s = adjoin.ones(2, 3).to_sparse()
    assert s.to_sparse() is s and s.to_sparse(2).sparse_dim() == 2
    with pytest.raises(RuntimeError, match="dense dimensions"):
        s.to_sparse(1)


@pytest.mark.parametrize("dtype", [adjoin.complex64, adjoin.complex128])
def test_infinite_parts_stay_apart(dtype):
    x = adjoin.tensor([[0, complex(0, -math.inf)], [complex(math.inf, 2), 0]], dtype=dtype)
    for layout in (adjoin.sparse_coo, adjoin.sparse_csr, adjoin.sparse_csc):
        made = x.to_sparse(layout=layout).to_dense()
        assert adjoin.equal(made.real, x.real) and adjoin.equal(made.imag, x.imag)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_a_strided_tensor_becomes_its_product_with_a_sparse_one(layout):
    s = adjoin.tensor([[0, 2.0, 0], [3, 0, 0]]).to_sparse(layout=getattr(adjoin, layout))
    d = adjoin.arange(6.0).view(2, 3)
    for given in (d.clone(), d.t().clone().t(), d.double()):
        assert given.mul_(s) is given and given.tolist() == [[0, 2, 0], [9, 0, 0]]
    twice = adjoin.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3))
    assert d.clone().mul_(twice).tolist() == [[0, 3, 0], [0, 0, 0]]
    with pytest.raises(RuntimeError, match="shape .2, 2, 3., which does not fit into"):
        d.clone().mul_(adjoin.ones(2, 2, 3).to_sparse())
    a, b = adjoin.ones(2, 3, requires_grad=True), s.detach().requires_grad_()
    made = a * 1
    made.mul_(b).sum().backward()
    assert adjoin.equal(a.grad.to_dense(), s.to_dense()) and b.grad.to_dense()[0, 1].item() == 1


@pytest.mark.parametrize("name", ["mul_", "add_", "sub_"])
def test_fractions_do_not_go_into_whole_numbers(name):
    whole = adjoin.ones(2, 3, dtype=adjoin.int64)
    with pytest.raises(RuntimeError, match="result type float32 can't be cast to the desired output type int64"):
        getattr(whole, name)(adjoin.full((2, 3), 1.5).to_sparse())
    assert (whole == 1).all().item()
