"""tests/python/tensor/narrow_dtypes_test.py: floats of 8 bits and complex32: stored, converted, moved, computed wider."""

import io
import math
import pickle

import adjoin
import numpy as np
import pytest

# name: bits of the mantissa, bias, whether there is an infinity, whether one NaN stands in the place of -0
FORMATS = {
    "float8_e4m3fn": (3, 7, False, False),
    "float8_e5m2": (2, 15, True, False),
    "float8_e4m3fnuz": (3, 8, False, True),
    "float8_e5m2fnuz": (2, 16, False, True),
}
FLOATS = [*FORMATS, "float8_e8m0fnu"]
ALL = [*FLOATS, "complex32"]


def value(name, bits):
    """The number that a byte stands for, by the definition of the format."""
    if name == "float8_e8m0fnu":
        return math.nan if bits == 255 else 2.0 ** (bits - 127)
    mantissa, bias, has_infinity, one_nan = FORMATS[name]
    sign, rest = -1.0 if bits & 128 else 1.0, bits & 127
    exponent, fraction = rest >> mantissa, rest & ((1 << mantissa) - 1)
    if one_nan and bits == 128:
        return math.nan
    if has_infinity and exponent == 31:
        return sign * math.inf if fraction == 0 else math.nan
    if not has_infinity and not one_nan and rest == 127:
        return math.nan
    steps = fraction + (1 << mantissa if exponent else 0)
    return sign * steps * 2.0 ** (max(exponent, 1) - bias - mantissa)


def table(name):
    return np.array([value(name, b) for b in range(256)])


def of(name):
    return getattr(adjoin, name)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_each_byte_is_the_number_of_its_format(name, device):
    held = adjoin.arange(256, dtype=adjoin.uint8).to(device).view(of(name))
    assert np.array_equal(held.double().cpu().numpy(), table(name), equal_nan=True)
    assert np.array_equal(held.float().cpu().numpy(), table(name).astype("f4"), equal_nan=True)


@pytest.mark.parametrize("name", FLOATS)
def test_a_number_becomes_the_nearest_one(name):
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.standard_normal(2000) * s for s in (1e-3, 1.0, 50.0)]).astype("f4")
    numbers = np.abs(numbers) if name == "float8_e8m0fnu" else numbers
    got = adjoin.from_numpy(numbers).to(of(name)).double().numpy()
    finite = np.sort(table(name)[np.isfinite(table(name))])
    least = np.abs(numbers[:, None].astype("f8") - finite).min(1)
    assert np.array_equal(np.abs(got - numbers), least)


def test_ties_go_to_the_even_one_and_beyond_the_range_is_what_each_format_has():
    def bits(name, *numbers):
        return adjoin.tensor(numbers, dtype=adjoin.float32).to(of(name)).view(adjoin.uint8).tolist()

    assert bits("float8_e4m3fn", 1.0625, 1.1875, -0.0, 500.0, math.inf, math.nan) == [
        0x38,
        0x3A,
        0x80,
        0x7E,
        0x7E,
        0x7F,
    ]
    assert bits("float8_e5m2", 1.125, 1.375, 57344.0, 61440.0, -math.inf) == [0x3C, 0x3E, 0x7B, 0x7C, 0xFC]
    assert bits("float8_e4m3fnuz", -0.0, 240.0, 248.0, math.inf, math.nan) == [0, 0x7F, 0x80, 0x80, 0x80]
    assert bits("float8_e5m2fnuz", -1e-9, 57344.0, 1e6) == [0, 0x7F, 0x80]
    assert bits("float8_e8m0fnu", 1.0, 1.4, 1.5, 0.0, math.nan) == [127, 127, 128, 0, 255]


@pytest.mark.parametrize("name", ALL)
def test_they_are_made_printed_read_and_moved(name):
    x = adjoin.tensor([1.0, 2.0, 4.0, 8.0], dtype=of(name))
    assert x.dtype is of(name) and str(x.dtype) == f"adjoin.{name}" and pickle.loads(pickle.dumps(x.dtype)) is x.dtype
    assert x.tolist() == [1, 2, 4, 8] and x[2].item() == 4 and f"dtype=adjoin.{name}" in repr(x)
    assert adjoin.full((2,), 2.0, dtype=of(name)).tolist() == [2, 2] and adjoin.ones(0, dtype=of(name)).shape == (0,)
    for moved, numbers in {
        "cat": (adjoin.cat([x, x[:1]]), [1, 2, 4, 8, 1]),
        "index": (x[adjoin.tensor([3, 0])], [8, 1]),
        "mask": (x[x == 4], [4]),
        "flip": (x.flip(0), [8, 4, 2, 1]),
        "roll": (x.roll(1), [8, 1, 2, 4]),
        "where": (adjoin.where(adjoin.tensor([True, False, True, False]), x, x.flip(0)), [1, 4, 4, 1]),
        "transpose": (x.view(2, 2).t().contiguous().view(-1), [1, 4, 2, 8]),
        "strided": (x[::2].clone(), [1, 4]),
        "gather": (x.gather(0, adjoin.tensor([1])), [2]),
    }.values():
        assert moved.dtype is x.dtype and moved.tolist() == numbers
    x[1:3] = 16.0
    assert x.tolist() == [1, 16, 16, 8]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("other", ["bool", "int8", "int64", "uint8", "float16", "bfloat16", "float64", "complex128"])
def test_they_are_cast_from_and_to_every_dtype(name, other):
    there = adjoin.tensor([1, 1, 2]).to(of(other))
    held = there.to(of(name))
    expected = [1, 1, 1] if other == "bool" else [1, 1, 2]
    assert held.tolist() == expected and held.to(of(other)).tolist() == there.tolist()


@pytest.mark.parametrize("name", FLOATS)
def test_ops_compute_in_float32_and_give_the_dtype_back(name):
    x = adjoin.tensor([0.5, 1.0, 4.0], dtype=of(name))
    assert (x * x).tolist() == [0.25, 1, 16] and (x * x).dtype is x.dtype
    assert (x > 0.75).tolist() == [False, True, True] and x.argmax().item() == 2
    assert x.sum(dtype=adjoin.float32).item() == 5.5 and x.sum(dtype=adjoin.float32).dtype is adjoin.float32
    assert adjoin.relu(x).dtype is x.dtype and x.sort(descending=True).values.tolist() == [4, 1, 0.5]
    out = adjoin.empty(3, dtype=of(name))
    assert adjoin.add(x, x, out=out) is out and out.tolist() == [1, 2, 8]
    assert x.mul_(2.0) is x and x.tolist() == [1, 2, 8]


def test_polar_halves_are_rounded_once():
    """In any order of memory: what is permuted, too."""
    rng = np.random.default_rng(5)
    size, angle = (rng.uniform(0.1, 8, (3, 4, 2)).astype("float16") for _ in range(2))
    wide = size.astype("float64") * np.exp(1j * angle.astype("float64"))
    for order in ((0, 1, 2), (2, 1, 0)):
        x, y = (adjoin.tensor(a.transpose(order)).permute(order) for a in (size, angle))
        made = adjoin.polar(x, y)
        assert made.dtype is adjoin.complex32
        for part, wanted in ((made.real, wide.real), (made.imag, wide.imag)):
            assert (np.array(part.tolist()) == wanted.astype("float16").astype("float64")).mean() > 0.9


def test_complex32_computes_and_has_halves_as_parts():
    z = adjoin.tensor([1 + 2j, 3 - 4j], dtype=adjoin.complex32)
    assert adjoin.chalf is adjoin.complex32 and z.dtype.itemsize == 4 and z.is_complex()
    assert (z * z).tolist() == [-3 + 4j, -7 - 24j] and (z * z).dtype is adjoin.complex32
    assert z.real.dtype is adjoin.float16 and z.real.tolist() == [1, 3] and z.imag.tolist() == [2, -4]
    assert z.abs().dtype is adjoin.float16 and z.abs()[1].item() == 5 and z.conj().tolist() == [1 - 2j, 3 + 4j]
    assert adjoin.complex32.to_real() is adjoin.float16 and adjoin.float16.to_complex() is adjoin.complex32
    assert adjoin.promote_types(adjoin.complex32, adjoin.float16) is adjoin.complex32
    assert adjoin.promote_types(adjoin.complex32, adjoin.bfloat16) is adjoin.complex64
    assert adjoin.promote_types(adjoin.complex32, adjoin.complex64) is adjoin.complex64
    assert adjoin.promote_types(adjoin.int64, adjoin.complex32) is adjoin.complex32


def test_a_float_of_8_bits_joins_no_other_dtype():
    x = adjoin.ones(2, dtype=adjoin.float8_e5m2)
    for other in (adjoin.float32, adjoin.int64, adjoin.bool, adjoin.float8_e4m3fn):
        with pytest.raises(TypeError, match=r"common"):
            x + adjoin.ones(2).to(other)
        with pytest.raises(TypeError, match="no common dtype"):
            adjoin.promote_types(adjoin.float8_e5m2, other)
    assert (x + 1).dtype is adjoin.float8_e5m2


def test_gradients_pass_a_cast():
    x = adjoin.tensor([0.3, 1.7], requires_grad=True)
    (x.to(adjoin.float8_e4m3fn).float() * adjoin.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2, 3] and x.grad.dtype is adjoin.float32


@pytest.mark.parametrize("name", FLOATS)
def test_limits(name):
    info = adjoin.finfo(of(name))
    finite = np.sort(table(name)[np.isfinite(table(name))])
    assert info.bits == 8 and info.max == finite[-1] and info.min == finite[0]
    one = np.searchsorted(finite, 1.0)
    assert info.eps == finite[one + 1] - 1.0
    assert of(name).itemsize == 1 and of(name).is_signed == (name != "float8_e8m0fnu")


def test_files_keep_them(tmp_path):
    held = {name: adjoin.tensor([1.0, 2.0, 4.0], dtype=of(name)) for name in ALL}
    buffer = io.BytesIO()
    adjoin.save(held, buffer)
    buffer.seek(0)
    back = adjoin.load(buffer)
    assert all(back[n].dtype is of(n) and back[n].tolist() == [1, 2, 4] for n in ALL)
    kept = {n: held[n] for n in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")}
    adjoin.safetensors.save_file(kept, str(tmp_path / "f8.safetensors"))
    back = adjoin.safetensors.load_file(str(tmp_path / "f8.safetensors"))
    assert all(back[n].dtype is of(n) and back[n].tolist() == [1, 2, 4] for n in kept)
