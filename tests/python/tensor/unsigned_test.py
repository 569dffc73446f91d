"""tests/python/tensor/unsigned_test.py: uint16, uint32 and uint64 in arithmetic, comparisons, bits, reductions, products, sorting and
indexing: as NumPy has them, on the host's kernels and the reference's."""

import adjoin
import numpy as np
import pytest

NAMES = ["uint16", "uint32", "uint64"]
DEVICES = ["cpu", "reference"]
PAIRS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floor_divide": np.floor_divide, "remainder": np.remainder,
    "fmod": np.fmod, "maximum": np.maximum, "minimum": np.minimum, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "gcd": np.gcd, "pow": None,
}  # fmt: skip
ONES = {
    "neg": np.negative, "square": np.square, "sign": np.sign, "bitwise_not": np.bitwise_not, "logical_not": np.logical_not,
    "abs": np.abs, "floor": None, "ceil": None, "trunc": None, "round": None, "relu": None, "isnan": np.isnan,
    "isfinite": np.isfinite, "signbit": None,
}  # fmt: skip


def numbers(name, seed, n=700):
    """Small numbers, some near the largest, a zero; strides of two."""
    rng, most = np.random.default_rng(seed), np.iinfo(name).max
    wide = rng.integers(0, most, 2 * n, dtype=name, endpoint=True)
    small = rng.random(2 * n) < 0.5
    wide[small] = rng.integers(0, 9, int(small.sum())).astype(name)
    wide[:3] = [most, 0, 1]
    return wide[::2]


def moved(array, device):
    return adjoin.from_numpy(array).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_two_operands(name, device):
    a, b = numbers(name, 1), numbers(name, 2)
    b = np.where(b == 0, np.ones(1, name), b)
    for op, expected in PAIRS.items():
        if op == "pow":
            got, right = adjoin.pow(moved(a, device), 3), a * a * a
        else:
            got, right = getattr(adjoin, op)(moved(a, device), moved(b, device)), expected(a, b)
        assert str(got.dtype) == f"adjoin.{right.dtype}", op
        np.testing.assert_array_equal(got.cpu().numpy(), right, err_msg=op)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_one_operand(name, device):
    a = numbers(name, 3)
    for op, expected in ONES.items():
        right = np.zeros(a.shape, bool) if op == "signbit" else a if expected is None else expected(a)
        np.testing.assert_array_equal(getattr(adjoin, op)(moved(a, device)).cpu().numpy(), right, err_msg=op)


@pytest.mark.parametrize("name", NAMES)
def test_shifts_numbers_and_in_place(name):
    a = numbers(name, 4)
    t, bits = moved(a, "cpu"), np.iinfo(name).bits
    np.testing.assert_array_equal((t << 3).numpy(), a << np.array(3, name))
    np.testing.assert_array_equal((t >> 3).numpy(), a >> np.array(3, name))
    assert not (t << bits).any() and not (t >> bits).any()
    np.testing.assert_array_equal((t + 1).numpy(), a + np.array(1, name))
    np.testing.assert_array_equal((5 - t).numpy(), np.array(5, name) - a)
    np.testing.assert_array_equal(t.clone().mul_(3).add_(t).numpy(), a * np.array(3, name) + a)
    np.testing.assert_array_equal(t.clamp(2, 7).numpy(), np.clip(a, 2, 7))
    np.testing.assert_array_equal(adjoin.where(t > 4, t, 0).numpy(), np.where(a > 4, a, np.array(0, name)))
    assert (t / 2).dtype == adjoin.float32 and t.float().dtype == adjoin.float32
    with pytest.raises(RuntimeError, match="division by zero"):
        t // 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_reductions_order_and_products(name, device):
    a = numbers(name, 5, 693).reshape(21, 33)
    t = moved(a, device)
    for op in ("max", "min"):
        values, places = getattr(t, op)(1)
        np.testing.assert_array_equal(values.cpu().numpy(), getattr(a, op)(1))
        np.testing.assert_array_equal(places.cpu().numpy(), getattr(np, "arg" + op)(a, 1))
        assert getattr(t, op)().item() == int(getattr(a, op)())
    assert t.sum().dtype == adjoin.int64
    np.testing.assert_array_equal(t.sum(0).cpu().numpy(), a.astype(np.int64).sum(0))
    np.testing.assert_array_equal(t.cumsum(0, dtype=t.dtype).cpu().numpy(), np.cumsum(a, 0, dtype=name))
    np.testing.assert_array_equal(t.sort(1).values.cpu().numpy(), np.sort(a, 1))
    np.testing.assert_array_equal(t.topk(4, 1).values.cpu().numpy(), -np.sort(-a.astype(object), 1)[:, :4])
    np.testing.assert_array_equal(t.kthvalue(5, 1).values.cpu().numpy(), np.sort(a, 1)[:, 4])
    np.testing.assert_array_equal(t.cummax(1).values.cpu().numpy(), np.maximum.accumulate(a, 1))
    places = adjoin.searchsorted(t[0].sort().values, t[1])
    np.testing.assert_array_equal(places.cpu().numpy(), np.searchsorted(np.sort(a[0]), a[1]))
    np.testing.assert_array_equal((t @ t.T).cpu().numpy(), a @ a.T)
    assert bool(t.any()) and not bool(t.all())


@pytest.mark.parametrize("name", NAMES)
def test_indexing_and_sets(name):
    a = numbers(name, 6)
    t, mask = moved(a, "cpu"), a > np.array(3, name)
    index = np.arange(0, 700, 7)
    np.testing.assert_array_equal(t[moved(mask, "cpu")].numpy(), a[mask])
    np.testing.assert_array_equal(t[moved(index, "cpu")].numpy(), a[index])
    np.testing.assert_array_equal(t.unique().numpy(), np.unique(a))
    added = np.zeros(9, name)
    np.add.at(added, index % 9, a[index])
    to = adjoin.zeros(9, dtype=t.dtype)
    np.testing.assert_array_equal(to.scatter_add(0, moved(index % 9, "cpu"), t[moved(index, "cpu")]).numpy(), added)
    np.testing.assert_array_equal(adjoin.cat([t, t]).numpy(), np.concatenate([a, a]))
    assert adjoin.equal(t, t.clone()) and adjoin.isin(t, t[:3]).any()
    filled = t.masked_fill(moved(mask, "cpu"), 2)
    np.testing.assert_array_equal(filled.numpy(), np.where(mask, np.array(2, name), a))


def test_the_largest_are_themselves():
    most = 2**64 - 1
    t = adjoin.tensor([most, 2**63, 5], dtype=adjoin.uint64)
    assert t.tolist() == [most, 2**63, 5] and t.max().item() == most and t.min().item() == 5
    assert (t // 2).tolist() == [2**63 - 1, 2**62, 2] and (t > 5).tolist() == [True, True, False]
    assert repr(t).startswith("tensor([18446744073709551615,  9223372036854775808,                    5],")


@pytest.mark.parametrize("name", NAMES)
def test_no_dtype_holds_these_and_signed_numbers(name):
    with pytest.raises(TypeError, match="no common"):
        adjoin.ones(2, dtype=getattr(adjoin, name)) + adjoin.ones(2, dtype=adjoin.int64)
