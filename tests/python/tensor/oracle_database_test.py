"""tests/python/tensor/oracle_database_test.py: faults that PyTorch's op database showed, each as one small call with PyTorch's answer."""

import adjoin
import pytest
from adjoin import masked

X = adjoin.arange(6).reshape(2, 3) ** 2
SPARSE = adjoin.tensor([[1.0, 2, 0], [0, 0, 0], [3, -1, 4]]).to_sparse_csr()
H = adjoin.ones(2, 3, dtype=adjoin.bfloat16)

# (what is called, its numbers, its dtype)
VALUES = {
    "gradient: bfloat16 far from zero": (
        lambda: adjoin.gradient(adjoin.arange(500.0, 508.0, 2).bfloat16(), spacing=0.1)[0],
        [20.0, 20.0, 20.0, 20.0],
        "bfloat16",
    ),
    "gradient: spacing=None": (lambda: adjoin.gradient(X.float(), spacing=None)[1], [[1, 2, 3], [7, 8, 9]], "float32"),
    "gradient: edges of second order": (
        lambda: adjoin.gradient(adjoin.tensor([0.0, 1, 4, 9]), spacing=2.0, edge_order=2)[0],
        [0, 1, 2, 3],
        "float32",
    ),
    "unravel_index: of int16": (
        lambda: adjoin.unravel_index(adjoin.tensor([3], dtype=adjoin.int16), (2, 2))[0],
        [1],
        "int64",
    ),
    "masked.prod of numbers without dimensions": (
        lambda: masked.prod(adjoin.tensor(3, dtype=adjoin.int16)),
        3,
        "int64",
    ),
    "masked.cumsum keeps the dtype": (lambda: masked.cumsum(X.short(), 1), [[0, 1, 5], [9, 25, 50]], "int16"),
    "masked.cumprod with a dtype": (
        lambda: masked.cumprod(X.short(), 0, dtype=adjoin.int32),
        [[0, 1, 4], [0, 16, 100]],
        "int32",
    ),
    "masked.argmax in the dtype of the elements": (lambda: masked.argmax(X.short(), 0), [1, 1, 1], "int16"),
    "masked.argmin with a dtype": (lambda: masked.argmin(X.short(), 1, dtype=adjoin.int32), [0, 0], "int32"),
    "masked.var of complex numbers": (
        lambda: masked.var(adjoin.tensor([1 + 1j, 3 + 1j]), 0),
        2 + 0j,
        "complex64",
    ),
    "masked.std of complex numbers": (
        lambda: masked.std(adjoin.tensor([1 + 1j, 3 + 1j]) * 2, 0, unbiased=False),
        2 + 0j,
        "complex64",
    ),
    "masked.logsumexp of whole numbers": (
        lambda: masked.logsumexp(X.short(), 0, mask=adjoin.tensor([[True, False, True]])),
        [9, -32767, 25],
        "int16",
    ),
    "sparse.mm: means": (
        lambda: adjoin.sparse.mm(SPARSE, adjoin.ones(3, 2), "mean"),
        [[1.5, 1.5], [0, 0], [2, 2]],
        "float32",
    ),
    "sparse.mm: maxima": (
        lambda: adjoin.sparse.mm(SPARSE, adjoin.ones(3, 2), "amax"),
        [[2, 2], [0, 0], [4, 4]],
        "float32",
    ),
    "sparse.mm: minima": (
        lambda: adjoin.sparse.mm(SPARSE, adjoin.ones(3, 1), "amin"),
        [[1], [0], [-1]],
        "float32",
    ),
    "native_group_norm of nothing": (
        lambda: adjoin.native_group_norm(adjoin.ones(0, 2, 3), None, None, 0, 2, 3, 1, 1e-5)[1],
        [],
        "float32",
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_dtypes(name):
    call, wanted, dtype = VALUES[name]
    made = call()
    assert made.dtype is getattr(adjoin, dtype)
    wanted = adjoin.tensor(wanted, dtype=made.dtype).reshape(made.shape)
    adjoin.testing.assert_close(made, wanted)


def test_a_sparse_product_of_extremes_has_a_gradient():
    dense = adjoin.ones(3, 1, requires_grad=True)
    adjoin.sparse.mm(SPARSE, dense, "amax").sum().backward()
    assert dense.grad.flatten().tolist() == [0, 2, 4]


def test_results_go_into_out():
    pieces = [adjoin.empty(1, 3, dtype=adjoin.int64), adjoin.empty(1, 3, dtype=adjoin.int64)]
    assert adjoin.split_with_sizes_copy(X, [1, 1], out=pieces) is None
    assert pieces[1].tolist() == [[9, 16, 25]]
    rows = [adjoin.empty(3, dtype=adjoin.int64), adjoin.empty(3, dtype=adjoin.int64)]
    adjoin.unbind_copy(X, out=rows)
    assert rows[0].tolist() == [0, 1, 4]
    assert len(adjoin.unbind_copy(X)) == 2 and isinstance(adjoin.split_with_sizes_copy(X, [1, 1]), tuple)
    bits = adjoin.empty((), dtype=adjoin.uint64)
    assert adjoin.hash_tensor(X, out=bits) is bits and bits.item() == adjoin.hash_tensor(X).item() != 0
    parts = adjoin.empty(0), adjoin.empty(0)
    made = adjoin.linalg.polar(adjoin.eye(2) * 3, out=parts)
    assert made.H is parts[1] and parts[1].tolist() == [[3, 0], [0, 3]]
    running = adjoin.zeros(2), adjoin.ones(2)
    outs = adjoin.empty(0), adjoin.empty(0), adjoin.empty(0)
    adjoin.native_batch_norm(X.float()[:, :2], None, None, *running, True, 0.1, 1e-5, out=outs)
    assert outs[1].tolist() == [4.5, 8.5]


def test_a_hash_of_a_number_has_memory_of_its_own():
    number = adjoin.tensor(5)
    adjoin.hash_tensor(number).zero_()
    assert number.item() == 5


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: adjoin.gradient(X.byte()), NotImplementedError, "gradient: differences of uint8 wrap around"),
        (lambda: adjoin.sparse.mm(SPARSE, adjoin.ones(3, 2), "prod"), RuntimeError, "mm: reduce must be"),
        (lambda: adjoin.sparse.mm(SPARSE.to_dense(), adjoin.ones(3, 2), "sum"), RuntimeError, "mm: reduce wants"),
    ],
)
def test_what_pytorch_refuses_is_refused(call, kind, says):
    with pytest.raises(kind, match=says):
        call()
