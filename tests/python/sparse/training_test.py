"""tests/python/sparse/training_test.py: sparse gradients of tables, and optimizers that take them."""

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import functional as F


def test_the_gradient_of_an_embedding():
    w = adjoin.arange(8.0).reshape(4, 2).requires_grad_()
    index = adjoin.tensor([[1, 3], [1, 0]])
    g = adjoin.arange(8.0).reshape(2, 2, 2)
    F.embedding(index, w, sparse=True).backward(g)
    assert w.grad.layout is adjoin.sparse_coo and not w.grad.is_coalesced() and w.grad._nnz() == 4
    v = w.detach().requires_grad_()
    F.embedding(index, v).backward(g)
    assert w.grad.to_dense().tolist() == v.grad.tolist()
    F.embedding(index, w, sparse=True).backward(g)  # twice: joined
    assert w.grad.layout is adjoin.sparse_coo and w.grad.to_dense().tolist() == (v.grad * 2).tolist()
    (w * 3).sum().backward()  # plus a strided one
    assert w.grad.layout is adjoin.strided and w.grad.tolist() == (v.grad * 2 + 3).tolist()


def test_padding_and_modules():
    table = nn.Embedding(5, 2, padding_idx=1, sparse=True)
    table(adjoin.tensor([1, 2, 2])).sum().backward()
    g = table.weight.grad
    assert g.layout is adjoin.sparse_coo and g._nnz() == 2
    assert g.to_dense().tolist() == [[0, 0], [0, 0], [2, 2], [0, 0], [0, 0]]
    with adjoin.no_grad():
        assert not table(adjoin.tensor([0])).requires_grad
    assert F.embedding(adjoin.tensor([2]), table.weight.detach(), sparse=True).tolist() == table.weight[2:3].tolist()


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags(mode, weighted):
    if weighted and mode != "sum":
        return
    adjoin.manual_seed(1)
    w = adjoin.randn(6, 3)
    index, offsets = adjoin.tensor([1, 2, 4, 5, 4, 3]), adjoin.tensor([0, 2, 2, 5])
    scale = adjoin.rand(6).requires_grad_() if weighted else None
    grads = []
    for sparse in (True, False):
        t = w.clone().requires_grad_()
        out = F.embedding_bag(index, t, offsets, mode=mode, sparse=sparse, per_sample_weights=scale)
        (out * adjoin.arange(12.0).reshape(4, 3)).sum().backward()
        grads.append(t.grad)
    assert grads[0].layout is adjoin.sparse_coo and grads[1].layout is adjoin.strided
    assert adjoin.allclose(grads[0].to_dense(), grads[1])
    bag = nn.EmbeddingBag(6, 3, mode=mode, sparse=True, padding_idx=2)
    bag(index, offsets).sum().backward()
    assert bag.weight.grad.layout is adjoin.sparse_coo and 2 not in bag.weight.grad._indices()[0].tolist()
    with pytest.raises(RuntimeError, match="not with 'max'"):
        F.embedding_bag(index, w.requires_grad_(), offsets, mode="max", sparse=True)


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}, {"maximize": True}, {"momentum": 0.9, "nesterov": True}])
def test_sgd(settings):
    """Steps with sparse gradients are those with dense ones."""
    adjoin.manual_seed(0)
    start = adjoin.randn(6, 3)
    ends = []
    for sparse in (True, False):
        w = start.clone().requires_grad_()
        optimizer = adjoin.optim.SGD([w], lr=0.1, **settings)
        for step in range(4):
            optimizer.zero_grad()
            (F.embedding(adjoin.tensor([step, 5, step + 1]), w, sparse=sparse) ** 2).sum().backward()
            assert w.grad.layout is (adjoin.sparse_coo if sparse else adjoin.strided)
            optimizer.step()
        ends.append(w.detach())
    assert adjoin.allclose(*ends, rtol=1e-5, atol=1e-6)


def test_sparse_adam():
    """Beside Adam by hand, which moves the rows that a step names."""
    adjoin.manual_seed(0)
    w = adjoin.randn(5, 2).requires_grad_()
    v = w.detach().clone()
    m, s = adjoin.zeros(5, 2), adjoin.zeros(5, 2)
    optimizer = adjoin.optim.SparseAdam([w], lr=0.1, betas=(0.8, 0.9), eps=1e-6)
    for step, rows in enumerate(([0, 3, 0], [3, 1], [4], [0, 1, 2]), 1):
        optimizer.zero_grad()
        (F.embedding(adjoin.tensor(rows), w, sparse=True) ** 2).sum().backward()
        optimizer.step()
        for row in set(rows):
            g = 2 * v[row] * rows.count(row)
            m[row] = 0.8 * m[row] + 0.2 * g
            s[row] = 0.9 * s[row] + 0.1 * g * g
            v[row] = v[row] - 0.1 * (1 - 0.9**step) ** 0.5 / (1 - 0.8**step) * m[row] / (s[row].sqrt() + 1e-6)
        assert adjoin.allclose(w.detach(), v, rtol=1e-4, atol=1e-6), step
    state = optimizer.state_dict()
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"} and state["state"][0]["step"] == 4
    w.grad = adjoin.ones(5, 2)
    with pytest.raises(RuntimeError, match="use Adam"):
        optimizer.step()
    with pytest.raises(ValueError, match="strided"):
        adjoin.optim.SparseAdam([adjoin.eye(2).to_sparse().requires_grad_()])


def test_optimizers_that_have_no_sparse_step_say_so():
    w = adjoin.randn(4, 2).requires_grad_()
    F.embedding(adjoin.tensor([1]), w, sparse=True).sum().backward()
    before = w.detach().clone()
    with pytest.raises((NotImplementedError, RuntimeError), match="sparse"):
        adjoin.optim.Adam([w]).step()
    assert w.tolist() == before.tolist()


def test_a_large_table_takes_no_dense_gradient():
    rows = 200_000
    w = adjoin.zeros(rows, 16).requires_grad_()
    optimizer = adjoin.optim.SGD([w], lr=1.0)
    adjoin.cpu.reset_peak_memory_stats()
    before = adjoin.cpu.memory_allocated()
    for step in range(3):
        optimizer.zero_grad()
        (F.embedding(adjoin.tensor([5, rows - 1]), w, sparse=True) + step).sum().backward()
        optimizer.step()
    assert w[5].tolist() == [-3.0] * 16 and w[6].tolist() == [0.0] * 16
    assert adjoin.cpu.max_memory_allocated() - before < 1_000_000
    assert w.grad.layout is adjoin.sparse_coo


def test_a_linear_model_over_sparse_rows_trains():
    adjoin.manual_seed(0)
    rows, columns, n = 400, 50_000, 4000
    places = adjoin.stack([adjoin.randint(0, rows, (n,)), adjoin.randint(0, columns, (n,))])
    x = adjoin.sparse_coo_tensor(places, adjoin.randn(n), (rows, columns))  # dense: 80 MB
    target = adjoin.randn(rows, 1)
    for layout in (adjoin.sparse_coo, adjoin.sparse_csr):
        s = x.coalesce().to_sparse(layout=layout)
        w = adjoin.zeros(columns, 1, requires_grad=True)
        optimizer = adjoin.optim.SGD([w], lr=0.05)
        adjoin.cpu.reset_peak_memory_stats()
        before = adjoin.cpu.memory_allocated()
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = ((s @ w - target) ** 2).mean() * rows / 20
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 5
        assert adjoin.cpu.max_memory_allocated() - before < 4_000_000
