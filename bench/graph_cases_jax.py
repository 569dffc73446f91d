"""bench/graph_cases_jax.py: those cases of graph_cases.py that have a goal, for jax.jit: each gives a function without arguments."""

import math

import jax
import jax.numpy as jnp
import numpy as np

CASES = {}
numbers = np.random.default_rng(0)


def case(make):
    CASES[make.__name__] = make
    return make


def randn(*shape):
    return jnp.asarray(numbers.standard_normal(shape), jnp.float32)


def jitted(f, *inputs):
    g = jax.jit(f)
    return lambda: g(*inputs)


def gelu(x):
    return x * 0.5 * (1 + jax.lax.erf(x * math.sqrt(0.5)))


def norm(x, w, b):
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w + b


@case
def gelu_1e6():
    return jitted(gelu, randn(1_000_000))


@case
def gelu_1e4():
    return jitted(gelu, randn(10_000))


@case
def layer_norm():
    return jitted(norm, randn(2048, 768), randn(768), randn(768))


@case
def softmax_dropout():
    def f(x, mask, key):
        y = jax.nn.softmax(x * 0.125 + mask, -1)
        return jnp.where(jax.random.bernoulli(key, 0.9, y.shape), y / 0.9, 0)

    return jitted(f, randn(2048, 512), jnp.zeros(512), jax.random.PRNGKey(0))


@case
def adam():
    def f(p, g, m, v):
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return p - 1e-3 * (m / 0.5) / (jnp.sqrt(v / 0.5) + 1e-8), m, v

    n = 1_000_000
    return jitted(f, randn(n), randn(n), jnp.zeros(n), jnp.zeros(n))


@case
def ops_150_on_4():
    def f(x, a, b):
        for _ in range(50):
            x = jnp.sin(x * a + b) + x
        return x

    return jitted(f, randn(4), randn(4), randn(4))


def mlp(batch, *sizes):
    params = []
    for i, o in zip(sizes, sizes[1:], strict=False):
        params += [randn(o, i) * 0.05, jnp.zeros(o)]

    def loss(ps, x, y):
        for i in range(0, len(ps), 2):
            x = x @ ps[i].T + ps[i + 1]
            if i + 2 < len(ps):
                x = jax.nn.relu(x)
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

    def step(ps, x, y):
        told, grads = jax.value_and_grad(loss)(ps, x, y)
        return told, [p - 1e-3 * g for p, g in zip(ps, grads, strict=True)]

    f, held = jax.jit(step), [params]
    x, y = randn(batch, sizes[0]), jnp.asarray(numbers.integers(0, sizes[-1], batch))

    def run():
        told, held[0] = f(held[0], x, y)
        return told, held[0]

    return run


@case
def mlp_tiny_step():
    return mlp(8, 8, 32, 10)


@case
def mlp_784_step():
    return mlp(64, 784, 256, 10)


@case
def gpt_block_step():
    batch, time, dim, heads = 4, 64, 128, 4
    shapes = [(dim,), (dim,), (3 * dim, dim), (3 * dim,), (dim, dim), (dim,), (dim,), (dim,)]
    shapes += [(4 * dim, dim), (4 * dim,), (dim, 4 * dim), (dim,)]

    def loss(params, x, mask):
        w1, b1, wq, bq, wo, bo, w2, b2, wu, bu, wd, bd = params
        z = norm(x, w1, b1) @ wq.T + bq
        q, k, v = z.reshape(batch, time, 3, heads, dim // heads).transpose(2, 0, 3, 1, 4)
        a = jax.nn.softmax(q @ k.swapaxes(-1, -2) * (1 / math.sqrt(dim // heads)) + mask, -1)
        x = x + (a @ v).transpose(0, 2, 1, 3).reshape(batch, time, dim) @ wo.T + bo
        x = x + gelu(norm(x, w2, b2) @ wu.T + bu) @ wd.T + bd
        return (x * x).mean()

    mask = jnp.triu(jnp.full((time, time), -jnp.inf), 1)
    return jitted(jax.value_and_grad(loss), [randn(*s) * 0.05 for s in shapes], randn(batch, time, dim), mask)


@case
def lstm_16_step():
    batch, size, times = 16, 64, 16

    def loss(params, x):
        w, b = params
        h, c = jnp.zeros((batch, size)), jnp.zeros((batch, size))
        for t in range(times):
            i, forget, g, o = jnp.split(jnp.concatenate([x[t], h], 1) @ w.T + b, 4, 1)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return h.sum()

    params = (randn(4 * size, 2 * size) * 0.1, jnp.zeros(4 * size))
    return jitted(jax.value_and_grad(loss), params, randn(times, batch, size))


@case
def boxes_256():
    n = 256
    corner, size = numbers.random((n, 2)) * 100, numbers.random((n, 2)) * 20 + 1
    boxes = jnp.asarray(np.concatenate([corner - size, corner + size], 1), jnp.float32)

    def f(boxes, scores):
        order = jnp.argsort(-scores)
        b = boxes[order]
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        low, high = jnp.maximum(b[:, None, :2], b[None, :, :2]), jnp.minimum(b[:, None, 2:], b[None, :, 2:])
        sides = jnp.clip(high - low, 0)
        inter = sides[..., 0] * sides[..., 1]
        over = jnp.triu(inter / (area[:, None] + area[None, :] - inter) > 0.5, 1)
        keep = jnp.ones(n, bool)
        for i in range(16):
            keep = keep & ~(over[i] & keep[i])
        return order, keep

    return jitted(f, boxes, jnp.asarray(numbers.random(n), jnp.float32))
