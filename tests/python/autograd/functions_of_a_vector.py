"""tests/python/autograd/functions_of_a_vector.py: functions that tests of transforms nest: of a vector of four, to one or several numbers."""

import adjoin
import adjoin.nn.functional as F


def written(x):
    y = x * 1
    y.mul_(x)
    y[0] = y[1] * 2
    y[1:].add_(x[1:].sin())
    return y


def filled(x):
    y = adjoin.zeros(4, dtype=x.dtype)
    first = y[0:1]
    y[1:3] = x[:2] * x[2:]
    first.copy_(x[:1].exp())
    y[3] += x.sum()
    return y


def functions(dtype):
    W = adjoin.linspace(-1, 1, 16, dtype=dtype).reshape(4, 4)
    Z = adjoin.tensor([1.0, 2.0, 0.0, 3.0], dtype=dtype)
    return {
        "sin": lambda x: x.sin(),
        "polynomial": lambda x: x * x * 3 - x + 1,
        "division": lambda x: 1 / (x * x + 1),
        "power": lambda x: (x.abs() + 1) ** 1.5,
        "where": lambda x: adjoin.where(x > 0, x * 2, x.exp()),
        "clamp": lambda x: x.clamp(-0.5, 0.7) * x,
        "maximum": lambda x: adjoin.maximum(x, x.flip(0)),
        "sum": lambda x: x.sum() * x,
        "mean": lambda x: x.mean(),
        "variance": lambda x: x.var() * x,
        "norm": lambda x: x.norm(),
        "max": lambda x: x.max(0)[0] * x,
        "amax": lambda x: x.amax() - x.amin(),
        "logsumexp": lambda x: x.logsumexp(0),
        "softmax": lambda x: x.softmax(0),
        "log_softmax": lambda x: F.log_softmax(x, 0),
        "cumsum": lambda x: x.cumsum(0).sin(),
        "prod": lambda x: x.prod() * x[1] + x.reshape(2, 2).prod(0).sum(),
        "cumprod": lambda x: x.cumprod(0).sin(),
        "products with a zero": lambda x: (x * Z).prod() + (x * Z).cumprod(0),
        "sort": lambda x: x.sort().values * W[0],
        "topk": lambda x: x.topk(2).values,
        "matrix": lambda x: x @ W,
        "matrix and itself": lambda x: x.outer(x) @ W,
        "product of its own": lambda x: x.reshape(2, 2) @ x.reshape(2, 2),
        "bmm": lambda x: x.reshape(2, 1, 2).bmm(x.reshape(2, 2, 1)),
        "dot": lambda x: x.dot(x.cos()),
        "linear": lambda x: F.linear(x, W, W[0]),
        "einsum": lambda x: adjoin.einsum("i,ij,j->j", x, W, x),
        "index": lambda x: x[adjoin.tensor([0, 2, 2])] * x[1],
        "slices": lambda x: x[1:].reshape(3, 1) * x[:3],
        "gather": lambda x: x.gather(0, adjoin.tensor([3, 0])),
        "transposes": lambda x: x.reshape(2, 2).t().unsqueeze(0).permute(2, 0, 1).squeeze(1),
        "cat": lambda x: adjoin.cat([x, x.sin()]).reshape(2, 4).sum(0),
        "stack and unbind": lambda x: adjoin.stack([x, x * 2]).unbind(1)[1],
        "split": lambda x: x.split(2)[0] * x.split(2)[1],
        "expand": lambda x: x.expand(3, 4).sum(0) * x[0],
        "pad": lambda x: F.pad(x, (1, 2)).cos(),
        "layer_norm": lambda x: F.layer_norm(x, (4,), W[0], W[1]),
        "gelu": lambda x: F.gelu(x) + F.silu(x),
        "cross_entropy": lambda x: F.cross_entropy(x.unsqueeze(0), adjoin.tensor([2])),
        "convolution": lambda x: F.conv1d(x.reshape(1, 1, 4), W[:2, :2].reshape(2, 1, 2)),
        "written": written,
        "filled": filled,
        "diagonal": lambda x: adjoin.diag(x) @ W,
        "roll": lambda x: x.roll(1) * x,
        "inverse": lambda x: adjoin.linalg.inv(adjoin.diag(x.abs() + 1) + W.t() @ W),
    }
