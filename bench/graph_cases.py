"""bench/graph_cases.py: functions whose programs are timed by graphs.py, written once for PyTorch and Adjoin.

A case gives the function and its inputs; one that trains gives a third thing, which makes a step of the function. Those with
a goal stand in graph_cases_jax.py, too.
"""

import math

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def steps(T, params, *inputs, rate=0.0):
    """What makes a step of a loss: forward, backward, the gradients taken off the parameters (rate 0: left out)."""
    for p in params:
        p.requires_grad_(True)

    def step_of(f):
        def step():
            loss = f(*inputs, *params)
            loss.backward()
            with T.no_grad():
                for p in params:
                    if rate:
                        p.sub_(p.grad, alpha=rate)
                    p.grad = None
            return loss

        return step

    return (*inputs, *params), step_of


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


def mlp(T, batch, *sizes):
    F = T.nn.functional
    params = []
    for i, o in zip(sizes, sizes[1:]):
        params += [T.randn(o, i) * 0.05, T.zeros(o)]

    def loss(x, y, *ps):
        for i in range(0, len(ps), 2):
            x = F.linear(x, ps[i], ps[i + 1])
            if i + 2 < len(ps):
                x = T.relu(x)
        return F.cross_entropy(x, y)

    x, y = T.randn(batch, sizes[0]), T.randint(0, sizes[-1], (batch,))
    return loss, *steps(T, params, x, y, rate=1e-3)


@case
def mlp_tiny_step(T):
    return mlp(T, 8, 8, 32, 10)


@case
def mlp_784_step(T):
    return mlp(T, 64, 784, 256, 10)


@case
def mlp_784_forward(T):
    def f(x, w1, b1, w2, b2):
        linear = T.nn.functional.linear
        return T.softmax(linear(T.relu(linear(x, w1, b1)), w2, b2), -1)

    return f, (T.randn(64, 784), T.randn(256, 784) * 0.05, T.zeros(256), T.randn(10, 256) * 0.05, T.zeros(10))


def gpt(T):
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
def gpt_block_forward(T):
    return gpt(T)


@case
def gpt_block_step(T):
    f, (x, mask, *params) = gpt(T)

    def loss(*args):
        y = f(*args)
        return (y * y).mean()

    return loss, *steps(T, params, x, mask)


def lstm(T):
    batch, size, times = 16, 64, 16

    def f(x, w, b):
        h, c = T.zeros(batch, size), T.zeros(batch, size)
        for t in range(times):
            i, forget, g, o = T.nn.functional.linear(T.cat([x[t], h], 1), w, b).chunk(4, 1)
            c = T.sigmoid(forget) * c + T.sigmoid(i) * T.tanh(g)
            h = T.sigmoid(o) * T.tanh(c)
        return h

    return f, (T.randn(times, batch, size), T.randn(4 * size, 2 * size) * 0.1, T.zeros(4 * size))


@case
def lstm_16_forward(T):
    return lstm(T)


@case
def lstm_16_step(T):
    f, (x, *params) = lstm(T)
    return (lambda *args: f(*args).sum()), *steps(T, params, x)


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
