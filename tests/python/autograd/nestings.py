"""tests/python/autograd/nestings.py: vmap, grad and jvp inside each other, and the same by loops and one tape."""

import adjoin
from adjoin.func import grad, jvp, vmap

DOUBLE = adjoin.float64
NESTINGS = ["v", "g", "j", *(outer + inner for outer in "vgj" for inner in "vgj")]
X = adjoin.tensor([0.3, -1.1, 0.7, 1.9], dtype=DOUBLE)
ALONG = adjoin.tensor([0.5, 1.25, -0.75, 1.0], dtype=DOUBLE)


def rows(x):
    """Three samples that hang on one vector."""
    return adjoin.stack([x, x.flip(0) * 0.5, x + 0.25])


def number(y):
    """One number, in which each result has a weight of its own."""
    return (y * adjoin.linspace(0.5, 1.5, y.numel(), dtype=DOUBLE).reshape(y.shape)).sum()


# What a letter makes of a function of a vector: by a transform, and by a loop or the tape alone.
TRANSFORMS = {
    "v": lambda f: lambda x: vmap(f, randomness="different")(rows(x)),
    "g": lambda f: grad(lambda x: number(f(x))),
    "j": lambda f: lambda x: jvp(f, (x,), (ALONG,))[1],
}


def loop(f):
    return lambda x: adjoin.stack([f(row) for row in rows(x)])


def tape(f):
    def derivative(x):
        x = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
        y = number(f(x))
        made = adjoin.autograd.grad(y, x, create_graph=True, allow_unused=True)[0] if y.requires_grad else None
        return adjoin.zeros_like(x) if made is None else made

    return derivative


def line(f):
    """f along a line, by the gradient of each of its results."""

    def derivative(x):
        step = adjoin.zeros((), dtype=DOUBLE, requires_grad=True)
        y = f(x + step * ALONG)
        each = y.reshape(-1).unbind() if y.requires_grad else []
        made = [adjoin.autograd.grad(one, step, create_graph=True, allow_unused=True)[0] for one in each]
        zero = adjoin.zeros((), dtype=DOUBLE)
        return adjoin.stack([zero if m is None else m for m in made]).reshape(y.shape) if each else adjoin.zeros_like(y)

    return derivative


REFERENCES = {"v": loop, "g": tape, "j": line}


def nested(letters, f, makers):
    for letter in reversed(letters):
        f = makers[letter](f)
    return f
