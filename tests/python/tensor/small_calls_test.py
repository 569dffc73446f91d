"""tests/python/tensor/small_calls_test.py: few elements of tensors alike take a short way through the core; it must be no other way."""

import math

import pytest

import adjoin

FLOATS = [adjoin.float32, adjoin.float64, adjoin.float16, adjoin.bfloat16]
WHOLE = [adjoin.bool, adjoin.uint8, adjoin.int8, adjoin.int16, adjoin.int32, adjoin.int64]


def numbers(shape, dtype, step=1.0):
    n = math.prod(shape)
    values = [(i % 7 - 3) * step + 0.5 * (i % 2) for i in range(n)]
    return adjoin.tensor(values, dtype=adjoin.float64).reshape(shape).to(dtype)


def spread(t):
    """The same values with gaps between them: the short way declines such."""
    wide = adjoin.zeros([*t.shape, 2], dtype=t.dtype)
    wide[..., 0] = t
    return wide[..., 0]


def same(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.is_contiguous() or a.numel() == 0
    assert repr(a.tolist()) == repr(b.tolist())  # NaN, and the sign of zero


@pytest.mark.parametrize("dtype", FLOATS + WHOLE, ids=str)
@pytest.mark.parametrize(
    "shape", [[1], [3], [64], [65], [5, 7], [2, 1, 3, 1, 2], [1, 1, 2, 1, 3, 2], [40, 60]], ids=str
)
def test_tensors_alike(dtype, shape):
    a, b = numbers(shape, dtype), numbers(shape, dtype, 2.0)
    for f in (adjoin.add, adjoin.mul, adjoin.maximum, adjoin.lt, adjoin.eq):
        same(f(a, b), f(spread(a), spread(b)))
    same(adjoin.add(a, a), adjoin.add(spread(a), spread(a)))
    if dtype in FLOATS:
        for f in (adjoin.exp, adjoin.tanh, adjoin.isnan, adjoin.relu):
            same(f(a), f(spread(a)))
        same(adjoin.addcmul(a, b, b, value=2), adjoin.addcmul(spread(a), spread(b), spread(b), value=2))


@pytest.mark.parametrize("dtype", FLOATS + WHOLE, ids=str)
@pytest.mark.parametrize("number", [2, 1.5, True, -0.0, float("inf"), 2 + 1j], ids=str)
def test_numbers_beside_a_tensor(dtype, number):
    a = numbers([9], dtype)
    for f in (adjoin.add, adjoin.mul):
        same(f(a, number), f(spread(a), number))
    if not isinstance(number, complex):
        same(adjoin.gt(a, number), adjoin.gt(spread(a), number))
        if dtype in FLOATS:
            same(adjoin.clamp(a, min=number), adjoin.clamp(spread(a), min=number))
            same(adjoin.clamp(a, max=number), adjoin.clamp(spread(a), max=number))


def test_numbers_of_no_dimension_promote_as_before():
    zero = adjoin.tensor(2.5, dtype=adjoin.float64)
    assert (adjoin.ones(3) * zero).dtype == adjoin.float32
    assert (zero * 2).dtype == adjoin.float64
    assert (adjoin.tensor(2) + 1.5).dtype == adjoin.float32
    assert (zero + zero).item() == 5.0


def test_results_that_are_given():
    a, b = adjoin.arange(8.0), adjoin.ones(8)
    out = adjoin.empty(8)
    assert adjoin.add(a, b, out=out) is out
    assert out.tolist() == [i + 1.0 for i in range(8)]
    adjoin.add(a, b, out=a)
    assert a.tolist() == out.tolist()
    a.mul_(a)
    assert a.tolist() == [(i + 1.0) ** 2 for i in range(8)]
    wide = adjoin.empty(8, dtype=adjoin.float64)
    adjoin.add(b, b, out=wide)
    assert wide.tolist() == [2.0] * 8
    with pytest.warns(UserWarning, match="out= has shape"):
        assert adjoin.add(b, b, out=adjoin.ones(7)).tolist() == [2.0] * 8


def test_overlap_with_the_result_is_refused():
    a = adjoin.arange(9.0)
    with pytest.raises(RuntimeError, match="shares part of its memory"):
        a[1:].add_(a[:-1])
    with pytest.raises(RuntimeError, match="memory"):
        adjoin.add(a[:8], a[:8], out=a[1:])
    a[1:].add_(a[1:])
    assert a.tolist() == [0.0] + [2.0 * i for i in range(1, 9)]


def test_a_write_counts_as_one():
    a = adjoin.ones(4)
    before = a._version
    a.add_(1)
    a.add_(a)
    assert a._version == before + 2
    x = adjoin.ones(4, requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_kernel_that_refuses():
    whole = adjoin.arange(4)
    for _ in range(3):
        with pytest.raises((RuntimeError, TypeError), match="alpha must be a whole number"):
            adjoin.add(whole, whole, alpha=0.5)
    assert (whole + whole).tolist() == [0, 2, 4, 6]


def test_inference_tensors():
    with adjoin.inference_mode():
        y = adjoin.ones(3) + adjoin.ones(3)
    assert y.is_inference()


def test_views_of_dense_tensors():
    x = adjoin.arange(12.0)
    assert x.reshape(3, -1).shape == (3, 4)
    assert x.reshape(3, -1)._base is x or x.reshape(3, -1).data_ptr() == x.data_ptr()
    assert x.view(2, 1, 6).stride() == (6, 6, 1)
    assert x[:1].reshape([]).item() == 0.0
    assert adjoin.zeros(0, 3).reshape(3, 0).shape == (3, 0)
    for bad in ([5, -1], [-1, -1], [-2, 6], [0, -1], [13], [2**40, 2**40]):
        with pytest.raises(RuntimeError, match=r"-1|negative|fit|ambiguous"):
            x.reshape(bad)
    assert x.reshape([1] * 9 + [12]).shape == (1,) * 9 + (12,)
