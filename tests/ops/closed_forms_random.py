"""tests/ops/closed_forms_random.py: Philox 4x32-10 (Salmon et al. 2011) in NumPy, and the rows that draw from it."""

import numpy as np
from closed_forms import FORMS, of

SEED = 20_24  # every call of a test begins at its first block
U32 = np.uint64(0xFFFFFFFF)


def blocks(seed, first, count, stream=0):
    """count x 4 words of 32 bits, from block `first`."""
    at = np.arange(count, dtype=np.uint64) + np.uint64(first)
    c = [at & U32, at >> np.uint64(32), np.full_like(at, stream), np.zeros_like(at)]
    k = [np.uint64(seed) & U32, np.uint64(seed) >> np.uint64(32)]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ k[0], b & U32, (a >> np.uint64(32)) ^ c[3] ^ k[1], a & U32]
        k = [(k[0] + np.uint64(0x9E3779B9)) & U32, (k[1] + np.uint64(0xBB67AE85)) & U32]
    return np.stack(c, -1)


def count_of(shape):
    return int(np.prod(shape, dtype=np.int64))


def uniforms(shape, dtype, seed=SEED, offset=0):
    """Numbers of [0, 1) in float32 (24 bits of a word) or float64 (53 bits of two words)."""
    n = count_of(shape)
    if dtype == np.float64:
        w = blocks(seed, offset, (n + 1) // 2)
        wide = (w[:, 0::2] | w[:, 1::2] << np.uint64(32)).ravel()[:n]
        return ((wide >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)
    words = blocks(seed, offset, (n + 3) // 4).ravel()[:n]
    return ((words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)


def normals(shape, dtype, seed=SEED, offset=0):
    """Box and Muller: the cosine to the even element of a pair, the sine to the odd one."""
    n = count_of(shape)
    u = uniforms([n + n % 2], dtype, seed, offset)
    radius, angle = np.sqrt(-2 * np.log(1 - u[0::2])), dtype(2 * np.pi) * u[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).ravel()[:n].reshape(shape)


def integers(shape, low, high, seed=SEED, offset=0):
    """Multiply-high; words that would favour some values are drawn again in the next stream."""
    n, span = count_of(shape), high - low
    wide = span > 2**32
    bits, per = (64, 2) if wide else (32, 4)
    out, todo, stream = np.zeros(n, object), np.arange(n), 0
    while len(todo):
        w = blocks(seed, offset, (n + per - 1) // per, stream)
        words = (w[:, 0::2] | w[:, 1::2] << np.uint64(32)).ravel() if wide else w.ravel()
        product = words[todo].astype(object) * span
        fine = np.array([span <= 2**24 or int(p) % 2**bits >= 2**bits % span for p in product], bool)
        out[todo[fine]] = [int(p) >> bits for p in product[fine]]
        todo, stream = todo[~fine], stream + 1
    return (out + low).astype(np.int64).reshape(shape)


def kind(x):
    return np.float64 if x.dtype == np.float64 else np.float32


def shuffled(n):
    order = list(range(n))
    for i, draw in enumerate(integers([n], 0, 2**62)):
        j = i + (int(draw) * (n - i) >> 62)
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


FORMS |= {
    "uniform_philox_": lambda input, low, high, seed, offset: (
        uniforms(input.shape, kind(input), seed, offset) * (high - low) + low),
    "normal_philox_": lambda input, mean, std, seed, offset: normals(input.shape, kind(input), seed, offset) * std + mean,
    "randint_philox_": lambda input, low, high, seed, offset: integers(input.shape, low, high, seed, offset).astype(input.dtype),
    "dropout_philox": lambda input, p, seed, offset: np.where(
        uniforms(input.shape, np.float32, seed, offset) >= p, input / (1 - p), 0),
    "normal_": lambda input, mean=0, std=1: normals(input.shape, kind(input)) * std + mean,
    "random_": lambda input: integers(input.shape, 0, 2**53).astype(input.dtype),
    "random_.to": lambda input, to: integers(input.shape, 0, to).astype(input.dtype),
    "bernoulli_": lambda input, p: (uniforms(input.shape, kind(input)) < p).astype(input.dtype),
    "bernoulli_.Tensor": lambda input, p: (uniforms(input.shape, kind(input)) < p).astype(input.dtype),
    "bernoulli": lambda input: (uniforms(input.shape, kind(input)) < input).astype(input.dtype),
    "bernoulli.p": lambda input, p: (uniforms(input.shape, kind(input)) < p).astype(input.dtype),
    "exponential_": lambda input, lambd=1: -np.log1p(-uniforms(input.shape, kind(input))) / lambd,
    "geometric_": lambda input, p: np.maximum(1, np.ceil(np.log1p(-uniforms(input.shape, kind(input))) / np.log1p(-p))),
    "log_normal_": lambda input, mean, std: np.exp(normals(input.shape, kind(input)) * std + mean),
    "cauchy_": lambda input, median, sigma: median + sigma * np.tan(np.pi * (uniforms(input.shape, kind(input)) - 0.5)),
    "rand": lambda size: uniforms(size, np.float32),
    "randn": lambda size: normals(size, np.float32),
    "randint": lambda high, size, low=0: integers(size, low, high),
    "randint.low": lambda high, size, low=0: integers(size, low, high),
    "randperm": shuffled,
    "rand_like": lambda input: uniforms(input.shape, kind(input)),
    "randn_like": lambda input: normals(input.shape, kind(input)),
    "randint_like": lambda input, high, low=0: integers(input.shape, low, high).astype(input.dtype),
    "randint_like.low": lambda input, high, low=0: integers(input.shape, low, high).astype(input.dtype),
    "normal": lambda mean, std: normals(mean.shape, kind(mean)) * std + mean,
    "normal.float_Tensor": lambda std, mean: normals(std.shape, kind(std)) * std + mean,
    "normal.size": lambda mean, std, size: normals(size, np.float32) * np.float32(std) + np.float32(mean),
}  # fmt: skip


@of("uniform_")
def uniform(input, to=1, **begin):
    low = begin.get("from", 0)
    return uniforms(input.shape, kind(input)) * (to - low) + low


@of("random_.from")
def random_from(input, to, **begin):
    return integers(input.shape, begin["from"], 2**53 if to is None else to).astype(input.dtype)


@of("multinomial")
def multinomial(input, num_samples, replacement=False):
    """With replacement: how many steps of the running sum lie below a number. Without: the largest weight / exponential."""
    if replacement:
        sums = np.cumsum(input, -1)
        u = uniforms((*input.shape[:-1], num_samples), kind(input)) * sums[..., -1:]
        return (sums[..., None, :] <= u[..., None]).sum(-1)
    e = -np.log1p(-uniforms(input.shape, kind(input)))
    return np.argsort(-input / e, axis=-1)[..., :num_samples]


FORMS["nn::dropout"] = lambda input, p=0.5, training=True: (
    np.where(uniforms(input.shape, np.float32) >= p, input / (1 - p), 0) if training else input)  # fmt: skip


@of("nn::feature_dropout", "nn::dropout1d", "nn::dropout2d", "nn::dropout3d")
def channels(input, p=0.5, training=True):
    if not training:
        return input
    kept = uniforms(input.shape[:2], np.float32) >= p
    return np.where(kept.reshape(*kept.shape, *[1] * (input.ndim - 2)), input / (1 - p), 0)


@of("nn::alpha_dropout")
def alpha_dropout(input, p=0.5, training=False):
    if not training or p in (0, 1):
        return input * (0 if training and p == 1 else 1)
    low = -1.7580993408473766
    a = 1 / np.sqrt((1 - p) * (1 + p * low**2))
    return a * np.where(uniforms(input.shape, kind(input)) >= p, input, low) - a * low * p
