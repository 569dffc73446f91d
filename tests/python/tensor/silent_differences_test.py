"""tests/python/tensor/silent_differences_test.py: what random calls beside NumPy and PyTorch found to differ without a word: numbers
that lost a part, dtypes that lost digits, results without a history, memory that was shared or not."""

import math

import adjoin as aj
import numpy as np
import pytest
from adjoin.nn import functional as F

ALL = [aj.float32, aj.float64, aj.float16, aj.bfloat16, aj.int64, aj.int32, aj.int16, aj.int8, aj.uint8]


def square():
    return aj.ones(2, 2)


LOSE_THEIR_IMAGINARY_PART = {
    "add": lambda x: x.add(x, alpha=1j),
    "add of a number": lambda x: x.add(1, alpha=1j),
    "add_": lambda x: x.add_(x, alpha=1j),
    "sub": lambda x: x.sub(x, alpha=1j),
    "rsub": lambda x: aj.rsub(x, x, alpha=1j),
    "addcmul": lambda x: x.addcmul(x, x, value=1j),
    "addcmul_": lambda x: x.addcmul_(x, x, value=1j),
    "addcdiv": lambda x: x.addcdiv(x, x, value=1j),
    "addmm alpha": lambda x: aj.addmm(square(), square(), square(), alpha=1j),
    "addmm beta": lambda x: aj.addmm(square(), square(), square(), beta=1j),
    "addmv": lambda x: aj.addmv(x, square(), x, beta=1j),
    "addr": lambda x: aj.addr(x, x, x, alpha=1j),
    "baddbmm": lambda x: aj.baddbmm(aj.ones(1, 2, 2), aj.ones(1, 2, 2), aj.ones(1, 2, 2), beta=1j),
    "index_add": lambda x: x.index_add(0, aj.tensor([0]), x[:1], alpha=1j),
    "scatter": lambda x: x.scatter(0, aj.tensor([0]), 1j),
    "full_like": lambda x: aj.full_like(x, 1j),
    "fill_diagonal_": lambda x: square().fill_diagonal_(1j),
    "pad": lambda x: F.pad(x, (1, 1), value=1j),
}


@pytest.mark.parametrize("name", LOSE_THEIR_IMAGINARY_PART)
def test_a_complex_number_does_not_fit_into_reals(name):
    with pytest.raises(RuntimeError, match=r"does not fit into float32"):
        LOSE_THEIR_IMAGINARY_PART[name](aj.tensor([1.0, 2.0]))


def test_orders_and_bounds_are_real():
    x = aj.tensor([1 + 1j, 2])
    for call in (
        lambda: aj.linalg.vector_norm(x, 1j),
        lambda: aj.dist(x, x, 1j),
        lambda: aj.renorm(x.reshape(1, 2), 1j, 0, 2),
    ):
        with pytest.raises(RuntimeError, match="complex number, which does not fit"):
            call()
    for call in (lambda: aj.arange(0, 1j), lambda: aj.arange(0, 3, 1j)):
        with pytest.raises(RuntimeError, match="have no order"):
            call()


def test_complex_numbers_among_complex_tensors_are_taken():
    c, f = aj.tensor([1 + 1j, 2]), aj.tensor([1.0, 2.0])
    assert c.add(f, alpha=1j).tolist() == [1 + 2j, 2 + 2j] and f.add(c, alpha=1j).tolist() == [1j, 2 + 2j]
    assert f.addcmul(c, f, value=1j).tolist() == [1j, 2 + 4j]
    assert f.add(f, alpha=2 + 0j).tolist() == [3, 6] and aj.full_like(f, 1j, dtype=aj.complex64).tolist() == [1j, 1j]
    assert f.add(1j, alpha=1j).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ALL[4:])
def test_integers_have_no_negative_powers(dtype):
    x = aj.tensor([1, 3]).to(dtype)
    for call in (lambda: x**-1, lambda: x.pow(-2), lambda: x.clone().pow_(-1), lambda: aj.pow(x, -1)):
        with pytest.raises(RuntimeError, match="no negative powers: the exponent is -"):
            call()
    assert (x**-1.0).tolist() == pytest.approx([1, 1 / 3]) and (x**2).tolist() == [1, 9]


def test_an_exponent_is_not_wrapped():
    for dtype, e in ((aj.uint8, 300), (aj.int8, 200), (aj.int16, 2**40)):
        with pytest.raises(RuntimeError, match=f"the exponent {e} does not fit"):
            aj.tensor([3], dtype=dtype) ** e


@pytest.mark.parametrize("dtype", [*ALL, aj.complex64, aj.complex128])
@pytest.mark.parametrize("shape", ["vector", "rows", "columns"])
def test_a_sum_of_bools_asks_each_element(dtype, shape):
    rows = [[0.5, -0.5, 0], [0, 0, 0], [1, -1, 0], [0.25, 3, 256]]
    x = aj.tensor(rows).to(dtype)
    wanted = np.array(x.tolist()) != 0
    if shape == "vector":
        assert [aj.sum(r, dtype=aj.bool).item() for r in x] == wanted.any(1).tolist()
        assert [aj.prod(r, dtype=aj.bool).item() for r in x] == wanted.all(1).tolist()
    dim = {"vector": 0, "rows": 1, "columns": 0}[shape]
    assert aj.sum(x, dim, dtype=aj.bool).tolist() == wanted.any(dim).tolist()
    assert aj.prod(x, dim, dtype=aj.bool).tolist() == wanted.all(dim).tolist()
    assert aj.cumsum(x, dim, dtype=aj.bool).tolist() == np.logical_or.accumulate(wanted, dim).tolist()


def test_a_sum_without_nan_as_whole_numbers():
    x = aj.tensor([1.7, math.nan])
    assert aj.nansum(x, dtype=aj.int64).item() == 1 and aj.nansum(x, dtype=aj.bool).item() is True
    assert aj.nansum(aj.tensor([3, 4])).item() == 7


def test_ldexp_in_its_own_dtype():
    one, tiny = aj.tensor([1.0], dtype=aj.float64), aj.tensor([2.0**-1000], dtype=aj.float64)
    for x, n in (
        (one, -200),
        (one, 200),
        (one, 1000),
        (tiny, 2000),
        (one, -1074),
        (one, 1024),
        (one, -1080),
        (-one, 3),
    ):
        assert aj.ldexp(x, aj.tensor([n])).tolist() == np.ldexp(x.numpy(), n).tolist(), n
    assert (
        aj.ldexp(aj.tensor([1e-30, 0.0]), aj.tensor([150, 150])).tolist()
        == np.ldexp(np.float32([1e-30, 0]), 150).tolist()
    )
    assert aj.ldexp(aj.tensor([1.0]), aj.tensor([-140])).item() == 2.0**-140
    half = aj.ldexp(aj.tensor([1.0], dtype=aj.float16), aj.tensor([-20, 3]))
    assert half.dtype == aj.float16 and half.tolist() == [2.0**-20, 8]
    assert aj.ldexp(aj.tensor([2]), aj.tensor([3])).dtype == aj.float32
    assert aj.ldexp(aj.tensor([1 + 1j]), aj.tensor([3])).tolist() == [8 + 8j]
    assert aj.ldexp(aj.tensor([1.0]), aj.tensor([0.5], dtype=aj.float64)).item() == pytest.approx(2**0.5, rel=1e-15)
    x = aj.tensor([3.0, -1.0], requires_grad=True)
    aj.ldexp(x, aj.tensor([2, -1])).sum().backward()
    assert x.grad.tolist() == [4, 0.5]


def test_bounds_that_no_element_can_be():
    u, i = aj.tensor([2, 3], dtype=aj.uint8), aj.tensor([1], dtype=aj.int8)
    for call in (
        lambda: u.clamp(300),
        lambda: u.clamp(min=300),
        lambda: u.clamp_max(-1),
        lambda: i.clamp(min=200),
        lambda: i.clamp(max=-129),
    ):
        with pytest.raises(RuntimeError, match="clamp: value cannot be converted to type"):
            call()
    assert u.clamp(-1, 300).tolist() == [2, 3] and i.clamp(-1000, 200).tolist() == [1]


@pytest.mark.parametrize("dtype", ALL)
def test_clamp_by_any_kind_of_number(dtype):
    x = aj.tensor([0, 1, 3]).to(dtype)
    for low, high in (
        (True, 2),
        (False, True),
        (1, True),
        (0.5, 2),
        (1, 2.5),
        (True, None),
        (None, True),
        (aj.tensor(True), aj.tensor(2)),
    ):
        wanted = np.clip([0, 1, 3], *(None if b is None else float(b) for b in (low, high)))
        floats = dtype.is_floating_point or not any(isinstance(b, float) for b in (low, high))
        got = x.clamp(low, high)
        assert got.tolist() == wanted.tolist() and got.dtype == (dtype if floats else aj.float32), (low, high)


@pytest.mark.parametrize("dtype", [aj.complex64, aj.complex128])
def test_powers_of_a_complex_zero(dtype):
    zero = aj.tensor([0j] * 5, dtype=dtype)
    e = aj.tensor([2, 1 + 1j, 0.5 - 3j, 0, 1], dtype=dtype)
    assert (zero**e).tolist() == [0, 0, 0, 1, 0]
    assert (zero[:1] ** (1 + 1j)).item() == 0 and (0.0 ** aj.tensor([1 + 1j], dtype=dtype)).item() == 0
    assert (aj.tensor([0.0]) ** (1 + 1j)).item() == 0
    for n in (1j, -1, -1 + 1j):
        assert cmath_nan((zero[:1] ** n).item())


def cmath_nan(z):
    return math.isnan(z.real) and math.isnan(z.imag)


def test_complex_ends():
    got = aj.linspace(0, 1j, 3)
    assert got.dtype == aj.complex64 and got.tolist() == [0, 0.5j, 1j]
    assert aj.linspace(1j, 1, 1).tolist() == [1j] and aj.linspace(1j, 1, 0).dtype == aj.complex64
    assert aj.linspace(aj.tensor(1j), 1, 3).tolist() == [1j, 0.5 + 0.5j, 1]
    assert aj.linspace(1j, 1, 3, dtype=aj.complex128).tolist() == [1j, 0.5 + 0.5j, 1]
    np.testing.assert_allclose(aj.logspace(0, 1j, 3).numpy(), np.logspace(0, 1j, 3), rtol=1e-6)
    np.testing.assert_allclose(
        aj.logspace(1 + 1j, 2, 4, dtype=aj.complex128).numpy(), np.logspace(1 + 1j, 2, 4), rtol=1e-14
    )
    for dtype in (aj.float32, aj.int64):
        for make in (aj.linspace, aj.logspace):
            with pytest.raises(RuntimeError, match="end does not fit into"):
                make(0, 1j, 3, dtype=dtype)
    with pytest.raises(RuntimeError, match="end does not fit into uint8"):
        aj.linspace(0, 300, 3, dtype=aj.uint8)


POOLS = {
    name: (getattr(F, name), d, args)
    for d in (1, 2, 3)
    for name, args in (
        (f"adaptive_avg_pool{d}d", (2,)),
        (f"adaptive_max_pool{d}d", (2,)),
        (f"avg_pool{d}d", (2,)),
        (f"max_pool{d}d", (2,)),
    )
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_pools_of_nothing_have_a_gradient_or_are_refused(name, shape):
    pool, d, args = POOLS[name]
    x = aj.zeros(*shape, *[4] * d, requires_grad=True)
    if shape == (2, 0) and not name.startswith("adaptive_avg"):
        with pytest.raises(RuntimeError, match="which has no (channels to pool|elements to choose from)"):
            pool(x, *args)
        return
    y = pool(x, *args)
    assert y.shape == (*shape, *[2] * d) and y.requires_grad
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_writing_what_lies_there():
    def x(*shape):
        return aj.arange(1.0, 1 + math.prod(shape)).reshape(shape)

    writes = (
        lambda t: t.__setitem__(None, t), lambda t: t.__setitem__((None, slice(None), None), t[:, None]),
        lambda t: t.__setitem__(slice(None), t[0]), lambda t: t.__setitem__(slice(None), t[1, 1]), lambda t: t.__setitem__(..., t.T),
        lambda t: t.__setitem__(slice(1, None), t[:-1]), lambda t: t.__setitem__(slice(None, -1), t[1:]),
        lambda t: t.__setitem__((slice(None), slice(1, 2)), t[:, :1]), lambda t: t.__setitem__(0, t[1]),
    )  # fmt: skip
    for write in writes:
        ours, theirs = x(3, 3), x(3, 3).numpy().copy()
        write(ours), write(theirs)
        assert ours.tolist() == theirs.tolist()
    t = x(3)
    t[None].add_(t)
    assert t.tolist() == [2, 4, 6]
    with pytest.raises(RuntimeError, match="shares part of its memory"):
        t[1:].add_(t[:-1])
    y = aj.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = y * 1
    z[1:] = z[:-1]
    z.sum().backward()
    assert z.tolist() == [1, 1, 2] and y.grad.tolist() == [2, 1, 0]


@pytest.mark.parametrize("dtype", [aj.uint8, aj.uint16, aj.uint32, aj.uint64])
def test_a_negative_number_of_unsigned_ones_wraps(dtype):
    last = aj.iinfo(dtype).max
    u = aj.zeros(2, dtype=dtype)
    u[0] = -1
    assert u.tolist() == [last, 0]
    if dtype != aj.uint64:
        u[[1]] = -1
        assert u.tolist() == [last, last]
        for made in (
            aj.tensor([-1], dtype=dtype),
            aj.tensor(-1, dtype=dtype),
            u.new_tensor([-1]),
            aj.full((1,), -1, dtype=dtype),
        ):
            assert made.reshape(-1).tolist() == [last]
    for n in (-last - 1, last + 1, -1.0, math.nan):
        with pytest.raises((RuntimeError, ValueError, OverflowError), match="fit|nan|large"):
            aj.tensor([n], dtype=dtype)


def test_scatter_of_a_number_that_does_not_fit():
    u, at = aj.zeros(2, dtype=aj.uint8), aj.tensor([0])
    for n in (300, -300, math.nan, 1e9):
        with pytest.raises(RuntimeError, match="does not fit into uint8"):
            u.scatter(0, at, n)
    assert u.scatter(0, at, -1).tolist() == [255, 0] and u.scatter(0, at, 1.9).tolist() == [1, 0]


def test_large_ints_where_a_dtype_says_what_they_are():
    big = 2**63
    assert (
        aj.full((1,), big, dtype=aj.float32).item() == 2.0**63 == aj.full((1,), np.uint64(big), dtype=aj.float64).item()
    )
    assert aj.full((1,), 2**64 - 1, dtype=aj.uint64).item() == 2**64 - 1
    assert aj.where(aj.tensor([False]), aj.tensor([1.0]), big).item() == 2.0**63
    assert aj.where(aj.tensor([True]), big, aj.tensor([1.0])).item() == 2.0**63
    assert aj.full_like(aj.ones(1), big).item() == 2.0**63 and (big / aj.ones(1)).item() == 2.0**63
    for call in (lambda: aj.full((1,), big), lambda: aj.full((1,), big, dtype=aj.int64), lambda: aj.tensor([1]) + big,
                 lambda: aj.full((1,), 2**64, dtype=aj.float32), lambda: aj.where(aj.tensor([True]), big, big)):  # fmt: skip
        with pytest.raises(OverflowError, match="too large|does not fit"):
            call()


def test_arrays_on_the_left():
    t, a = aj.tensor([4.0, 2.0]), np.array([1.0, 2.0])
    for got, wanted in (
        (a / t, a / t.numpy()), (a[:, None] / t, a[:, None] / t.numpy()), (np.array(2.0) / t, 2 / t.numpy()),
        (a == t, [False, True]), (t == a, [False, True]), (a != t, [True, False]), (t != a, [True, False]),
    ):  # fmt: skip
        assert isinstance(got, aj.Tensor) and got.tolist() == np.asarray(wanted).tolist()
    for call in (lambda: a + t, lambda: a - t, lambda: a < t, lambda: a @ t):
        with pytest.raises(TypeError):
            call()
    assert (t == [4.0, 2.0]) is False and (t == "a") is False and (t != None) is True  # noqa: E711
    with pytest.raises(RuntimeError, match="requires grad"):
        a / aj.ones(2, requires_grad=True)


def test_ravel_lies_in_order():
    for x in (
        aj.arange(6)[::2],
        aj.ones(1).expand(3),
        aj.arange(12).reshape(3, 4)[:, ::2][:, :1],
        aj.arange(6).reshape(2, 3).t(),
    ):
        y = x.ravel()
        assert y.is_contiguous() and y.tolist() == x.numpy().ravel().tolist() and y.data_ptr() != x.data_ptr()
    x = aj.arange(6).reshape(2, 3)
    assert x.ravel().data_ptr() == x.data_ptr() and aj.arange(6)[::2].reshape(-1).stride() == (2,)


def test_asarray_copies_or_not_as_asked():
    a = np.ones(2)
    for same in (aj.asarray(a, copy=False), aj.asarray(a, dtype=aj.float64, copy=False), aj.asarray(a)):
        a[0] += 1
        assert same[0].item() == a[0]
    own = aj.asarray(a, copy=True)
    a[0] = 9
    assert own[0].item() != 9
    t = aj.ones(2)
    assert aj.asarray(t, copy=False).data_ptr() == t.data_ptr() != aj.asarray(t, copy=True).data_ptr()
    for data, more in (([1, 2], {}), (3, {}), (3.5, {}), ((1,), {}), (np.float64(3), {}), ([t], {}), (t, {"dtype": aj.float64}),
                       (a, {"dtype": aj.float32}), (t, {"device": "meta"})):  # fmt: skip
        with pytest.raises(ValueError, match="copy=False"):
            aj.asarray(data, copy=False, **more)
    x = aj.ones(2, requires_grad=True)
    y = aj.asarray(x, copy=True)
    assert y.requires_grad and not y.is_leaf


def test_array_protocol_copies_or_not_as_asked():
    t = aj.ones(2)
    copy = t.__array__(copy=True)
    copy[0] = 7
    assert t.tolist() == [1, 1]
    t.__array__(copy=False)[0] = 5
    assert t.tolist() == [5, 1] and t.__array__(np.float32, copy=False).ctypes.data == t.data_ptr()
    assert t.__array__(np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy=False"):
        t.__array__(np.float64, copy=False)


def test_what_has_no_derivative_says_so_and_is_not_left_out():
    for op in (aj.unique, aj.unique_consecutive, lambda x: aj.heaviside(x, x)):
        x = aj.rand(3, requires_grad=True)
        out = op(x)
        assert out.requires_grad
        with pytest.raises(NotImplementedError, match="there is no derivative for 'input'"):
            (out.sum() + x.sum()).backward()
    values, inverse = aj.rand(3, requires_grad=True).unique(return_inverse=True)
    assert values.requires_grad and not inverse.requires_grad


def test_a_gradient_lies_as_its_leaf_where_that_has_no_gaps():
    gaps = aj.empty_strided((2, 2), (4, 2)).fill_(1).requires_grad_()
    turned = aj.ones(3, 2).t().requires_grad_()
    for leaf, strides in ((gaps, (2, 1)), (turned, (1, 2))):
        for loss in (lambda x: x.sum(), lambda x: (x * aj.ones(x.shape)).sum()):
            leaf.grad = None
            loss(leaf).backward()
            assert leaf.grad.stride() == strides and leaf.grad.eq(1).all()


def test_places_that_count_from_the_end_are_refused_where_pytorch_refuses_them():
    x, rows = aj.zeros(3, 2), aj.ones(3, 2)
    for index in ([-1, 0, 1], [0, 1, 3]):
        with pytest.raises(IndexError, match="out of range|out of bounds"):
            x.index_copy(0, aj.tensor(index), rows)
        with pytest.raises(IndexError):
            x.index_copy_(0, aj.tensor(index), rows)
    assert x.index_copy_(0, aj.tensor([2, 0, 1]), rows).sum() == 6
    with pytest.raises(RuntimeError, match="source must have shape"):
        aj.zeros(()).index_add(0, aj.tensor([0]), aj.ones(1, 1, 1))


def test_wrong_kinds_of_arguments_raise_pytorchs_classes():
    x = aj.ones(2)
    for error, words, wrong in (
        (TypeError, "'shape' to be int or sequence", lambda: aj.unravel_index(aj.tensor([1]), aj.tensor([1, 2]))),
        (TypeError, "sequence to only contain ints", lambda: aj.unravel_index(aj.tensor([1]), (1, 2.0))),
        (ValueError, "cannot have negative values", lambda: aj.unravel_index(aj.tensor([1]), (2, -3))),
        (RuntimeError, "requires grad", lambda: x.map2_(x, aj.ones(2, requires_grad=True), lambda a, b, c: a)),
        (TypeError, "numbers are wanted", lambda: x.apply_(lambda n: "one")),
        (RuntimeError, "whole numbers", aj.int64.to_complex),
        (RuntimeError, "whole numbers", aj.bool.to_complex),
        (TypeError, "argument 'mode' must be bool", lambda: aj.use_deterministic_algorithms(1)),
        (TypeError, "argument 'warn_only' must be bool", lambda: aj.use_deterministic_algorithms(False, warn_only=1)),
    ):
        with pytest.raises(error, match=words):
            wrong()
    assert x.tolist() == [1, 1] and aj.float16.to_complex() is aj.complex32
