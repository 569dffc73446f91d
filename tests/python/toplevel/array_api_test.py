"""adjoin.array_api: the array API standard's functions, promotion and extensions; programs written for the standard."""

import inspect
import os
import subprocess
import sys

import adjoin
import numpy as np
import pytest

xp = adjoin.tensor(0).__array_namespace__()

STANDARD = """
    __array_namespace_info__ abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
    bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool broadcast_arrays
    broadcast_to can_cast ceil clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod
    cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor
    floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype
    isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative newaxis
    nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal remainder repeat reshape
    result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take
    take_along_axis tan tanh tensordot tile tril triu trunc uint16 uint32 uint64 uint8 unique_all unique_counts
    unique_inverse unique_values unstack var vecdot where zeros zeros_like
"""
LINALG = """
    cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr
    slogdet solve svd svdvals tensordot trace vecdot vector_norm
"""
FFT = "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn"


def same(made, values, dtype=None):
    assert dtype is None or made.dtype == dtype
    np.testing.assert_allclose(np.array(made.numpy()), np.array(values), rtol=1e-5, atol=1e-6)


def test_the_namespace_has_each_name_of_the_standard_and_no_other():
    extra = {"__array_api_version__", "linalg", "fft"}
    assert set(xp.__all__) == {*STANDARD.split(), *extra} == set(dir(xp))
    assert set(xp.linalg.__all__) == set(LINALG.split())
    assert set(xp.fft.__all__) == set(FFT.split())
    assert xp.__array_api_version__ == "2024.12"
    assert all(hasattr(module, name) for module in (xp, xp.linalg, xp.fft) for name in module.__all__)


@pytest.mark.parametrize("name", ["add", "abs", "sum", "sort", "unique_all", "take"])
def test_arrays_are_positional_and_options_are_keywords(name):
    kinds = [p.kind for p in inspect.signature(getattr(xp, name)).parameters.values()]
    arrays = 2 if name in ("add", "take") else 1
    assert set(kinds[:arrays]) == {inspect.Parameter.POSITIONAL_ONLY}
    assert set(kinds[arrays:]) <= {inspect.Parameter.KEYWORD_ONLY}


def test_a_tensor_knows_the_namespace_of_a_version_and_refuses_others():
    x = adjoin.ones(2)
    assert x.__array_namespace__(api_version="2022.12") is adjoin.array_api
    with pytest.raises(ValueError, match=r"version '2199.12' is not served; give one of 2021.12, .*2024.12"):
        x.__array_namespace__(api_version="2199.12")
    assert x.to_device("cpu") is x
    assert x.to_device("meta").device.type == "meta"
    with pytest.raises(ValueError, match="stream must be None"):
        x.to_device("cpu", stream=1)


def test_dtypes_promote_by_the_standard_whatever_the_dimensions():
    one = xp.asarray(1, dtype=xp.int64)
    assert (one + xp.ones(3, dtype=xp.int8)).dtype == xp.int64
    assert (adjoin.tensor(1) + adjoin.ones(3, dtype=xp.int8)).dtype == xp.int8  # of a tensor the operator is PyTorch's
    assert xp.add(one, xp.ones(3, dtype=xp.int8)).dtype == xp.int64
    assert xp.result_type(xp.uint16, xp.int8) == xp.int32
    assert xp.result_type(xp.uint8, xp.uint32) == xp.uint32
    assert xp.result_type(xp.float32, xp.complex128) == xp.complex128
    assert xp.result_type(xp.int8, 3) == xp.int8
    assert xp.result_type(xp.float32, 3j) == xp.complex64
    same(xp.multiply(xp.asarray([300, 2], dtype=xp.uint16), xp.asarray([-2, 3], dtype=xp.int8)), [-600, 6], xp.int32)
    same(xp.subtract(2, xp.asarray([1, 5], dtype=xp.int16)), [1, -3], xp.int16)
    with pytest.raises(TypeError, match="no dtype holds all of .*int8 and .*uint64"):
        xp.result_type(xp.int8, xp.uint64)
    with pytest.raises(TypeError, match="at least one tensor"):
        xp.add(1, 2)
    assert xp.can_cast(xp.uint16, xp.int32) and not xp.can_cast(xp.float32, xp.int32)


def test_kinds_limits_and_casts():
    assert xp.isdtype(xp.uint16, "integral") and xp.isdtype(xp.float32, ("bool", "numeric"))
    assert not xp.isdtype(xp.bool, "numeric") and not xp.isdtype(np.float64, "numeric")
    with pytest.raises(ValueError, match="there is no kind 'whole'"):
        xp.isdtype(xp.bool, "whole")
    assert xp.finfo(xp.complex128).dtype == xp.float64 and xp.finfo(xp.float32).eps == 2.0**-23
    assert xp.iinfo(xp.asarray([1], dtype=xp.int8)).max == 127
    x = xp.asarray([1.5, -2.5])
    assert xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32) is not x
    with pytest.raises(TypeError, match=r"take real\(x\)"):
        xp.astype(xp.asarray([1j]), xp.float32)


def test_what_lies_otherwise_than_at_the_top_of_the_package():
    x = xp.asarray([[3, 1, 2], [0, 5, 4]], dtype=xp.uint8)
    assert xp.sum(x).dtype == xp.uint64 and xp.prod(x, axis=1).dtype == xp.uint64
    same(xp.sum(x, axis=()), x.numpy(), xp.uint64)
    same(xp.max(x, axis=(0, 1), keepdims=True), [[5]], xp.uint8)
    same(xp.prod(x.to(xp.float32), axis=(0, 1)), 0)
    same(xp.std(xp.asarray([1.0, 3.0])), 1.0)
    same(xp.std(xp.asarray([1.0, 3.0]), correction=1), 2**0.5)
    same(xp.argmax(x, axis=1, keepdims=True), [[0], [1]], xp.int64)
    same(xp.count_nonzero(x, axis=1, keepdims=True), [[3], [2]], xp.int64)
    same(xp.cumulative_sum(x, axis=1, include_initial=True), [[0, 3, 4, 6], [0, 0, 5, 9]], xp.uint64)
    same(xp.cumulative_prod(xp.asarray([2, 3]), include_initial=True), [1, 2, 6])
    same(xp.sign(xp.asarray([xp.nan, -2.0])), [xp.nan, -1])
    same(xp.ceil(xp.asarray([3], dtype=xp.int16)), [3], xp.int16)
    same(xp.round(xp.asarray([1.5 - 2.5j])), [2 - 2j])
    same(xp.clip(x, 1, xp.asarray(3, dtype=xp.uint8)), [[3, 1, 2], [1, 3, 3]], xp.uint8)
    same(xp.concat([x, x[:1].to(xp.int16)], axis=None), [3, 1, 2, 0, 5, 4, 3, 1, 2], xp.int16)
    same(xp.eye(2, 3, k=1), [[0, 1, 0], [0, 0, 1]])
    same(xp.linspace(0, 1, 4, endpoint=False), [0, 0.25, 0.5, 0.75])
    assert xp.arange(5, 0).shape == (0,) and xp.arange(5, 0).dtype == xp.int64
    assert xp.meshgrid(xp.ones(2), xp.ones(3))[0].shape == (3, 2) and xp.meshgrid() == ()


def test_indices_may_be_negative():
    x = xp.asarray([[3, 1, 2], [0, 5, 4]])
    same(xp.take(x, xp.asarray([-1, 0], dtype=xp.int32), axis=1), [[2, 3], [4, 0]])
    same(xp.take_along_axis(x, xp.asarray([[-1], [1]])), [[2], [5]])
    same(xp.searchsorted(xp.asarray([1, 4, 6]), xp.asarray([4, 7], dtype=xp.int8), side="right"), [2, 3])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: xp.take(x, xp.asarray([0])), "take: axis must be given for a tensor of 2 dimensions"),
        (lambda x: xp.cumulative_sum(x), "cumulative_sum: axis must be given"),
        (lambda x: xp.squeeze(x, 0), "squeeze: axis 0 has size 2"),
        (lambda x: xp.max(x[:0]), r"max: shape \[0, 3\] has no elements along axes"),
        (lambda x: xp.argmin(x[:0], axis=0), "argmin: shape"),
        (lambda x: xp.nonzero(xp.sum(x)), "nonzero: a tensor without axes"),
        (lambda x: xp.matrix_transpose(x[0]), "matrix_transpose: takes matrices"),
        (lambda x: xp.vecdot(x, x[:, :1]), "vecdot: axis -1 has sizes 3 and 1"),
        (lambda x: xp.vecdot(x, x, axis=1), r"vecdot: axis 1 is out of range"),
        (lambda x: xp.linalg.cross(x[:, :1], x), r"cross: axis -1 must have size 3 .* shape \[2, 1\]"),
        (lambda x: xp.linalg.cross(x, x, axis=-2), "cross: axis -2 must have size 3"),
        (lambda x: xp.linalg.cross(x[0, 0], x), r"cross: axis -1 must have size 3 .* shape \[\]"),
        (lambda x: xp.reshape(x.T, (6,), copy=False), "reshape: copy=False asks for a view"),
        (lambda x: xp.asarray(x, dtype=xp.float64, copy=False), "asarray: .* by a copy, which copy=False forbids"),
        (lambda x: xp.expand_dims(x, axis=5), "expand_dims: axis 5 is out of range"),
        (lambda x: xp.__array_namespace_info__().dtypes(kind="odd"), "there is no kind 'odd'"),
    ],
)
def test_what_the_standard_forbids_is_refused(call, says):
    with pytest.raises((ValueError, IndexError), match=says):
        call(xp.ones((2, 3)))


def test_sets_count_each_nan_and_order_complex_numbers():
    values, indices, inverse, counts = xp.unique_all(xp.asarray([[3.0, xp.nan], [1.0, 3.0], [xp.nan, 0.0]]))
    same(values, [0, 1, 3, xp.nan, xp.nan])
    same(indices, [5, 2, 0, 1, 4])
    same(inverse, [[2, 3], [1, 2], [4, 0]])
    same(counts, [1, 1, 2, 1, 1])
    x = xp.asarray([1 + 1j, 1 - 1j, 1 + 1j])
    found = xp.unique_inverse(x)
    same(found.values, [1 - 1j, 1 + 1j])
    same(found.values[found.inverse_indices], x.numpy())
    assert xp.unique_counts(xp.zeros(0)).counts.shape == (0,)


def test_extensions_follow_the_standard():
    rng = np.random.default_rng(5)
    m, v = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 4))
    x, y = xp.asarray(m), xp.asarray(v)
    same(xp.linalg.solve(x, y), np.linalg.solve(m, v[None]))
    same(xp.linalg.solve(x, y[:, 0]), np.linalg.solve(m, v[None, :, :1])[..., 0])
    same(
        xp.linalg.vector_norm(x, axis=(0, 2), keepdims=True),
        np.linalg.norm(m, axis=(0, 2), keepdims=True)[...],
        xp.float64,
    )
    same(xp.linalg.trace(xp.ones((2, 3, 3), dtype=xp.uint8)), [3, 3], xp.uint64)
    same(xp.linalg.cross(x[0, 0], x[0]), np.cross(m[0, 0], m[0]))
    same(xp.linalg.pinv(y), np.linalg.pinv(v))
    assert xp.linalg.svd(y, full_matrices=False).Vh.shape == (3, 4)
    assert xp.linalg.qr(x).Q.shape == x.shape and xp.linalg.eigh(x + x.mT).eigenvalues.shape == (2, 3)
    same(xp.linalg.slogdet(x).logabsdet, np.linalg.slogdet(m)[1])
    same(xp.fft.rfftn(y, axes=(0,), norm="ortho"), np.fft.rfftn(v, axes=(0,), norm="ortho"), xp.complex128)
    same(xp.fft.fftshift(xp.fft.fftfreq(4, d=0.5, dtype=xp.float64)), np.fft.fftshift(np.fft.fftfreq(4, 0.5)))
    same(xp.vecdot(xp.asarray([1j, 2]), xp.asarray([1j, 1])), 3)


def test_the_library_says_what_it_can_do():
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        "real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64, "indexing": xp.int64,
    }  # fmt: skip
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert len(info.dtypes()) == 13
    assert info.capabilities()["boolean indexing"] is True


def test_gradients_pass_through_the_namespace():
    x = adjoin.tensor([1.0, 2.0], requires_grad=True)
    xp.sum(xp.multiply(xp.square(x), 3)).backward()
    same(x.grad, [6, 12])


STRANGERS = """
import numpy as np, adjoin, scipy.special, scipy.stats, scipy.signal, sklearn
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, preprocessing
sklearn.set_config(array_api_dispatch=True)
plain = np.random.default_rng(0).normal(size=(60, 4))
x, labels = adjoin.from_numpy(plain.copy()), adjoin.from_numpy((plain[:, 0] > 0).astype(np.int64))
def near(made, wanted):
    assert isinstance(made, adjoin.Tensor), type(made)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-8, atol=1e-10)
near(scipy.special.logsumexp(x, axis=1), scipy.special.logsumexp(plain, axis=1))
near(scipy.stats.skew(x), scipy.stats.skew(plain))
near(scipy.stats.ttest_ind(x[:30], x[30:]).pvalue, scipy.stats.ttest_ind(plain[:30], plain[30:]).pvalue)
near(scipy.signal.detrend(x), scipy.signal.detrend(plain))
near(preprocessing.StandardScaler().fit_transform(x), preprocessing.StandardScaler().fit_transform(plain))
pca = lambda a: decomposition.PCA(2, svd_solver="full").fit_transform(a)
near(adjoin.abs(pca(x)), abs(pca(plain)))
ridge = lambda a, b: linear_model.Ridge(solver="svd").fit(a, b).predict(a)
near(ridge(x, x[:, 0] * 2), ridge(plain, plain[:, 0] * 2))
lda = lambda a, b: discriminant_analysis.LinearDiscriminantAnalysis().fit(a, b).predict(a)
near(lda(x, labels), lda(plain, labels.numpy()))
near(metrics.pairwise.euclidean_distances(x, x), metrics.pairwise.euclidean_distances(plain, plain))
assert metrics.accuracy_score(labels, labels) == 1.0
"""


def test_scipy_and_scikit_learn_compute_with_tensors():
    pytest.importorskip("sklearn", reason="NOT TESTED: scikit-learn is not installed")
    pytest.importorskip("scipy", reason="NOT TESTED: SciPy is not installed")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STRANGERS], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


SYMBOLS = {
    "+": "add", "-": "subtract", "*": "multiply", "//": "floor_divide", "%": "remainder", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "==": "equal", "<": "less", ">=": "greater_equal", "!=": "not_equal",
}  # fmt: skip
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def test_operators_of_arrays_agree_with_numpy_for_all_pairs_of_whole_dtypes():
    rng = np.random.default_rng(3)
    for left in WHOLE:
        for right in WHOLE:
            if "uint64" in (left, right) and (left[0] == "i" or right[0] == "i"):
                continue  # no dtype holds both, and the standard leaves it open
            a = rng.integers(1, 100, rng.choice([1, 3])).astype(left)
            b = rng.integers(1, 100, (2, 3)).astype(right)
            for symbol in rng.choice(list(SYMBOLS), 4, replace=False):
                x, y = xp.asarray(a), xp.asarray(b)
                wanted = eval(f"a {symbol} b")
                made = eval(f"x {symbol} y")
                assert type(made) is type(x) and made.dtype == getattr(xp, wanted.dtype.name), (left, symbol, right)
                np.testing.assert_array_equal(made.numpy(), wanted)
                same(eval(f"y {symbol} x"), eval(f"b {symbol} a"))
                np.testing.assert_array_equal(getattr(xp, SYMBOLS[symbol])(x, y).numpy(), wanted)


def test_arrays_are_tensors_whose_size_is_a_number():
    x = xp.ones((2, 3))
    assert isinstance(x, adjoin.Tensor) and x.size == 6 and x.size() == (2, 3) and x.size(1) == 3
    assert type(x.T) is type(x[0]) is type(x.sum()) is type(xp.unique_all(x).counts) is type(xp.asarray(adjoin.ones(2)))
    assert type(adjoin.ones(2) + 1) is adjoin.Tensor and adjoin.ones(2).size() == (2,)
    leaf = adjoin.tensor([1.0, 2.0], requires_grad=True)
    (xp.asarray(leaf) * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    assert xp.from_dlpack(np.arange(3), copy=True).tolist() == [0, 1, 2]
    assert [10, 20, 30][xp.asarray(2, dtype=xp.uint64)] == 30
    with pytest.raises(TypeError, match="only whole numbers are indices"):
        [1, 2][xp.asarray(1.0)]


def test_an_operator_in_place_keeps_the_dtype_and_the_shape():
    x = xp.asarray([1, 2], dtype=xp.int16)
    kept = x
    x += xp.asarray([3], dtype=xp.uint8)
    assert x is kept and x.dtype == xp.int16 and x.tolist() == [4, 5]
    with pytest.raises(TypeError, match="__iadd__: the result is .*int32, the array is .*int16"):
        x += xp.asarray([3], dtype=xp.int32)
    with pytest.raises(ValueError, match="__imul__: the result has shape"):
        x *= xp.ones((2, 2), dtype=xp.int16)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[::-1],
        np.s_[..., ::-2],
        np.s_[-1:0:-1, ::-1],
        np.s_[1, None, 3:0:-2],
        np.s_[None, ..., 5:5:-1],
        np.s_[2:0:-1, ..., 1],
    ],
)
def test_steps_of_an_index_may_be_below_zero(key):
    plain = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(xp.asarray(plain)[key].numpy(), plain[key])
    written, wanted = xp.asarray(plain.copy()), plain.copy()
    value = np.arange(plain[key].size, dtype=plain.dtype).reshape(plain[key].shape) - 50
    written[key], wanted[key] = xp.asarray(value), value
    np.testing.assert_array_equal(written.numpy(), wanted)
    written[key], wanted[key] = 7, 7
    np.testing.assert_array_equal(written.numpy(), wanted)


def test_indices_of_any_whole_dtype_and_masks_of_nothing():
    x = xp.asarray(np.arange(12).reshape(3, 4))
    for dtype in WHOLE:
        index = xp.asarray([2, 0], dtype=getattr(xp, dtype))
        assert x[index, index].tolist() == [10, 0]
    assert x[xp.ones((3, 4), dtype=xp.bool)].shape == (12,)
    assert xp.zeros((0, 4))[xp.zeros((0, 4), dtype=xp.bool)].shape == (0,)
    assert x[xp.asarray(True)].shape == (1, 3, 4)
    x[x > 5] = xp.asarray(-1, dtype=xp.int8)
    assert x.sum() == 15 - 6
    assert not xp.can_cast(xp.bool, xp.int8)


def test_the_extensions_make_arrays_and_take_nothing():
    assert type(xp.fft.fftfreq(4)) is type(xp.fft.rfftfreq(4)) is type(xp.ones(1))
    nothing = xp.ones((2, 0))
    for order, value in ((xp.inf, 0), (-1, xp.inf), (-2, xp.inf), (1, 0), (2, 0)):
        same(xp.linalg.vector_norm(nothing, axis=1, ord=order), [value, value])
        assert xp.linalg.vector_norm(nothing, axis=0, ord=order).shape == (0,)


def test_numbers_that_a_dtype_has_no_place_for():
    x, y = xp.asarray([5, 200], dtype=xp.uint8), xp.asarray([-5, 3], dtype=xp.int8)
    for call in (
        lambda: x + 300, lambda: -1 * x, lambda: xp.maximum(x, -1), lambda: xp.bitwise_and(y, 128),
        lambda: xp.asarray([1]) - 2**63, lambda: x.__ipow__(-1), lambda: xp.asarray([1], dtype=xp.uint64) + -1,
    ):  # fmt: skip
        with pytest.raises(OverflowError, match="does not fit into adjoin.u?int.*wider dtype"):
            call()
    for array in (x, y, xp.asarray([7], dtype=xp.uint64)):  # comparisons have an answer
        for below, above in ((-129, 2**64), (-(2**70), 2**70)):
            wants = {"less": (False, True), "less_equal": (False, True), "greater": (True, False)}
            wants |= {"greater_equal": (True, False), "equal": (False, False), "not_equal": (True, True)}
            for name, want in wants.items():
                got = [getattr(xp, name)(array, number) for number in (below, above)]
                assert [bool(xp.all(g)) for g in got] == list(want) and all(g.shape == array.shape for g in got)
            assert bool(xp.all(below < array)) and bool(xp.all(above > array)) and not bool(xp.any(array == above))
    assert xp.clip(x, -1, 100).tolist() == [5, 100] and xp.clip(y, None, 300).tolist() == [-5, 3]
    assert xp.clip(xp.asarray([7], dtype=xp.uint64), -1).tolist() == [7]


def test_a_remainder_of_zero_has_the_sign_of_the_divisor():
    for dtype in (xp.float32, xp.float64):
        zeros, by = xp.asarray([0.0, -0.0, 6.0, -6.0], dtype=dtype), xp.asarray([3.0], dtype=dtype)
        for divisor in (by, -by):
            for made in (xp.remainder(zeros, divisor), zeros % divisor):
                assert made.tolist() == [0] * 4 and xp.signbit(made).tolist() == xp.signbit(divisor).tolist() * 4


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128])
@pytest.mark.parametrize("count", [1, 33])
def test_expm1_of_complex_infinities_has_the_parts_of_exp(dtype, count):
    inf, nan = np.inf, np.nan
    for z, wanted in {
        complex(inf, 0): complex(inf, 0),
        complex(inf, -0.0): complex(inf, -0.0),
        complex(1e4, 0): complex(inf, 0),
        complex(-inf, 2): complex(-1, 0),
        complex(-inf, inf): complex(-1, 0),
        complex(-inf, nan): complex(-1, 0),
        complex(inf, 1): complex(inf, inf),
        complex(inf, inf): complex(inf, nan),
        complex(nan, 0): complex(nan, 0),
        complex(1, inf): complex(nan, nan),
        complex(1e-12, 1e-12): complex(1e-12, 1e-12),
    }.items():
        for made in xp.expm1(xp.full((count,), z, dtype=dtype)).tolist():
            np.testing.assert_allclose([abs(made.real), made.imag], [abs(wanted.real), wanted.imag], rtol=1e-5)


def test_one_number_has_a_largest_along_any_axis():
    for dtype in (xp.int32, xp.uint16, xp.float64):
        x = xp.asarray(7, dtype=dtype)
        for axis in (None, 0, -1):
            for keepdims in (False, True):
                assert xp.max(x, axis=axis, keepdims=keepdims) == 7 == xp.min(x, axis=axis, keepdims=keepdims)
                assert xp.argmax(x, axis=axis, keepdims=keepdims).shape == ()
