"""bench/graph_cases.py: functions whose programs are timed by graphs.py, written once for PyTorch and Adjoin."""

import math

CASES = {}


def case(make):
    """make(T) gives the function and its inputs."""
    CASES[make.__name__] = make
    return make


def gelu(T, n):
    return (lambda x: x * 0.5 * (1 + T.erf(x * math.sqrt(0.5)))), (T.randn(n),)


@case
def gelu_1e6(T):
    return gelu(T, 1_000_000)


@case
def gelu_1e4(T):
    return gelu(T, 10_000)


@case
def chain_1e7(T):
    def f(x, y):
        for k in range(5):
            x = x * y + 0.1 * k
        return x

    return f, (T.randn(10_000_000), T.randn(10_000_000))


@case
def layer_norm(T):
    def f(x, w, b):
        d = x - x.mean(-1, keepdim=True)
        return d * T.rsqrt((d * d).mean(-1, keepdim=True) + 1e-5) * w + b

    return f, (T.randn(2048, 768), T.randn(768), T.randn(768))


@case
def softmax_by_hand(T):
    def f(x, mask):
        y = x * 0.125 + mask
        e = (y - y.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    return f, (T.randn(2048, 512), T.zeros(512))


@case
def softmax_dropout(T):
    def f(x, mask):
        return T.nn.functional.dropout(T.softmax(x * 0.125 + mask, -1), 0.1, True)

    return f, (T.randn(2048, 512), T.zeros(512))


@case
def adam(T):
    def f(p, g, m, v):
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return p - 1e-3 * (m / 0.5) / (T.sqrt(v / 0.5) + 1e-8), m, v

    n = 1_000_000
    return f, (T.randn(n), T.randn(n), T.zeros(n), T.zeros(n))


@case
def ops_150_on_4(T):
    def f(x, a, b):
        for _ in range(50):
            x = T.sin(x * a + b) + x
        return x

    return f, (T.randn(4), T.randn(4), T.randn(4))


@case
def mlp_784(T):
    def f(x, w1, b1, w2, b2):
        linear = T.nn.functional.linear
        return T.softmax(linear(T.relu(linear(x, w1, b1)), w2, b2), -1)

    return f, (T.randn(64, 784), T.randn(256, 784) * 0.05, T.zeros(256), T.randn(10, 256) * 0.05, T.zeros(10))


@case
def gpt_block(T):
    batch, time, dim, heads = 4, 64, 128, 4
    F = T.nn.functional
    shapes = [(dim,), (dim,), (3 * dim, dim), (3 * dim,), (dim, dim), (dim,), (dim,), (dim,)]
    shapes += [(4 * dim, dim), (4 * dim,), (dim, 4 * dim), (dim,)]

    def f(x, mask, w1, b1, wq, bq, wo, bo, w2, b2, wu, bu, wd, bd):
        z = F.linear(F.layer_norm(x, (dim,), w1, b1), wq, bq)
        q, k, v = z.reshape(batch, time, 3, heads, dim // heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = T.softmax(q @ k.transpose(-1, -2) * (1 / math.sqrt(dim // heads)) + mask, -1)
        x = x + F.linear((a @ v).transpose(1, 2).reshape(batch, time, dim), wo, bo)
        return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (dim,), w2, b2), wu, bu)), wd, bd)

    mask = T.full((time, time), float("-inf")).triu(1)
    return f, (T.randn(batch, time, dim), mask, *(T.randn(*s) * 0.05 for s in shapes))


@case
def lstm_16_steps(T):
    batch, size, steps = 16, 64, 16

    def f(x, w, b):
        h, c = T.zeros(batch, size), T.zeros(batch, size)
        for t in range(steps):
            i, forget, g, o = T.nn.functional.linear(T.cat([x[t], h], 1), w, b).chunk(4, 1)
            c = T.sigmoid(forget) * c + T.sigmoid(i) * T.tanh(g)
            h = T.sigmoid(o) * T.tanh(c)
        return h

    return f, (T.randn(steps, batch, size), T.randn(4 * size, 2 * size) * 0.1, T.zeros(4 * size))


@case
def boxes_256(T):
    n = 256

    def f(boxes, scores):
        order = T.argsort(scores, descending=True)
        b = boxes[order]
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        low, high = T.maximum(b[:, None, :2], b[None, :, :2]), T.minimum(b[:, None, 2:], b[None, :, 2:])
        sides = T.clamp(high - low, min=0)
        inter = sides[..., 0] * sides[..., 1]
        over = T.triu(inter / (area[:, None] + area[None, :] - inter) > 0.5, 1)
        keep = T.ones(n, dtype=T.bool)
        for i in range(16):
            keep = keep & ~(over[i] & keep[i])
        return order, keep

    corner, size = T.rand(n, 2) * 100, T.rand(n, 2) * 20 + 1
    return f, (T.cat([corner - size, corner + size], 1), T.rand(n))
