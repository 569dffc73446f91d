"""tests/python/tensor/oracle_database_test.py: faults that PyTorch's op database showed, each as one small call with PyTorch's answer."""

import adjoin
import adjoin.nn.functional as F
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
    "sum_to_size of whole numbers": (lambda: X.short().sum_to_size(1, 3), [[9, 17, 29]], "int64"),
    "norm: nuclear": (lambda: adjoin.norm(adjoin.tensor([[3.0, 0], [0, -4]]), "nuc"), 7, "float32"),
    "norm: nuclear of a stack": (
        lambda: adjoin.eye(2).expand(3, 2, 2).norm("nuc", dim=(1, 2), keepdim=True),
        [[[2]], [[2]], [[2]]],
        "float32",
    ),
    "view_as_complex: halves": (lambda: adjoin.view_as_complex(adjoin.ones(2, 2).half()).real, [1, 1], "float16"),
    "complex: halves": (lambda: adjoin.complex(H[0].half(), H[1].half()).imag, [1, 1, 1], "float16"),
    "ldexp: a complex exponent": (
        lambda: adjoin.ldexp(adjoin.tensor([3.0]), adjoin.tensor([1 + 0j])),
        [6],
        "complex64",
    ),
    "matrix_exp of halves": (
        lambda: adjoin.linalg.matrix_exp(adjoin.zeros(2, 2, dtype=adjoin.bfloat16)),
        [[1, 0], [0, 1]],
        "bfloat16",
    ),
    "linalg.vander of a number": (lambda: adjoin.linalg.vander(adjoin.tensor(2.0), N=3), [[1, 2, 4]], "float32"),
    "avg_pool1d of whole numbers": (lambda: F.avg_pool1d(adjoin.arange(4).reshape(1, 4), 2), [[0, 2]], "int64"),
    "avg_pool2d of whole numbers": (
        lambda: F.avg_pool2d(-adjoin.arange(16).reshape(1, 4, 4), 2),
        [[[-2, -4], [-10, -12]]],
        "int64",
    ),
    "avg_pool3d of whole numbers": (
        lambda: F.avg_pool3d(-adjoin.arange(16).reshape(1, 1, 4, 4), (1, 2, 2)),
        [[[[-2, -4], [-10, -12]]]],
        "int64",
    ),
    "avg_pool2d: no stride": (lambda: F.avg_pool2d(adjoin.ones(1, 4, 4), 2, stride=()), [[[1, 1], [1, 1]]], "float32"),
    "local_response_norm of whole numbers": (
        lambda: F.local_response_norm(adjoin.arange(18).reshape(1, 3, 6), 2)[0, 2].round(decimals=2),
        [11.92, 12.89, 13.87, 14.83, 15.79, 16.74],
        "float32",
    ),
    "interpolate: bytes round halves up, dimension by dimension": (
        lambda: F.interpolate(adjoin.tensor([[[[1, 4], [4, 6]]]], dtype=adjoin.uint8), scale_factor=2, mode="bilinear")[
            0, 0
        ],
        [[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6], [4, 5, 6, 6]],
        "uint8",
    ),
    "gather: no places at all": (lambda: adjoin.gather(X[0], 0, adjoin.empty(0, dtype=adjoin.uint8)), [], "int64"),
    "multi_margin_loss of a number": (lambda: F.multi_margin_loss(adjoin.tensor(2.0), adjoin.tensor(0)), 0, "float32"),
    "multilabel_margin_loss of a number": (
        lambda: F.multilabel_margin_loss(adjoin.tensor(2.0), adjoin.tensor(0), reduction="none"),
        0,
        "float32",
    ),
    "a shifted place of unsigned numbers may be below 0": (
        lambda: adjoin.special.shifted_chebyshev_polynomial_t(adjoin.tensor([0, 1], dtype=adjoin.uint16), 3),
        [-1, 1],
        "float32",
    ),
    "an order above -1 counts as 0": (
        lambda: adjoin.special.chebyshev_polynomial_t(adjoin.tensor([2.0, 2.0]), adjoin.tensor([-0.3, -1.0])),
        [1, 0],
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


INF = float("inf")
LOGADDEXP = {  # (one, other): their logaddexp; the larger real part leads, and its angle goes on past pi
    (1 + 10j, 0j): 0.67109 + 10.28183j,
    (5 + 3j, 5 + (3 + 3.14159) * 1j): -7.83955 + 4.5708j,
    (1 + 4j, 1 + 4j): 1.693147 + 4j,
    (700 + 1j, 800 + 2j): 800 + 2j,
    (complex(-INF, 0), 1 + 3j): 1 + 3j,
    (complex(INF, 2), complex(-INF, 2)): complex(INF, 2),
}


@pytest.mark.parametrize("dtype", [adjoin.complex128, adjoin.complex64])
def test_logaddexp_of_complex_numbers(dtype):
    for pair, wanted in LOGADDEXP.items():
        if dtype is adjoin.complex64 and wanted.real < 0:
            continue  # the sum of numbers that cancel is what rounding left
        one, other = (adjoin.tensor(x, dtype=dtype) for x in pair)
        for made in (adjoin.logaddexp(one, other), adjoin.logaddexp(other, one)):
            adjoin.testing.assert_close(made, adjoin.tensor(wanted, dtype=dtype), rtol=1e-4, atol=1e-4)
    none = adjoin.tensor(complex(-INF, 0), dtype=dtype)
    assert adjoin.logaddexp(none, none).real.item() == -INF
    sums = adjoin.logcumsumexp(adjoin.tensor([1 + 10j, 0j], dtype=dtype), 0)
    adjoin.testing.assert_close(sums[1], adjoin.tensor(0.67109 + 10.28183j, dtype=dtype), rtol=1e-4, atol=1e-4)


def test_logaddexp_of_complex_numbers_has_derivatives():
    x, y = (adjoin.randn(5, dtype=adjoin.complex128, requires_grad=True) for _ in range(2))
    assert adjoin.autograd.gradcheck(adjoin.logaddexp, (x, y), check_forward_ad=True)
    assert adjoin.autograd.gradgradcheck(adjoin.logaddexp, (x, y))


@pytest.mark.parametrize("dtype", [adjoin.complex64, adjoin.complex128])
def test_slopes_of_sums_of_exponentials_that_are_far_apart(dtype):
    """The larger one takes the whole gradient; exp() of the distance the other way round is no number."""
    x = adjoin.tensor([1e4 + 1j, 0.5 - 2j, -1e4 + 3j], dtype=dtype, requires_grad=True)
    for one, other, wanted in ((0, 1, [1, 0, 0]), (1, 0, [1, 0, 0]), (2, 1, [0, 1, 0]), (1, 2, [0, 1, 0])):
        adjoin.testing.assert_close(
            adjoin.autograd.grad(adjoin.logaddexp(x[one], x[other]), x, adjoin.ones((), dtype=dtype))[0],
            adjoin.tensor(wanted, dtype=dtype),
        )
    sums, weights = adjoin.logcumsumexp(x, 0), adjoin.tensor([1, 2, 4 + 1j], dtype=dtype)
    assert adjoin.autograd.grad(sums, x, weights)[0].equal(adjoin.tensor([7 + 1j, 0, 0], dtype=dtype))


def test_masks_are_bool():
    x, mask = adjoin.arange(4.0), adjoin.tensor([1, 0, 2, 0], dtype=adjoin.uint8)
    for wrong in (
        lambda: x.masked_fill(mask, 9),
        lambda: x.masked_fill_(mask, adjoin.tensor(9.0)),
        lambda: x.masked_select(mask),
        lambda: adjoin.masked_select(x, mask, out=adjoin.empty(0)),
        lambda: x.masked_scatter_(mask, x),
    ):
        with pytest.raises(RuntimeError, match="'mask' is uint8; it must be bool"):
            wrong()
    assert x.tolist() == [0, 1, 2, 3] and adjoin.where(mask, x, -1).tolist() == [0, -1, 2, -1]
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert x[mask].tolist() == [0, 2]
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        x[mask] = adjoin.tensor([5.0, 6.0])
    assert x.tolist() == [5, 1, 6, 3]


def test_a_hash_of_a_number_has_memory_of_its_own():
    number = adjoin.tensor(5)
    adjoin.hash_tensor(number).zero_()
    assert number.item() == 5


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: adjoin.gradient(X.byte()), NotImplementedError, "gradient: differences of uint8 wrap around"),
        (lambda: adjoin.cat([], 1), ValueError, "cat: no tensors are given"),
        (lambda: adjoin.vstack([]), RuntimeError, "vstack: no tensors are given"),
        (lambda: adjoin.narrow(X, 0, adjoin.tensor([1]), 1), RuntimeError, "'start' must be int"),
        (lambda: adjoin.narrow(X, 0, adjoin.tensor(True), 1), RuntimeError, "'start' must be int"),
        (lambda: adjoin.linspace(adjoin.tensor([1.0]), 2, 3), RuntimeError, "'start' must be number"),
        (lambda: adjoin.linspace(adjoin.tensor([1.0]), 2, 3), TypeError, "'start' must be number"),
        (
            lambda: adjoin.amax(H, 0, out=adjoin.empty(0)),
            RuntimeError,
            "amax: the result is bfloat16, and so must out be",
        ),
        (lambda: adjoin.gather(X, 0, X[:0], out=adjoin.empty(0)), RuntimeError, "gather: the result is int64"),
        (
            lambda: adjoin.complex(H.float(), X),
            RuntimeError,
            "complex: Expected both inputs to be Half, Float or Double tensors but got Float and Long",
        ),
        (lambda: adjoin.fft.fft(adjoin.tensor(1.0)), IndexError, "fft: a number has no dimension"),
        (
            lambda: F.adaptive_avg_pool2d(H, (2, 2)),
            ValueError,
            "adaptive_avg_pool2d: input must have 3 or 4 dimensions",
        ),
        (lambda: F.adaptive_max_pool3d(H[None], (2, 2, 2)), ValueError, "input must have 4 or 5 dimensions"),
        (lambda: F.adaptive_avg_pool2d(H, 2), RuntimeError, "adaptive_avg_pool2d: input must have 3 or 4 dimensions"),
        (
            lambda: F.conv1d(X[None], X[None, :, :2], H[0].float()),
            RuntimeError,
            "conv1d: input is int64, bias is float32",
        ),
        (lambda: F.multi_margin_loss(H, H[0], reduction="abc"), ValueError, "multi_margin_loss: reduction must be"),
        (lambda: F.multi_margin_loss(H, H[0], weight=H), ValueError, "multi_margin_loss: weight must be a vector"),
        (
            lambda: F.gaussian_nll_loss(H, H, H[:, :2]),
            ValueError,
            "gaussian_nll_loss: var is of incorrect size",
        ),
        (lambda: adjoin.sparse.mm(SPARSE, adjoin.ones(3, 2), "prod"), RuntimeError, "mm: reduce must be"),
        (lambda: adjoin.sparse.mm(SPARSE.to_dense(), adjoin.ones(3, 2), "sum"), RuntimeError, "mm: reduce wants"),
    ],
)
def test_what_pytorch_refuses_is_refused(call, kind, says):
    with pytest.raises(kind, match=says):
        call()


def test_complex_numbers_are_drawn_in_both_parts():
    drawn = adjoin.rand_like(adjoin.zeros(100, dtype=adjoin.complex64))
    assert 0.3 < drawn.real.mean() < 0.7 and 0.3 < drawn.imag.mean() < 0.7
    assert (adjoin.zeros(9, dtype=adjoin.complex128).uniform_(1, 2).imag >= 1).all()


def test_pixels_that_stay_are_copied():
    image = adjoin.ones(1, 4, 2, 2)
    F.pixel_shuffle(image, 1).zero_()
    F.pixel_unshuffle(image, 1).zero_()
    assert image.sum() == 16
    number = adjoin.tensor(2.0)
    number.sum_to_size(()).zero_()
    assert number == 2


def test_an_op_whose_derivative_is_zero_has_no_tangent():
    with adjoin.autograd.forward_ad.dual_level():
        x = adjoin.autograd.forward_ad.make_dual(adjoin.ones(2), adjoin.tensor([2.0, 3.0]))
        moved = adjoin.nextafter(x, adjoin.tensor([5.0, 1.0]))
        assert adjoin.autograd.forward_ad.unpack_dual(moved).tangent.tolist() == [2, 0]
        still = adjoin.nextafter(adjoin.tensor([5.0, 1.0]), x)
        assert adjoin.autograd.forward_ad.unpack_dual(still).tangent is None


def test_reflections_without_a_vector_have_a_gradient():
    vectors = adjoin.rand(3, 2, requires_grad=True)
    adjoin.linalg.householder_product(vectors, adjoin.ones(0)).sum().backward()
    assert vectors.grad.tolist() == [[0, 0]] * 3
