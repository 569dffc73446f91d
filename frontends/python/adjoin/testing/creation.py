"""adjoin.testing.creation: make_tensor, random tensors of any dtype and layout to test with."""

import math

import adjoin

_INT_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint8": 8, "uint16": 16,
             "uint32": 32, "uint64": 63}  # fmt: skip


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False,
                noncontiguous=False, exclude_zero=False, memory_format=None):  # fmt: skip
    """Uniform in [low, high): floats and complex parts in [-9, 9], integers in [-9, 9], uint8 in
    [0, 9], bools.

    ``noncontiguous`` gives every other element of a larger tensor; ``exclude_zero`` puts the
    smallest positive number, or one, in place of zeros.
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: noncontiguous and memory_format exclude each other; give one of them")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    # Every other element of the last dimension is not contiguous, if there is more than one.
    spread = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if spread else shape
    result = _draw(drawn, dtype, device, low, high)
    if spread:
        result = result[..., ::2]
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = _smallest(dtype)
    if requires_grad:
        result.requires_grad = True
    return result


def _name(dtype):
    return str(dtype).rpartition(".")[2]


def _smallest(dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return {"float16": 2.0**-14}.get(_name(dtype), 2.0**-126 if dtype.itemsize < 8 else 2.0**-1022)
    return 1


def _bounds(low, high, least, most, default):
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    low, high = max(low, least), min(high, most)
    if low > high:
        raise ValueError(f"make_tensor: low is {low} and high {high}; low has to be below high")
    return low, high


def _draw(shape, dtype, device, low, high):
    name = _name(dtype)
    if name == "bool":
        low, high = _bounds(low, high, 0, 2, (0, 2))
        return adjoin.randint(int(low), int(high), shape, device=device, dtype=dtype)
    if name in _INT_BITS:
        unsigned = name.startswith("u")
        least = 0 if unsigned else -(2 ** _INT_BITS[name])
        most = 2 ** _INT_BITS[name] - (1 if _INT_BITS[name] == 63 else 0)
        low, high = _bounds(low, high, least, most, (0 if unsigned else -9, 10))
        return adjoin.randint(math.floor(low), math.ceil(high), shape, device=device, dtype=dtype)
    low, high = _bounds(low, high, -3.4e38, 3.4e38, (-9, 9))
    if dtype.is_complex:
        real = adjoin.float32 if name == "complex64" else adjoin.float64
        parts = adjoin.empty((*shape, 2), dtype=real, device=device).uniform_(low, high)
        return adjoin.view_as_complex(parts)
    if dtype.itemsize >= 4:
        return adjoin.empty(shape, dtype=dtype, device=device).uniform_(low, high)
    return adjoin.empty(shape, dtype=adjoin.float32, device=device).uniform_(low, high).to(dtype)
