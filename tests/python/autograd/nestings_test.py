"""tests/python/autograd/nestings_test.py: twelve nestings of vmap, grad and jvp, against loops and one tape: of functions that
view, write in place, have a derivative of their own, are run again, are hooked, draw.
"""

import os
import random

import adjoin
import pytest
from adjoin.func import grad, vmap
from adjoin.utils.checkpoint import checkpoint
from functions_of_a_vector import functions
from nestings import DOUBLE, NESTINGS, REFERENCES, TRANSFORMS, X, nested, rows

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
SEED = os.environ.get("ADJOIN_TEST_SEED", "0")
FUNCTIONS = functions(DOUBLE)


class Cube(adjoin.autograd.Function):
    """Keeps an argument and a result; its derivative is not that of its forward, so that one sees who was asked."""

    @staticmethod
    def forward(x):
        return x * x * 0.5 + x, x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = 3.0
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, g, h):
        x, e = ctx.saved_tensors
        return g * x.sin() * ctx.factor + h * e * e


class Parts(Cube):
    generate_vmap_rule = True


class Rule(Cube):
    @staticmethod
    def vmap(info, in_dims, x):
        return Rule.apply(x.movedim(in_dims[0], 0)), (0, 0)


class Pushed(Cube):
    """With a forward mode of its own, which agrees with its backward."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output):
        Cube.setup_context(ctx, inputs, output)
        ctx.save_for_forward(output[1], inputs[0])

    @staticmethod
    def jvp(ctx, t):
        e, x = ctx.saved_tensors
        return t * x.sin() * ctx.factor, t * e * e


def custom(cls):
    def variant(f):
        def changed(x):
            a, b = cls.apply(x)
            return f(a) * b.sum()

        return changed

    return variant


def viewed(f):
    def changed(x):
        base = adjoin.stack([x * 2, x]).t()
        y = f(base[:, 1].unsqueeze(0).expand(2, 4)[1])
        return y.reshape(-1).unsqueeze(1).view(-1)[: y.numel()] if y.dim() else y.view(1)[0]

    return changed


def in_place(f):
    def changed(x):
        y = x.clone()
        tail = y[1:]
        y.mul_(1.5)
        tail += x[:3]
        tail[0] = x.sin().sum()
        z = f(y).contiguous().clone()
        z.view(-1)[:1].mul_(y[1])
        return z.add_(x[0])

    return changed


def run_again(f):
    return lambda x: checkpoint(lambda y: f(y * x) + y.sum(), x, use_reentrant=False)


SEEN = []


def hooked(f):
    def changed(x):
        y = x * 1
        if y.requires_grad:
            y.register_hook(lambda g: SEEN.append(1))
        return f(y)

    return changed


def drawn(f):
    return lambda x: f(x * (1 + adjoin.rand_like(x))) * adjoin.rand(1, dtype=DOUBLE)[0]


VARIANTS = {
    "as it is": lambda f: f,
    "views": viewed,
    "in place": in_place,
    "custom, sample by sample": custom(Cube),
    "custom, parts mapped": custom(Parts),
    "custom, with a rule": custom(Rule),
    "custom, with both": custom(Pushed),
    "checkpoint": run_again,
    "hooks": hooked,
    "draws": drawn,
}


def check(name, variant, letters):
    f = VARIANTS[variant](FUNCTIONS[name])
    adjoin.manual_seed(3)
    want = nested(letters, f, REFERENCES)(X)
    SEEN.clear()
    adjoin.manual_seed(3)
    got = nested(letters, f, TRANSFORMS)(X)
    assert got.shape == want.shape and got.dtype == want.dtype, (name, variant, letters)
    assert adjoin.allclose(got, want, rtol=1e-8, atol=1e-9), (name, variant, letters, got, want)
    assert not got.requires_grad
    if variant == "hooks" and letters[-1] == "g":  # of another level's tape the function knows nothing
        assert SEEN, "the hook was not called"


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_nestings(variant, name):
    several = NESTINGS if FULL else random.Random(f"{SEED}{variant}{name}").sample(NESTINGS, 2)
    for letters in several:
        check(name, variant, letters)


@pytest.mark.parametrize("letters", NESTINGS)
def test_each_nesting_of_each_variant(letters):
    for variant in VARIANTS:
        check("matrix and itself", variant, letters)


def test_a_hook_that_changes_a_gradient_is_heard_at_its_level():
    def f(x):
        y = x * x
        if y.requires_grad:
            y.register_hook(lambda g: g * 3)
        return y.sum()

    assert adjoin.allclose(grad(f)(X), 6 * X)
    assert adjoin.allclose(vmap(grad(f))(rows(X)), 6 * rows(X))
    through = grad(lambda x: vmap(f)(rows(x)).sum())(X)  # inside of vmap nothing requires grad
    assert adjoin.allclose(through, grad(lambda x: (rows(x) ** 2).sum())(X))


TRIPLES = [outer + inner for outer in "vgj" for inner in NESTINGS if len(inner) == 2]


@pytest.mark.parametrize("letters", TRIPLES if FULL else ["gvg", "gjg", "jvg", "vjg", "gjj"])
def test_three_deep(letters):
    for variant in VARIANTS:
        if variant == "in place" and letters in ("vgg", "jgg"):
            with pytest.raises(NotImplementedError, match="as_strided"):
                check("polynomial", variant, letters)
        else:
            check("polynomial", variant, letters)


@pytest.mark.parametrize("letters", [n for n in NESTINGS if len(n) == 2])
def test_what_leaves_its_level_is_refused(letters):
    kept = []

    def f(x):
        kept.append(x * 1)
        return x * x

    nested(letters, f, TRANSFORMS)(X)
    inner = letters[-1]
    if inner == "g" and letters[0] == "g":
        return  # a tape's tensors live on
    with pytest.raises((RuntimeError, NotImplementedError), match="ended"):
        kept[0] + 1
