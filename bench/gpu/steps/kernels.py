"""bench/gpu/steps/kernels.py: a call of each family of kernels beside the processor, in a minute. With a word, that family alone:
what compute-sanitizer runs."""

import sys

import adjoin
from adjoin.nn import functional as F
from pieces import DEVICE, guarded

FLOATS = (adjoin.float32, adjoin.bfloat16)


def windows(x):
    return x.reshape(1, 1, *x.shape)


def attend(x):
    heads = x[:, :32].reshape(1, 2, -1, 16)
    return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def step(x):
    """A step of each optimizer that has a kernel."""
    weights = [x.detach().clone().requires_grad_() for _ in range(2)]
    for weight, make in zip(weights, (adjoin.optim.SGD, adjoin.optim.AdamW), strict=True):
        optimizer = make([weight], lr=0.1)
        (weight * weight).sum().backward()
        optimizer.step()
    return adjoin.stack([w.detach() for w in weights])


def order(x):
    return x.float().sort(1)[0]


def places(x):
    return adjoin.arange(len(x), device=x.device).flip(0)


# Each takes a matrix, and gives what a device's kernels made of it.
FAMILIES = {
    "pointwise": lambda x: x.exp() + x * 2,
    "comparison": lambda x: (x > 0) & (x < 1),
    "cast": lambda x: x.to(adjoin.int32),
    "copy": lambda x: x.t().contiguous(),
    "where": lambda x: adjoin.where(x > 0, x, -x),
    "reduction, rows": lambda x: x.sum(1),
    "reduction, columns": lambda x: x.float().var(0),
    "reduction, all": lambda x: x.amax(),
    "scan": lambda x: x.float().cumsum(1),
    "softmax": lambda x: x.softmax(1),
    "losses": lambda x: F.cross_entropy(x.float(), places(x) % x.shape[1]),
    "layer norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "batch norm": lambda x: F.batch_norm(x.float(), None, None, training=True),
    "product": lambda x: x @ x.t(),
    "linear": lambda x: F.linear(x, x, x[:, 0]),
    "attention": attend,
    "convolution": lambda x: F.conv2d(windows(x), windows(x[:3, :3])),
    "pool": lambda x: F.max_pool2d(windows(x), 2),
    "resample": lambda x: F.interpolate(windows(x.float()), scale_factor=2, mode="bilinear"),
    "gather": lambda x: x.index_select(0, places(x)),
    "scatter": lambda x: adjoin.zeros_like(x).index_add(0, places(x) // 2, x),
    "embedding": lambda x: F.embedding(places(x), x),
    "sort": order,
    "topk": lambda x: x.float().topk(3, 1)[0],
    "random": lambda x: adjoin.manual_seed(3) and adjoin.rand(1000, device=x.device),
    "optimizers": step,
}
EXACT = "random"  # the same seed gives the same numbers on every device


def beside(family, f):
    """The call on the card and on the processor, and its gradient."""
    for dtype in FLOATS:
        adjoin.manual_seed(1)
        x = adjoin.randn(64, 48).to(dtype)
        got, wanted = f(x.to(DEVICE)), f(x)
        bound = 3e-2 if dtype == adjoin.bfloat16 else 1e-4
        if family == EXACT:
            assert adjoin.equal(got.cpu(), wanted), "other random numbers than the processor's"
        adjoin.testing.assert_close(got.cpu(), wanted, rtol=bound, atol=bound)
        if family == "optimizers" or not wanted.dtype.is_floating_point or family == EXACT:
            continue
        grads = []
        for device in (DEVICE, "cpu"):
            y = x.to(device).requires_grad_()
            f(y).float().square().mean().backward()
            grads.append(y.grad.cpu())
        adjoin.testing.assert_close(*grads, rtol=bound, atol=bound)


def main(chosen):
    for family, f in FAMILIES.items():
        if not chosen or family in chosen:
            with guarded(family):
                beside(family, f)


if __name__ == "__main__":
    main(sys.argv[1:])
