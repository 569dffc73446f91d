"""tests/python/tensor/several_results_test.py: functions that return as many tensors as they are asked for, and what they refuse."""

import adjoin
import numpy as np
import pytest

T = adjoin.tensor


def test_unique_returns_what_is_asked_for():
    x = T([3, 1, 1, 2, 3])
    assert x.unique().tolist() == [1, 2, 3]
    values, inverse = adjoin.unique(x, return_inverse=True)
    assert values[inverse].tolist() == x.tolist()
    values, counts = adjoin.unique(x, return_counts=True)
    assert counts.tolist() == [2, 1, 2]
    assert len(adjoin.unique(x, True, True, True)) == 3
    assert adjoin.unique(adjoin.zeros(0)).shape == (0,)
    assert adjoin.unique(T([float("nan")] * 2)).shape == (2,)  # no NaN is another


def test_unique_of_slices():
    x = T([[1, 2], [0, 5], [1, 2]])
    rows, inverse, counts = x.unique(dim=0, return_inverse=True, return_counts=True)
    assert rows.tolist() == [[0, 5], [1, 2]] and inverse.tolist() == [1, 0, 1] and counts.tolist() == [1, 2]
    assert x.unique(dim=1).tolist() == [[1, 2], [0, 5], [1, 2]]


def test_unique_consecutive():
    x = T([1, 1, 2, 2, 1])
    values, inverse, counts = adjoin.unique_consecutive(x, True, True)
    assert values.tolist() == [1, 2, 1] and inverse.tolist() == [0, 0, 1, 1, 2] and counts.tolist() == [2, 2, 1]
    assert x.unique_consecutive().tolist() == [1, 2, 1]


def test_mode_takes_the_smallest_and_the_last():
    values, indices = T([3, 1, 1, 2, 2]).mode()
    assert (values.item(), indices.item()) == (1, 2)


def test_running_extremes_take_the_last_of_equals_and_keep_nan():
    values, indices = T([1.0, 3.0, 3.0, 2.0]).cummax(0)
    assert values.tolist() == [1, 3, 3, 3] and indices.tolist() == [0, 1, 2, 2]
    values, indices = T([1.0, float("nan"), 5.0]).cummin(0)
    assert values.isnan().tolist() == [False, True, True] and indices.tolist() == [0, 1, 1]


def test_quantile_with_nan():
    x = T([1.0, float("nan"), 3.0])
    assert x.quantile(0.5).isnan() and x.nanquantile(0.5).item() == 2
    assert x.nanmedian().item() == 1
    assert T([[1.0, 2.0], [3.0, 5.0]]).quantile(T([0.0, 0.5]), dim=1, keepdim=True).shape == (2, 2, 1)


def test_searching():
    edges = T([1.0, 3.0, 5.0])
    assert adjoin.searchsorted(edges, T([3.0, 9.0])).tolist() == [1, 3]
    assert adjoin.searchsorted(edges, T([3.0, 9.0]), side="right").tolist() == [2, 3]
    assert adjoin.searchsorted(edges, 3.0).shape == ()
    assert adjoin.bucketize(T([0.0, 3.0]), edges, out_int32=True).dtype is adjoin.int32
    assert adjoin.searchsorted(T([5.0, 1.0, 3.0]), T([2.0]), sorter=T([1, 2, 0])).tolist() == [1]
    assert adjoin.isin(T([1, 2, 3]), 2).tolist() == [False, True, False]
    assert adjoin.isin(T([1, 2]), T([], dtype=adjoin.int64)).tolist() == [False, False]


def test_at_least():
    assert adjoin.atleast_1d(T(1.0)).shape == (1,)
    assert [t.shape for t in adjoin.atleast_2d(T(1.0), adjoin.ones(3))] == [(1, 1), (1, 3)]
    assert [t.shape for t in adjoin.atleast_3d([adjoin.ones(3)])] == [(1, 3, 1)]
    assert [t.tolist() for t in adjoin.unravel_index(T([5, 0]), (2, 3))] == [[1, 0], [2, 0]]


def test_resize_as():
    x = adjoin.ones(2)
    assert x.resize_as_(adjoin.zeros(2, 3)) is x and x.shape == (2, 3)


def test_cov_with_weights():
    x, often = adjoin.randn(3, 4, dtype=adjoin.float64), T([1, 2, 3, 1])
    whole = x.repeat_interleave(often, 1)
    assert adjoin.allclose(x.cov(fweights=often), whole.cov())
    assert adjoin.allclose(x.cov(aweights=often.double(), correction=0), whole.cov(correction=0))
    with pytest.raises(RuntimeError, match="fweights must be integers"):
        x.cov(fweights=often.double())


def test_repeat_interleave_by_counts_alone_and_with_a_known_size():
    often = T([2, 0, 3])
    assert adjoin.repeat_interleave(often).tolist() == [0, 0, 2, 2, 2]
    assert adjoin.repeat_interleave(often, output_size=5).tolist() == [0, 0, 2, 2, 2]
    assert adjoin.repeat_interleave(T([]).long()).shape == (0,)
    assert adjoin.repeat_interleave(often.int()).dtype == adjoin.int32
    x = T([[1, 2, 3], [4, 5, 6]])
    assert x.repeat_interleave(often, 1, output_size=5).tolist() == [[1, 1, 3, 3, 3], [4, 4, 6, 6, 6]]
    assert x.repeat_interleave(2, output_size=12).shape == (12,)
    for call in (
        lambda: x.repeat_interleave(often, 1, output_size=4),
        lambda: x.repeat_interleave(2, 0, output_size=3),
        lambda: adjoin.repeat_interleave(often, output_size=4),
    ):
        with pytest.raises(RuntimeError, match="output_size is"):
            call()
    with pytest.raises(RuntimeError, match="negative"):
        adjoin.repeat_interleave(T([1, -1]))


def test_logit_with_bounds_and_its_gradient():
    x = adjoin.tensor([0.05, 0.3, 0.97], dtype=adjoin.float64, requires_grad=True)
    y = adjoin.logit(x, 0.1)
    assert np.allclose(y.detach(), np.log(np.array([0.1, 0.3, 0.9]) / np.array([0.9, 0.7, 0.1])))
    (slope,) = adjoin.autograd.grad(y.sum(), [x])
    assert np.allclose(slope, [0, 1 / 0.21, 0])
    assert adjoin.autograd.gradgradcheck(
        adjoin.logit, [(adjoin.rand(5, dtype=adjoin.float64) * 0.8 + 0.1).requires_grad_()]
    )
    assert adjoin.logit(T([1])).tolist() == [float("inf")]
    nowhere = T([-0.5, 0.5, 1.5, float("nan")]).requires_grad_()
    for eps, want in ((None, [np.nan, 4, np.nan, np.nan]), (0.1, [0, 4, 0, np.nan])):
        (slope,) = adjoin.autograd.grad(adjoin.logit(nowhere, eps).sum(), [nowhere])
        np.testing.assert_allclose(slope.numpy(), want)


def test_functions_of_methods_alone():
    x = T([[1.0, 2.0], [3.0, 4.0]])
    assert adjoin.fill(x, 7).tolist() == [[7, 7], [7, 7]] and x[0, 0] == 1
    assert adjoin.as_strided_(x, (2,), (3,)) is x and x.tolist() == [1, 4]
    assert adjoin.fill_(x, 5) is x and adjoin.zero_(x) is x and x.tolist() == [0, 0]
    assert adjoin.resolve_neg(x) is x and adjoin.resolve_conj(x).tolist() == [0, 0]


def test_frexp_of_small_numbers():
    x = T([5e-324, 0.0, -3.0, float("inf")], dtype=adjoin.float64)
    mantissa, exponent = x.frexp()
    assert mantissa.tolist() == [0.5, 0.0, -0.75, float("inf")] and exponent.tolist() == [-1073, 0, 2, 0]
    assert exponent.dtype is adjoin.int32


def test_nextafter_of_halves():
    one = adjoin.ones(2, dtype=adjoin.float16)
    towards = T([2.0, 0.0], dtype=adjoin.float16)
    assert one.nextafter(towards).tolist() == [1 + 2**-10, 1 - 2**-11]


def test_distances_by_product_and_one_by_one_agree():
    x, y = adjoin.randn(40, 8, dtype=adjoin.float64), adjoin.randn(30, 8, dtype=adjoin.float64)
    plain = adjoin.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    assert adjoin.allclose(adjoin.cdist(x, y), plain)
    x.requires_grad_()
    assert adjoin.autograd.gradcheck(lambda a: adjoin.cdist(a[:3], y[:2]), [x[:3].detach().requires_grad_()])
    same = adjoin.ones(2, 2, requires_grad=True)
    adjoin.cdist(same, same.detach()).sum().backward()
    assert same.grad.tolist() == [[0, 0], [0, 0]]


def test_unsigned_dtypes_have_names():
    for name in ("uint16", "uint32", "uint64"):
        x = T([3, 1], dtype=getattr(adjoin, name))
        assert str(x.dtype) == "adjoin." + name and x.sort()[0].tolist() == [1, 3]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: T([1.0]).quantile(1.5), "q must be from 0 to 1"),
        (lambda: T([1.0]).quantile(0.5, interpolation="so"), "linear, lower, higher, midpoint or nearest: 'so'"),
        (lambda: adjoin.zeros(0).quantile(0.5), "no quantiles"),
        (lambda: adjoin.zeros(2, 3).hsplit(2), "cannot be cut into 2 equal pieces"),
        (lambda: adjoin.zeros(3).vsplit(3), "requires a tensor with at least 2 dimensions"),
        (lambda: adjoin.searchsorted(adjoin.ones(2, 3), adjoin.ones(3, 3)), "must be a vector or have the sizes"),
        (lambda: adjoin.searchsorted(T([1.0]), T([1.0]), side="top"), "'left' or 'right', it is 'top'"),
        (lambda: adjoin.cross(adjoin.ones(2), adjoin.ones(2)), "no dimension of size 3"),
        (lambda: adjoin.cdist(adjoin.ones(2, 3), adjoin.ones(2, 4)), "rows of one size"),
        (lambda: adjoin.linalg.matrix_power(adjoin.ones(2, 3), 2), "square matrices"),
        (lambda: adjoin.linalg.matrix_norm(adjoin.ones(2, 2), 3), "the norm 3 of matrices is not known"),
        (lambda: adjoin.ones(2).scatter_reduce(0, T([0]), adjoin.ones(1), "max"), "sum, prod, mean, amax or amin: 'max'"),
        (lambda: adjoin.ones(2).scatter_reduce(0, T([2]), adjoin.ones(1), "sum"), "out of"),
        (lambda: adjoin.ones(2).put(T([0]), adjoin.ones(2)), "index has 1 elements, source has 2"),
        (lambda: adjoin.ones(2, 2).select_scatter(adjoin.ones(3), 0, 0), "src must have shape"),
        (lambda: adjoin.polygamma(-1, T(1.0)), "n must be from 0 to 2147483647"),
        (lambda: adjoin.histc(T([1.0, float("inf")])), "is not finite"),
        (lambda: adjoin.histogram(T([1.0]), 0), "bins must be positive"),
        (lambda: adjoin.combinations(adjoin.ones(2, 2)), "a vector is wanted"),
        (lambda: adjoin.tril_indices(-1, 2), "row is -1 but must be >= 0"),
        (lambda: adjoin.block_diag(adjoin.ones(1, 1, 1)), "at most 2 dimensions"),
        (lambda: adjoin.cov(adjoin.ones(2, 2, 2)), "at most two dimensions"),
        (lambda: adjoin.ones(2).fill_diagonal_(1), "at least two dimensions"),
        (lambda: adjoin.ones(3).heaviside(adjoin.ones(3, dtype=adjoin.float64)), "values must be float32"),
        (lambda: adjoin.ones(3).to(adjoin.complex64).heaviside(adjoin.ones(3)), "complex numbers are not ordered"),
        (lambda: adjoin.ones(0, 2)[T([0])], "size 0"),
        (lambda: adjoin.ones(0, 2)[T([0]), :0], "size 0"),
    ],
)  # fmt: skip
def test_what_is_refused(call, message):
    with pytest.raises((RuntimeError, IndexError, ValueError, NotImplementedError), match=message):
        call()


def test_nan_stands_behind_all_numbers_in_searches():
    """In the order that sort gives; a search once went past the numbers when it met NaN."""
    nan, inf = float("nan"), float("inf")
    rows = np.array([0.0, 1.0, inf, inf] + [nan] * 5)
    values = np.array([inf, 1.0, nan, 2.0, -inf, 0.0, inf, 5.0, nan, 1.0])
    for dtype in (adjoin.float16, adjoin.float32, adjoin.float64):
        for device in ("cpu", "reference"):
            sequence, sought = (adjoin.tensor(a, dtype=dtype, device=device) for a in (rows, values))
            for side in ("left", "right"):
                found = adjoin.searchsorted(sequence, sought, side=side).cpu().numpy()
                np.testing.assert_array_equal(found, np.searchsorted(rows, values, side))
    many = adjoin.tensor([0.0, 1.0, inf, nan] * 75)
    assert adjoin.isin(many[:40], many).tolist() == [True, True, True, False] * 10
    assert adjoin.isin(adjoin.tensor([inf] * 7), adjoin.tensor([inf] + [nan] * 500)).all()
