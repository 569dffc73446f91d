"""tests/python/graph/slices_test.py: slices of an element-wise result are computed of slices of what it is made of: what lies between is
never made, the bits are those of eager, and where somebody sees what lies between nothing is changed."""

import os
import random

import adjoin
import pytest

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
N = 96  # N * N * 2 elements are enough to be worth it


def bits(t):
    return str(t.dtype), tuple(t.shape), t.stride(), t.contiguous().numpy().tobytes()


def both(f, *inputs, times=3):
    """The results in a scope have the bits and the strides of eager; its last region."""
    memory = adjoin.lazy
    memory.reset()
    for turn in range(times):
        copies = [x.clone() if x.is_contiguous() else x for x in inputs]
        mine = [x.clone() if x.is_contiguous() else x for x in inputs]
        wanted = f(*copies)
        with adjoin.lazy():
            given = f(*mine)
        wanted, given = ((r,) if isinstance(r, adjoin.Tensor) else r for r in (wanted, given))
        for a, b in zip(wanted, given, strict=True):
            assert bits(a) == bits(b), (SEED, turn, f)
        for a, b in zip(copies, mine, strict=True):
            assert bits(a) == bits(b), (SEED, turn, f)
    return adjoin.lazy.explain().regions[-1]


def spread(b, k=2):
    """[N, 1, k] and [1, N, k] of [N, 2k], as values that a scope makes."""
    b = b * 1.5
    return b[:, None, :k], b[None, :, k:]


def overlap(b):
    low, high = spread(b)
    sides = adjoin.clamp(adjoin.maximum(low, high) - adjoin.minimum(low, high), min=0.25)
    return (sides[..., 0] * sides[..., 1]).sqrt()


def test_what_lies_between_is_never_made():
    region = both(overlap, adjoin.randn(N, 4))
    assert region["peak"] < N * N * 4 * 1.5, region
    assert region["passes"] < region["calls"]


def test_compile_has_the_bits_of_eager():
    b = adjoin.randn(N, 4)
    f = adjoin.compile(overlap)
    for _ in range(20):
        assert bits(f(b)) == bits(overlap(b))


def test_another_number_reaches_every_slice():
    def f(b, least):
        x = adjoin.clamp(adjoin.sub(*spread(b)), min=least)
        return x[..., 0] + x[..., 1]

    b = adjoin.randn(N, 4)
    with adjoin.lazy():
        f(b, 0.5)
    for least in (0.5, 0.25, -1.0, 0.75):
        with adjoin.lazy():
            given = f(b, least)
        assert bits(given) == bits(f(b, least))


def random_case(rng):
    """A function of small tensors that are spread over three dimensions, of which one is sliced."""
    d = rng.randrange(3)
    large = [i for i in range(3) if i != d]
    sizes = [rng.choice([37, 64, 150]) for _ in range(3)]
    sizes[d] = rng.choice([2, 2, 3, 4])
    shapes = []
    for missing in (large[0], large[1], rng.choice([0, 1, 2])):
        shape = [1 if i == missing or rng.random() < 0.2 else n for i, n in enumerate(sizes)]
        shapes.append(shape[1:] if shape[0] == 1 and rng.random() < 0.5 else shape)
    ops = [rng.choice(["add", "sub", "mul", "maximum", "minimum", "lt"]) for _ in range(4)]
    one = rng.random() < 0.5
    at = [rng.randrange(-sizes[d], sizes[d]) for _ in range(2)]
    turned = rng.random() < 0.3
    dtype = rng.choice([adjoin.float32, adjoin.float64, adjoin.int32])

    def slices(x):
        if one:
            return [x.select(d, at[0]), x.select(d, at[1])]
        half = sizes[d] // 2
        return [x.narrow(d, 0, half), x.narrow(d, sizes[d] - half, half)]

    def f(x, y, z):
        x, y, z = x + 1, y * 2, z - 1
        r = getattr(adjoin, ops[0])(x + y.clamp(max=3), z)
        if ops[0] == "lt":
            r = r * 2
        r = getattr(adjoin, ops[1])(r, y)
        if ops[1] == "lt":
            r = adjoin.where(r, x, z)
        r = r + x + y + z
        if list(r.shape) != sizes:
            return r
        a, b = slices(r)
        return getattr(adjoin, ops[2])(a, b) if ops[2] != "lt" else (a < b) | (b < 0)

    values = [
        adjoin.randint(-9, 9, s).to(dtype) if dtype is adjoin.int32 else adjoin.randn(s, dtype=dtype) for s in shapes
    ]
    if turned:
        values[0] = values[0].transpose(-1, -2).contiguous().transpose(-1, -2)
    return f, values


def test_random_slices():
    rng = random.Random(SEED)
    adjoin.manual_seed(SEED)
    for _ in range(2000 if os.environ.get("ADJOIN_TEST_FULL") else 25):
        f, values = random_case(rng)
        both(f, *values, times=2)


def test_what_somebody_sees_is_made():
    def kept(b):
        x = adjoin.sub(*spread(b))
        return x, x[..., 0] + x[..., 1]

    def slice_kept(b):
        x = adjoin.sub(*spread(b))
        left = x[..., 0]
        return left, left + x[..., 1]

    def written(b):
        x = adjoin.sub(*spread(b))
        left, right = x[..., 0], x[..., 1]
        left.mul_(2)
        return left + right

    def source_written(b):
        c = b * 1.5
        x = c[:, None, :2] - c[None, :, 2:]
        left, right = x[..., 0], x[..., 1]
        c.add_(1)
        return left + right, c

    def summed(b):
        x = adjoin.sub(*spread(b))
        return x[..., 0].sum(), x[..., 1].sum(-1) + 1

    def overlapping(b):
        x = adjoin.sub(*spread(b))
        return x[1:] - x[:-1]

    def of_two_dtypes(b):
        row = (b * 1.5)[0, :2]  # a slice of it has no dimension, and says nothing about the dtype
        x = row.double() + adjoin.sub(*spread(b))
        return x[..., 0] + x[..., 1]

    def of_its_own_size(b):
        x = adjoin.sub(*spread(b)).cumsum(0) * 2
        return x[..., 0] * x[..., 1]

    for f in (kept, slice_kept, written, source_written, summed, overlapping, of_two_dtypes, of_its_own_size):
        both(f, adjoin.randn(N, 4))


@pytest.mark.parametrize("grad", [False, True])
def test_gradients_are_those_of_eager(grad):
    def run(compiled):
        adjoin.manual_seed(1)
        b = adjoin.randn(N, 4).requires_grad_(grad)
        f = adjoin.compile(overlap) if compiled else overlap
        for _ in range(4):
            y = f(b)
            if grad:
                y.sum().backward()
        return bits(y.detach()), bits(b.grad) if grad else None

    assert run(True) == run(False)
