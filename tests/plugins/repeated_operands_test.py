"""tests/plugins/repeated_operands_test.py: an operand that is one value for all gives the bits of the same value written
out: in every place, in every dtype, at lengths around vectors and the buffers that values are written out in."""

import itertools

import adjoin
import numpy as np
import pytest

LENGTHS = [1, 3, 17, 64, 511, 513, 2047, 2600]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
WHOLE = ["int32", "int64", "int16", "uint8"]
OF_FLOATS = (
    "add sub mul div maximum minimum pow atan2 hypot logaddexp remainder fmod floor_divide eq lt ge xlogy fmax".split()
)
OF_WHOLE = "add sub mul maximum remainder floor_divide bitwise_and bitwise_xor bitwise_left_shift ne le".split()


def cases():
    yield from ((name, 2, dtype) for name in OF_FLOATS for dtype in FLOATS)
    yield from ((name, 2, dtype) for name in OF_WHOLE for dtype in WHOLE)
    yield from ((name, 3, dtype) for name in ("clamp", "lerp", "addcmul", "addcdiv") for dtype in FLOATS)
    yield from (("where", 3, dtype) for dtype in [*FLOATS, *WHOLE, "bool"])


def operand(rng, name, place, dtype, n):
    if name == "where" and place == 0:
        return adjoin.tensor(rng.random(n) < 0.5)
    return adjoin.tensor(rng.integers(1, 7, n) / (4 if dtype in FLOATS else 1)).to(getattr(adjoin, dtype))


def bits(t):
    return t.to(adjoin.float64).numpy()


@pytest.mark.parametrize("name, places, dtype", list(cases()))
def test_a_repeated_operand_is_the_same_written_out(name, places, dtype):
    rng, call = np.random.default_rng(5), getattr(adjoin, name)
    for n, repeated in itertools.product(LENGTHS, itertools.product([False, True], repeat=places)):
        given = [operand(rng, name, k, dtype, 1 if r else n).expand(n) for k, r in enumerate(repeated)]
        want = bits(call(*(t.contiguous() for t in given)))
        np.testing.assert_array_equal(bits(call(*given)), want, err_msg=f"{n} {repeated}")
        # in rows of a matrix, each with a value of its own
        rows = [
            adjoin.stack((t[:1], t[-1:])).expand(2, n) if r else adjoin.stack((t, t)) for t, r in zip(given, repeated)
        ]
        want = bits(call(*(t.contiguous() for t in rows)))
        np.testing.assert_array_equal(bits(call(*rows)), want, err_msg=f"2 x {n} {repeated}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", LENGTHS)
def test_a_number_is_the_same_written_out(n, dtype):
    x = operand(np.random.default_rng(6), "", 0, dtype, n)
    two = adjoin.full((n,), 2.0, dtype=x.dtype)
    for call in (
        lambda a, b: a - b,
        lambda a, b: b - a,
        lambda a, b: a**b,
        lambda a, b: b**a,
        lambda a, b: a % b,
        lambda a, b: a < b,
        lambda a, b: adjoin.where(x > 1, b, a),
        lambda a, b: adjoin.clamp(a, b * 0.25, b * 0.5),
    ):
        np.testing.assert_array_equal(bits(call(x, 2.0)), bits(call(x, two)))
