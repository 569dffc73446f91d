"""tests/python/sparse/masked_test.py: reductions under a mask beside the same over what the mask leaves, and masked tensors."""

import copy
import math
import pickle
import random

import adjoin
import pytest
from adjoin import masked
from random_sparse import dense

REDUCTIONS = {
    "sum": lambda v: v.sum(),
    "prod": lambda v: v.prod(),
    "amax": lambda v: v.amax() if v.numel() else adjoin.tensor(-math.inf),
    "amin": lambda v: v.amin() if v.numel() else adjoin.tensor(math.inf),
    "mean": lambda v: v.mean() if v.numel() else adjoin.tensor(math.nan),
    "median": lambda v: v.median() if v.numel() else adjoin.tensor(math.nan),
    "logsumexp": lambda v: v.logsumexp(0) if v.numel() else adjoin.tensor(-math.inf),
    "norm": lambda v: v.norm(),
    "var": lambda v: v.var() if v.numel() > 1 else adjoin.tensor(math.nan),
    "std": lambda v: v.std() if v.numel() > 1 else adjoin.tensor(math.nan),
}


def samples(name):
    rng = random.Random(name)
    for shape in ((3, 4), (5, 2), (1, 7)):
        x = dense(rng, shape, 1.0) + adjoin.arange(float(shape[0] * shape[1]), dtype=adjoin.float64).reshape(shape) / 16
        m = dense(rng, shape, 0.6) != 0
        m[0] = False
        yield x, m


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_along_a_dimension(name):
    f = getattr(masked, name)
    for x, m in samples(name):
        got = f(x, dim=1, mask=m)
        want = adjoin.stack([REDUCTIONS[name](x[i][m[i]]).double() for i in range(x.shape[0])])
        assert adjoin.allclose(got, want, equal_nan=True), (name, got, want)
        kept = f(x, dim=1, keepdim=True, mask=m)
        assert kept.shape == (x.shape[0], 1) and adjoin.allclose(kept[:, 0], got, equal_nan=True)
        if name != "median":
            assert adjoin.allclose(f(x, mask=m), REDUCTIONS[name](x[m]).double(), equal_nan=True)
            assert adjoin.allclose(f(x), REDUCTIONS[name](x.flatten()).double(), equal_nan=True)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name):
    for x, m in samples(name):
        got = getattr(masked, name)(x, dim=1, mask=m)
        for i in range(1, x.shape[0]):
            if m[i].any():
                places = m[i].nonzero().flatten()
                assert got[i] == places[getattr(x[i][m[i]], name)()]


def test_scans_and_shares():
    for x, m in samples("scans"):
        zero = adjoin.zeros_like(x)
        assert adjoin.allclose(masked.cumsum(x, 1, mask=m), x.where(m, zero).cumsum(1))
        assert adjoin.allclose(masked.cumprod(x, 1, mask=m), x.where(m, zero + 1).cumprod(1))
        for i in range(1, x.shape[0]):
            if not m[i].any():
                continue
            for name, f in (("softmax", lambda v: v.softmax(0)), ("softmin", lambda v: (-v).softmax(0))):
                got = getattr(masked, name)(x, 1, mask=m)[i]
                assert adjoin.allclose(got[m[i]], f(x[i][m[i]])) and not got[~m[i]].any()
            got = masked.log_softmax(x, 1, mask=m)[i]
            assert adjoin.allclose(got[m[i]], x[i][m[i]].log_softmax(0)) and (got[~m[i]] == -math.inf).all()
            got = masked.normalize(x, 2.0, 1, mask=m)[i]
            assert adjoin.allclose(got[m[i]], x[i][m[i]] / x[i][m[i]].norm()) and not got[~m[i]].any()
        assert masked.softmax(x, 1, mask=m)[0].isnan().all()
        got = masked.logaddexp(x, x, input_mask=m)
        assert adjoin.allclose(got, x.where(~m, x + math.log(2)))


def test_gradients_stop_at_the_mask():
    x = adjoin.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    m = adjoin.tensor([[True, False, True], [True, True, False]])
    masked.mean(x, 1, mask=m).sum().backward()
    assert x.grad.tolist() == [[0.5, 0, 0.5], [0.5, 0.5, 0]]
    x.grad = None
    (masked.var(x, 1, mask=m) * adjoin.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [[-2, 0, 2], [-2, 2, 0]]
    y = adjoin.randn(3, 4, dtype=adjoin.float64, requires_grad=True)
    k = adjoin.tensor([[True, False, True, True], [True, True, False, False], [True] * 4])
    for f in (masked.logsumexp, masked.std, masked.amax, masked.prod, masked.norm):
        assert adjoin.autograd.gradcheck(lambda t, f=f: f(t, dim=1, mask=k), (y,))


def test_whole_numbers_and_masks_that_broadcast():
    x, m = adjoin.tensor([[1, 2, 3], [4, 5, 6]]), adjoin.tensor([True, False, True])
    assert masked.sum(x, 1, mask=m).tolist() == [4, 10] and masked.amax(x, 1, mask=m).tolist() == [3, 6]
    assert masked.amax(x, 1, mask=~m & False).tolist() == [-(2**63)] * 2
    assert masked.mean(x, 1, mask=m).tolist() == [2, 5]
    assert masked.sum(x, mask=m, dtype=adjoin.float32).item() == 14.0
    with pytest.raises(TypeError, match="bool"):
        masked.sum(x, mask=adjoin.ones(3))


def test_masked_tensors():
    x, k = adjoin.tensor([[1.0, 2.0], [3.0, 4.0]]), adjoin.tensor([[True, False], [True, True]])
    a = masked.masked_tensor(x, k)
    b = masked.masked_tensor(x * 10, k)
    assert isinstance(a, adjoin.Tensor) and masked.is_masked_tensor(a) and not masked.is_masked_tensor(x)
    s = adjoin.add(a, b)
    assert (
        s.get_mask().equal(k)
        and s.to_tensor(0).tolist() == [[11, 0], [33, 44]]
        and (a + b).to_tensor(0).equal(s.to_tensor(0))
    )
    assert (2 * a - 1).to_tensor(0).tolist() == [[1, 0], [5, 7]] and (-a).to_tensor(7).tolist() == [[-1, 7], [-3, -4]]
    assert (a + x).to_tensor(0).tolist() == [[2, 0], [6, 8]] and (1 / a).to_tensor(0)[1, 1] == 0.25
    assert a.exp().get_mask().equal(k) and (a > 2).to_tensor(False).tolist() == [[False, False], [True, True]]
    assert (
        adjoin.nn.functional.relu(-a).to_tensor(9).tolist() == [[0, 9], [0, 0]] and a.double().dtype is adjoin.float64
    )
    total = a.sum(1)
    assert total.to_tensor(-1).tolist() == [1, 7] and adjoin.mean(a).get_data().item() == pytest.approx(8 / 3)
    assert a.amax(0).to_tensor(0).tolist() == [3, 4] and a.argmax(1).to_tensor(-1).tolist() == [0, 1]
    assert a[1].to_tensor(0).tolist() == [3, 4] and a.transpose(0, 1).to_tensor(0).tolist() == [[1, 3], [0, 4]]
    assert adjoin.stack([a, b]).to_tensor(0)[1].tolist() == [[10, 0], [30, 40]] and a.unbind(0)[0].to_tensor(
        5
    ).tolist() == [1, 5]
    assert repr(a) == "MaskedTensor([[1.0000, --], [3.0000, 4.0000]])" == f"{a}"
    assert adjoin.softmax(a, 1).to_tensor(0)[0].tolist() == [1, 0] and a.shape == (2, 2) and a.dtype is adjoin.float32
    same = a.add_(a)
    assert same is a and a.to_tensor(0).tolist() == [[2, 0], [6, 8]] and x[0, 0] == 1  # data are copied
    back = pickle.loads(pickle.dumps(a))
    assert back.to_tensor(0).equal(a.to_tensor(0)) and copy.deepcopy(b).get_mask().equal(k)
    truths = masked.masked_tensor(adjoin.tensor([True, False, False]), adjoin.tensor([True, True, False]))
    assert not truths.all().get_data() and (~truths).to_tensor(False).tolist() == [False, True, False]


def test_masked_tensors_refuse():
    x, k = adjoin.ones(2, 2), adjoin.tensor([[True, False], [True, True]])
    a = masked.masked_tensor(x, k)
    for call in (lambda: a.matmul(a), lambda: a.max(), lambda: adjoin.sort(a)):
        with pytest.raises(TypeError, match="to_tensor"):
            call()
    for call in (lambda: a + masked.masked_tensor(x, ~k), lambda: a.mul_(masked.masked_tensor(x, ~k))):
        with pytest.raises(ValueError, match="Input masks must match"):
            call()
    with pytest.raises(ValueError, match="dim"):
        masked.masked_tensor(x, adjoin.tensor([True]))
    with pytest.raises(ValueError, match="size"):
        masked.masked_tensor(x, k[:, :1])
    for data, mask in (
        (0, k),
        (x, 0),
        (a, k),
        (x, a),
        (x, x),
        (x.to_sparse(), k),
        (x.to_sparse_csc(), k.to_sparse_csc()),
    ):
        with pytest.raises(TypeError):
            masked.masked_tensor(data, mask)
    with pytest.raises(ValueError, match="indices"):
        masked.masked_tensor(adjoin.eye(2).to_sparse(), adjoin.eye(2).flip(0).bool().to_sparse())
    with pytest.warns(UserWarning, match="not recommended"):
        masked.masked_tensor(x.clone().requires_grad_(), k)


def test_gradients_of_masked_tensors():
    x, k = adjoin.tensor([[1.0, math.nan], [3.0, 4.0]]), adjoin.tensor([[True, False], [True, True]])
    m = masked.masked_tensor(x, k, requires_grad=True)
    (m * m).sum().backward()
    assert m.is_leaf and m.grad.to_tensor(-1).tolist() == [[2, -1], [6, 8]] and m.grad.get_mask().equal(k)
    y = x.nan_to_num().requires_grad_()
    n = masked.as_masked_tensor(y, k)
    n.exp().mean(1).sum().backward()
    assert adjoin.allclose(y.grad, y.detach().exp() * k / k.sum(1, keepdim=True)) and n.grad_fn is not None
    c = x < 2
    p, q = (
        masked.masked_tensor(x, c, requires_grad=True),
        masked.masked_tensor(adjoin.ones(2, 2), ~c, requires_grad=True),
    )
    both = adjoin.where(c, adjoin.exp(p), q * 5)
    both.sum().backward()
    assert both.get_mask().all() and both.get_data()[1].tolist() == [5, 5]
    assert p.grad.to_tensor(0)[0, 0] == pytest.approx(math.e) and q.grad.to_tensor(0).tolist() == [[0, 5], [5, 5]]


@pytest.mark.parametrize("layout", [adjoin.sparse_coo, adjoin.sparse_csr])
def test_masked_tensors_of_sparse_data(layout):
    x, k = adjoin.tensor([[1.0, 2.0], [3.0, 4.0]]), adjoin.tensor([[True, False], [False, True]])
    keep = k.to_sparse(layout=layout)
    m = masked.masked_tensor(x.sparse_mask(keep), keep, requires_grad=True)
    assert m.layout is layout and m.exp().to_tensor(0).equal(x.exp() * k) and (m + m).layout is layout
    assert m.sum().get_data() == 5 and m.amax().get_data() == 4
    m.to_dense().sum().backward()
    assert m.grad.layout is layout and m.grad.to_dense().to_tensor(0).equal(k.float())
    n = masked.masked_tensor(x, k, requires_grad=True)
    made = n.to_sparse() if layout is adjoin.sparse_coo else n.to_sparse_csr()
    assert made.layout is layout and made.get_mask().to_dense().equal(k)
    (made.to_dense() * 2).sum().backward()
    assert n.grad.to_tensor(0).equal(2 * k.float())
    with pytest.raises(ValueError, match="sparse data"):
        m.is_contiguous()
    with pytest.raises(ValueError, match="as a whole"):
        m.sum(0)


def test_dimensions_that_are_not_there():
    x = adjoin.ones(2, 3)
    for name in ("sum", "amax", "mean", "var", "norm"):
        with pytest.raises(IndexError, match="out of range"):
            getattr(masked, name)(x, dim=2)
    with pytest.raises(RuntimeError, match="twice"):
        masked.sum(x, dim=(0, 1, 1))


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_a_sparse_mask_of_a_dense_tensor(layout):
    mask = adjoin.tensor([[True, False, True], [False, False, False]])
    x = adjoin.arange(6.0).reshape(2, 3)
    made = masked.sum(x, dim=1, mask=mask.to_sparse(layout=getattr(adjoin, layout)))
    assert made.tolist() == masked.sum(x, dim=1, mask=mask).tolist() == [2, 0]


def test_a_hybrid_tensor_of_which_nothing_is_kept():
    x = adjoin.zeros(2, 3, 4).to_sparse(1)
    mask = adjoin.ones(2, 3, 4, dtype=adjoin.bool).to_sparse(1)
    assert masked.sum(x, dim=2, mask=mask).to_dense().tolist() == [[0] * 3] * 2


def test_a_sparse_number_and_masks_of_other_sparse_dimensions():
    number = adjoin.tensor(3.0).to_sparse()
    for mask in (adjoin.tensor(True), adjoin.tensor(True).to_sparse()):
        assert masked.sum(number, dim=0, mask=mask).to_dense().item() == 3
    x = adjoin.arange(6.0).reshape(2, 3)
    mask = adjoin.tensor([[True, False, True], [False, True, False]])
    made = masked.sum(x.to_sparse(1), dim=1, mask=mask.to_sparse())
    assert made.to_dense().tolist() == [2, 4]


def test_where_a_result_has_a_value():
    mask = adjoin.tensor([[True, False, True], [False, False, False]])
    x = adjoin.arange(6.0).reshape(2, 3)
    assert masked._output_mask(masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert masked._output_mask(masked.norm, x, 2.0, 0, keepdim=True, mask=mask).tolist() == [[True, False, True]]
    assert masked._output_mask(masked.softmax, x, 1, mask=mask[0]).tolist() == [[True, False, True]] * 2
    assert masked._output_mask(masked.amax, x, mask=mask.to_sparse()).item() is True
    sparse = x.to_sparse_csr()
    assert masked._input_mask(sparse, mask=mask.to_sparse()).to_dense().tolist() == mask.tolist()
    with pytest.raises(ValueError, match="no mask"):
        masked._output_mask(masked.sum, x)


def test_what_stands_for_an_element_that_is_left_out():
    x = adjoin.ones(2, dtype=adjoin.int8)
    for name, wanted in (("sum", 0), ("prod", 1), ("amax", -128), ("amin", 127)):
        assert masked._reduction_identity(name, x).item() == wanted
    assert masked._reduction_identity("masked.norm", x.float(), -math.inf).item() == math.inf
    assert masked._reduction_identity("var", x.float()) is None
    with pytest.raises(NotImplementedError):
        masked._reduction_identity("sort", x)


def test_masked_tensors_take_other_names_of_ops():
    x, k = adjoin.tensor([0.1, 0.2, 0.3]), adjoin.tensor([True, False, True])
    a = masked.masked_tensor(x, k)
    for name in ("arctanh", "negative", "absolute", "deg2rad", "positive", "sgn", "angle", "fix", "arcsinh"):
        assert getattr(adjoin, name)(a).to_tensor(0).equal(getattr(adjoin, name)(x) * k), name
    assert adjoin.greater(a, 0.2).to_tensor(False).tolist() == [False, False, True]
    sparse = masked.masked_tensor(x.sparse_mask(k.to_sparse()), k.to_sparse())
    assert sparse.argmax().get_data().item() == 2  # among all places, not among those that are kept
