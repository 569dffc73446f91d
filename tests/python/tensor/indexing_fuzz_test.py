"""tests/python/tensor/indexing_fuzz_test.py: random keys of slices, None, ..., masks and arrays of places read and write what NumPy's do.

One int beside arrays is left out: it is taken first, as PyTorch does, where NumPy counts it among the arrays.
"""

import os
import random

import adjoin
import numpy as np


def places(rng, size, broadcast):
    shape = [n if rng.random() < 0.7 else 1 for n in broadcast][rng.randint(0, len(broadcast)) :]
    shape = shape or [1]
    flat = [rng.randint(-size, size - 1) for _ in range(int(np.prod(shape)))]
    return np.array(flat, rng.choice([np.int64, np.int32])).reshape(shape)


def entry(rng, size, broadcast):
    kind = rng.random()
    if kind < 0.35 or size == 0:
        start, stop = (rng.choice([None, rng.randint(-size - 2, size + 2)]) for _ in range(2))
        return slice(start, stop, rng.choice([None, 1, 2, 3]))
    if kind < 0.45:
        return None
    if kind < 0.55:
        return np.array([rng.random() < 0.5 for _ in range(size)])
    found = places(rng, size, broadcast)
    return found.tolist() if kind < 0.65 and found.ndim == 1 else found


def key(rng, shape):
    broadcast, out, d = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))], [], 0
    while d < len(shape):
        if rng.random() < 0.1 and Ellipsis not in [k for k in out if k is Ellipsis]:
            left = rng.randint(0, len(shape) - d - 1)  # one of no dimensions still parts NumPy's arrays
            out.append(Ellipsis)
            tail = [entry(rng, n, broadcast) for n in shape[len(shape) - left :]] if left else []
            return (*out, *[slice(None) if k is None else k for k in tail])
        if rng.random() < 0.1 and d + 1 < len(shape):
            count = shape[d] * shape[d + 1]
            out.append(np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(shape[d : d + 2]))
            d += 2
            continue
        out.append(entry(rng, shape[d], broadcast))
        d += out[-1] is not None
        if rng.random() < 0.15:
            break
    if rng.random() < 0.2 and not any(isinstance(k, (list, np.ndarray)) for k in out):
        out.insert(0, rng.randint(-shape[0], shape[0] - 1)) if shape and shape[0] and None not in out else None
        out = out[: len(shape)] if not any(k is Ellipsis or k is None for k in out) else out
    return tuple(out)


def ours(rng, key):
    return tuple(adjoin.from_numpy(k.copy()) if isinstance(k, np.ndarray) and rng.random() < 0.7 else k for k in key)


def attempt(function):
    try:
        return function()
    except (IndexError, ValueError, RuntimeError):
        return None


def one(rng):
    shape = [rng.randint(0 if rng.random() < 0.1 else 1, 5) for _ in range(rng.randint(0, 4))]
    x = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    t = adjoin.from_numpy(x.copy())
    if rng.random() < 0.3 and len(shape) > 1:
        x, t = x.swapaxes(0, -1), t.transpose(0, -1)
    k = key(rng, x.shape)
    k_ours = ours(rng, k)
    expected, got = attempt(lambda: x[k]), attempt(lambda: t[k_ours])
    assert (expected is None) == (got is None), (x.shape, k)
    if expected is None:
        return
    np.testing.assert_array_equal(got.numpy(), expected, err_msg=str((x.shape, k)))
    values = -np.arange(1.0, expected.size + 1).reshape(expected.shape)
    if np.unique(np.arange(x.size).reshape(x.shape)[k]).size < expected.size:
        values = np.full(expected.shape, -1.0)  # one place may be named twice, the order is free
    written, tensor = x.copy(), t.clone()
    written[k] = values
    tensor[k_ours] = adjoin.from_numpy(values.copy())
    np.testing.assert_array_equal(tensor.numpy(), written, err_msg=str((x.shape, k)))


def test_random_keys():
    seed = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(1500):
        one(rng)


def test_accumulate_adds_every_time():
    rng = np.random.default_rng(3)
    x, at, values = np.zeros((4, 3)), (rng.integers(-4, 4, 50), rng.integers(-3, 3, 50)), rng.standard_normal(50)
    np.add.at(x, at, values)
    t = adjoin.zeros(4, 3, dtype=adjoin.float64)
    t.index_put_(tuple(adjoin.from_numpy(a) for a in at), adjoin.from_numpy(values), accumulate=True)
    np.testing.assert_allclose(t.numpy(), x, rtol=1e-12, atol=1e-12)
