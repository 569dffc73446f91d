"""tests/python/tensor/special_values_test.py: numbers at the edges of each dtype, on every way that a Python number takes into a tensor."""

import math
import struct

import adjoin as T
import numpy
import pytest

FLOATS = {T.float16: numpy.float16, T.float32: numpy.float32, T.float64: numpy.float64, T.complex64: numpy.complex64,
          T.complex128: numpy.complex128}  # fmt: skip
INTS = [T.int8, T.int16, T.int32, T.int64, T.uint8, T.uint16, T.uint32, T.uint64]


def special_floats():
    """Zeros, infinities, nan, and of each format the least and the greatest number, and halfway points around them and 1."""
    found = [0.0, 1.0, 1.5, math.inf, math.nan]
    for digits, least, greatest in (
        (11, -24, 65504.0),
        (8, -133, 3.3895313892515355e38),
        (24, -149, 3.4028234663852886e38),
    ):
        tiny, ulp = 2.0**least, 2.0 ** (1 - digits)
        found += [
            tiny,
            tiny / 2,
            tiny * 0.75,
            tiny * 1.5,
            2.0 ** (least + digits - 1),
            greatest,
            greatest * (1 + ulp / 4),
        ]
        found += [1 + ulp, 1 + ulp / 2, 1 + ulp * 1.5, 1 + ulp / 2 + 2.0**-40]
    return [sign * x for x in [*found, 1e39, 1e300, 5e-324, 2.0**31, 2.0**63, 2.0**64] for sign in (1, -1)]


def ways(x, dtype):
    """A tensor's elements that a number went into, by each way."""

    def written(key, shape=(2, 3)):
        t = T.zeros(shape, dtype=dtype)
        t[key] = x
        return t

    one, pair = T.zeros(1, dtype=dtype), T.zeros(2, dtype=dtype)
    yield "tensor", T.tensor(x, dtype=dtype)
    yield "tensor of a list", T.tensor([[x], [x]], dtype=dtype)[1]
    yield "new_tensor", one.new_tensor([x])
    yield "as_tensor", T.as_tensor([x], dtype=dtype)
    yield "asarray", T.asarray(x, dtype=dtype)
    yield "scalar_tensor", T.scalar_tensor(x, dtype=dtype)
    yield "full", T.full((2,), x, dtype=dtype)
    yield "full_like", T.full_like(pair, x)
    yield "new_full", one.new_full((2,), x)
    yield "fill_", T.empty(3, dtype=dtype).fill_(x)
    for key in (0, (1, 2), slice(1, 2), ..., None, [0], T.tensor([1]), T.tensor(0), T.tensor([True, False]), True,
                (slice(None), T.tensor([2])), T.tensor([[True, False, False], [False, False, False]])):  # fmt: skip
        yield f"x[{key}] =", written(key)[key]
    yield "x[0] = of a list", written(0, (2, 1))[0]
    yield "masked_fill", one.masked_fill(T.tensor([True]), x)
    yield "masked_fill_", T.zeros(1, dtype=dtype).masked_fill_(T.tensor([True]), x)
    yield "index_fill", pair.index_fill(0, T.tensor([1]), x)[1]
    yield "scatter", pair.scatter(0, T.tensor([1]), x)[1]
    yield "where", T.where(T.tensor([True]), x, one).to(dtype)
    yield "pad", T.nn.functional.pad(one, (1, 0), value=x)[0]
    none = -one  # -0, which changes no summand, -0 neither
    yield "add", (none + x).to(dtype)
    yield "add from the right", (x + none).to(dtype)


def bits(t):
    """Each element as bytes, every nan as one."""
    flat = t.reshape(-1)
    if flat.is_complex():
        flat = T.view_as_real(flat).reshape(-1)
    size = flat.element_size()
    raw = bytes(flat.view(T.uint8).tolist()) if flat.dtype is not T.bool else bytes(map(int, flat.tolist()))
    nans = flat.isnan().tolist() if flat.is_floating_point() else [False] * flat.numel()
    return [b"nan" if nans[i] else raw[i * size : (i + 1) * size] for i in range(flat.numel())]


def as_bfloat16(x):
    """By the definition: float32's upper half, to the nearest and on a tie to the even."""
    if math.isnan(x):
        return b"nan"
    word = struct.unpack("<I", numpy.float32(x).tobytes())[0]
    upper, lower = word >> 16, word & 0xFFFF
    return struct.pack("<H", upper + (lower > 0x8000 or (lower == 0x8000 and upper & 1)))


def expected(x, dtype):
    if dtype is T.bfloat16:
        return [as_bfloat16(x)]
    kind = FLOATS[dtype]
    narrow = (
        numpy.float32(x) if kind in (numpy.float16, numpy.complex64) else x
    )  # float64 goes to the short ones by float32
    parts = [numpy.asarray(narrow).astype(kind)]
    if dtype.is_complex:
        parts = [parts[0].real, parts[0].imag]
    return [b"nan" if numpy.isnan(p) else p.tobytes() for p in parts]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("dtype", [*FLOATS, T.bfloat16], ids=str)
def test_floats(dtype):
    for x in special_floats():
        wanted = expected(x, dtype)
        for way, t in ways(x, dtype):
            if dtype.is_complex and not (math.isfinite(x) and wanted[0][-1] & 0x7F != 0x7F):
                continue  # what an addition makes of inf + 0j beside it is another matter
            assert set(zip(*[iter(bits(t))] * len(wanted), strict=False)) == {tuple(wanted)}, (way, x)


@pytest.mark.parametrize("dtype", [*FLOATS, T.bfloat16], ids=str)
def test_a_zero_is_zero(dtype):
    for zero in (0, 0.0, False, numpy.float16(0), numpy.float64(0), numpy.int8(0)):
        for way, t in ways(zero, dtype):
            assert not t.count_nonzero(), (way, zero)
    assert math.copysign(1, T.tensor(-0.0, dtype=dtype).item().real) == -1


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_ints(dtype):
    low, high = T.iinfo(dtype).min, T.iinfo(dtype).max
    high = min(high, 2**63 - 1)
    for x in (0, 1, high, high - 1, low, low + 1, True):
        for way, t in ways(x, dtype):
            assert set(t.reshape(-1).tolist()) == {int(x)}, (way, x)
    for x in (1.0, 1.75, float(2 ** (T.iinfo(dtype).bits - 2))):
        for way, t in ways(x, dtype):
            assert set(t.reshape(-1).tolist()) == {int(x)}, (way, x)


def number_ways(dtype):
    mask = T.tensor([True])
    yield lambda x: T.full((1,), x, dtype=dtype)
    yield lambda x: T.zeros(1, dtype=dtype).fill_(x)
    yield lambda x: T.zeros(1, dtype=dtype).__setitem__(0, x)
    yield lambda x: T.zeros(1, dtype=dtype).masked_fill(mask, x)
    yield lambda x: T.zeros(1, dtype=dtype).index_fill(0, T.tensor([0]), x)
    yield lambda x: T.nn.functional.pad(T.zeros(1, dtype=dtype), (1, 0), value=x)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_what_no_integer_holds_is_refused(dtype):
    low, high = T.iinfo(dtype).min, T.iinfo(dtype).max
    for x in (math.nan, math.inf, -math.inf, 1e39, float(high) * 2, float(low) * 2 - 2):
        for way in (*number_ways(dtype), lambda x: T.tensor([x], dtype=dtype)):
            with pytest.raises((RuntimeError, ValueError, OverflowError), match="fit|nan|infinity|convert"):
                way(x)
    for x in (2**64, -(2**63) - 1, 2**100):
        for way in number_ways(dtype):
            with pytest.raises((OverflowError, RuntimeError), match=f"{x}.*(too large|does not fit)"):
                way(x)
    assert T.zeros(1, dtype=T.uint64).fill_(2.0**63).item() == 2**63


def test_ints_from_two_to_the_63():
    x = T.tensor([2.0**63, 1.0])
    for big in (2**63, 2**63 + 1, numpy.uint64(2**63)):
        assert (x == big).tolist() == [True, False] and (big == x).tolist() == [True, False]
        assert (x < big).tolist() == [False, True] and (big > x).tolist() == [False, True]
        assert (x - big)[0] == 0 and (big - x)[0] == 0 and x.clamp(max=big).tolist() == x.tolist()
        assert x.masked_fill(x == 1, big).tolist() == [2.0**63] * 2 and T.zeros(1).fill_(big).item() == 2.0**63
    u = T.zeros(2, dtype=T.uint64).fill_(2**64 - 1)
    assert u.tolist() == [2**64 - 1] * 2 and (u == 2**64 - 1).all() and (u != 2**63).all()
    for n in (2**64, -(2**63) - 1):
        for call in (lambda n=n: x == n, lambda n=n: n == x, lambda n=n: x + n, lambda n=n: n - x, lambda n=n: x < n,
                     lambda n=n: x.fill_(n), lambda n=n: T.full((2,), n), lambda n=n: x.masked_fill(x == 1, n),
                     lambda n=n: T.where(x == 1, n, x), lambda n=n: T.zeros(n), lambda n=n: x.view(n), lambda n=n: x.sum(n),
                     lambda n=n: T.arange(n), lambda n=n: x.reshape([n, 1])):  # fmt: skip
            with pytest.raises(OverflowError, match=f"{n} is too large for 64 bits"):
                call()
    with pytest.raises(OverflowError, match="does not fit into int64"):
        T.tensor([1]).fill_(2**63)
    assert T.nn.functional.layer_norm(x, (2,), eps=2**70).shape == (
        2,
    )  # where a float is wanted, an int of any size is one


def test_numbers_of_numpy_do_not_fix_the_dtype():
    n = numpy
    for data, dtype in (
        ([n.float16(3), 1e6], T.float32), ([1e6, n.float16(3)], T.float32), ([n.int8(3), 300], T.int64), ([n.int8(3), 1.5], T.float32),
        ([n.uint8(200), -1], T.int64), ([[n.int32(3)], [2.5]], T.float32), ([n.float32(1), 2j], T.complex64),
        ([n.float64(1), 2j], T.complex128), ([n.float16(3), 1], T.float16), ([n.float64(3), 1], T.float64), ([n.int8(3), True], T.int8),
        ([n.int32(3)], T.int32), (n.float16(3), T.float16), ([n.array([1, 2], n.int8), [300, 4]], T.int64),
        ([n.array([1.0, 2.0], n.float16), [3e5, 4.0]], T.float32), ([T.tensor(1, dtype=T.int8), 300], T.int64),
        ([T.tensor(1.0, dtype=T.float16), 1e6], T.float32), ([T.tensor(1.0, dtype=T.float64), 1], T.float64),
    ):  # fmt: skip
        t = T.tensor(data)
        assert t.dtype is dtype and t.tolist() == T.tensor(_plain(data), dtype=dtype).tolist(), data
    assert T.tensor([n.float16(3), 1e6], dtype=T.float64).tolist() == [3.0, 1e6]


def _plain(data):
    return [_plain(x) for x in data] if isinstance(data, list) else data.tolist() if hasattr(data, "tolist") else data


def test_data_that_never_ends_is_refused():
    itself = numpy.empty(1, object)
    itself[0] = itself
    with pytest.raises(TypeError, match="no dtype holds elements of longdouble"):
        T.tensor([numpy.longdouble(1)])
    with pytest.raises((RecursionError, ValueError)):
        T.tensor([itself])


def test_a_signaling_nan_to_0_is_1():
    """It was nan in float64, by C's pow."""
    x = T.from_numpy(numpy.full(9, 0x7FF4000000000000, numpy.uint64).view(numpy.float64))
    for zero in (0, False, -0.0, T.zeros(9, dtype=T.float64)):
        assert (x**zero).tolist() == [1.0] * 9


def test_early_sums_of_complex_exponentials_are_not_lost():
    x = T.tensor([-1000.0, 0.0, 5.0])
    T.testing.assert_close(T.logcumsumexp(x + 0j, 0).real, T.logcumsumexp(x, 0))
    many = T.randn(3, 7, dtype=T.complex128) * 5
    T.testing.assert_close(T.logcumsumexp(many, 1).exp(), many.exp().cumsum(1))
