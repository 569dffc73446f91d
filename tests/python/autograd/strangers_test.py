"""tests/python/autograd/strangers_test.py: a plugin in C from installed headers alone (tests/abi/stranger.c): an op with rules,
functions with a derivative of their own at every nesting of transforms, a transform, a layout.
"""

import sys
from pathlib import Path

import adjoin
import pytest
from adjoin.func import grad, jvp, loops, vmap
from nestings import ALONG, DOUBLE, NESTINGS, REFERENCES, TRANSFORMS, X, nested, rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "abi"))

SAMPLES, PARTS, RULE, PUSHED = range(4)  # kinds of st.f


@pytest.fixture(scope="module")
def st(tmp_path_factory):
    import abi_tools as tools

    text = (tools.HERE / "stranger.c").read_text()
    flags = ["-std=c99", "-Wpedantic", "-Werror"]
    adjoin.load_plugin(str(tools.compile_plugin(tmp_path_factory.mktemp("st"), text, name="st", flags=flags)))
    return adjoin.ops.st


class Same(adjoin.autograd.Function):
    """st.f in Python; its derivative is thrice the true one."""

    @staticmethod
    def forward(ctx, x, y, k):
        e = x.exp()
        ctx.save_for_backward(x, y, e)
        ctx.k = k
        return x * x * y * k, e

    @staticmethod
    def backward(ctx, g, h):
        x, y, e = ctx.saved_tensors
        return 3 * (2 * ctx.k * x * y * g + e * h), 3 * ctx.k * x * x * g, None


def of_one(apply):
    def f(x):
        a, b = apply(x * 2, x.cos() + 1, 0.5)
        return a * x[0] + b

    return f


def test_the_op_asks_each_of_its_rules(st):
    assert adjoin.equal(st.twice(X), 2 * X)
    assert adjoin.equal(grad(lambda x: st.twice(x).sum())(X), adjoin.full_like(X, 20))
    assert adjoin.equal(jvp(st.twice, (X,), (ALONG,))[1], 200 * ALONG)
    assert adjoin.equal(vmap(st.twice)(rows(X)), 2000 * rows(X))
    assert adjoin.equal(vmap(lambda x: jvp(st.twice, (x,), (ALONG,))[1])(rows(X)), 200 * ALONG.expand(3, 4))
    assert adjoin.equal(vmap(grad(lambda x: st.twice(x).sum()))(rows(X)), adjoin.full((3, 4), 20, dtype=DOUBLE))


@pytest.mark.parametrize("kind", [SAMPLES, PARTS, RULE])
@pytest.mark.parametrize("letters", NESTINGS)
def test_a_function_is_lowered_level_by_level(st, kind, letters):
    want = nested(letters, of_one(Same.apply), REFERENCES)(X)
    got = nested(letters, of_one(lambda x, y, k: st.f(x, y, k, kind)), TRANSFORMS)(X)
    assert got.shape == want.shape and not got.requires_grad
    assert adjoin.allclose(got, want, rtol=1e-10, atol=1e-12), (got, want)


@pytest.mark.parametrize("kind", [SAMPLES, PARTS, RULE, PUSHED])
@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (None, None)])
def test_arguments_that_all_samples_share(st, kind, dims):
    x, y = (rows(t) if d == 0 else t for t, d in zip((X, X.sin() + 2), dims, strict=True))
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    probe = adjoin.zeros(3)
    one = lambda a, b, _: st.f(a, b, 0.25, kind)  # noqa: E731
    got = vmap(one, (*dims, 0))(x, y, probe)
    pick = lambda t, d, i: t[i] if d == 0 else t  # noqa: E731
    parts = [Same.apply(pick(x, dims[0], i), pick(y, dims[1], i), 0.25) for i in range(3)]
    want = [adjoin.stack(column) for column in zip(*parts, strict=True)]
    for a, b in zip(got, want, strict=True):
        assert adjoin.allclose(a, b)
    weights = [adjoin.rand_like(w) for w in want]
    found = adjoin.autograd.grad(got, (x, y), weights)
    for a, b in zip(found, adjoin.autograd.grad(want, (x, y), weights), strict=True):
        assert a.shape == b.shape and adjoin.allclose(a, b)


def test_a_jvp_of_its_own(st):
    f = lambda x: st.f(x, X, 0.5, PUSHED)  # noqa: E731
    (_, e), (a, b) = jvp(f, (X,), (ALONG,))
    assert adjoin.allclose(a, X * X * ALONG) and adjoin.allclose(b, e * ALONG)
    moved = vmap(lambda x: jvp(f, (x,), (ALONG,))[1][0])(rows(X))
    assert adjoin.allclose(moved, rows(X) * X * ALONG)
    assert adjoin.allclose(grad(lambda x: f(x)[0].sum())(X), 3 * X * X)


def test_what_was_taken_sample_by_sample_is_told(st):
    count = lambda: sum(line[2] for line in loops() if line[0] == "st.f")  # noqa: E731
    before = count()
    vmap(lambda x: st.f(x, x, 1.0, PARTS)[0])(rows(X))
    vmap(lambda x: st.f(x, x, 1.0, RULE)[0])(rows(X))
    assert count() == before
    vmap(lambda x: st.f(x, x, 1.0, SAMPLES)[0])(rows(X))
    assert count() == before + 1
    loops("error")
    try:
        with pytest.raises(NotImplementedError, match="st.f.*sample by sample"):
            vmap(lambda x: st.f(x, x, 1.0, SAMPLES)[0])(rows(X))
    finally:
        loops("allow")
    empty = adjoin.zeros(0, 4, dtype=DOUBLE)
    assert vmap(lambda x: st.f(x, x, 1.0, PARTS)[0])(empty).shape == (0, 4)
    with pytest.raises(NotImplementedError, match="empty batch"):
        vmap(lambda x: st.f(x, x, 1.0, SAMPLES)[0])(empty)


def test_a_function_without_a_derivative(st):
    assert adjoin.allclose(st.bare(X), X.sin()) and adjoin.allclose(vmap(st.bare)(rows(X)), rows(X).sin())
    with pytest.raises(NotImplementedError, match="st.bare: it has no derivative"):
        grad(lambda x: st.bare(x).sum())(X)
    with pytest.raises(NotImplementedError, match="st.bare.*no derivative along a tangent"):
        jvp(st.bare, (X,), (ALONG,))


def test_saved_values_are_watched(st):
    x = X.clone().requires_grad_()
    y = x * 1
    a, _ = st.f(y, X, 1.0, PARTS)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="in.?place"):
        a.sum().backward()


@pytest.mark.parametrize(
    "what, words",
    list(enumerate(["struct_size is 8", "flags 64", "no forward", "both batch and", "is a list", "struct_size is 0"])),
)
def test_wrong_definitions_are_refused(st, what, words):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
        st.wrong(X, what)


def slopes_in_python(x, factor=3):
    """Of f(x, x + 1, 0.5): 1.5 times x x (x + 1) and exp x, by rules that are `factor` of the true ones."""
    own = x * (x + 1) + (x * x * 0.5 if factor == 3 else 0) + x.exp()
    return adjoin.diag(factor * own)


def test_a_transform_of_its_own(st):
    for kind in (SAMPLES, PARTS, RULE):
        assert adjoin.allclose(st.slopes(X, kind), slopes_in_python(X))
    assert adjoin.allclose(st.slopes(X, PUSHED), slopes_in_python(X, 1))
    assert adjoin.allclose(
        vmap(lambda x: st.slopes(x, PARTS))(rows(X)), adjoin.stack([slopes_in_python(r) for r in rows(X)])
    )
    with pytest.raises(RuntimeError, match="a vector is wanted"):
        st.slopes(adjoin.ones(2, 2, dtype=DOUBLE))
    assert adjoin.equal(vmap(lambda x: x + 1)(rows(X)), rows(X) + 1)  # its levels are closed


def test_a_layout_of_its_own(st):
    d, x = X.clone().requires_grad_(), adjoin.randn(4, 3, dtype=DOUBLE, requires_grad=True)
    made = st.diagonal(d) @ x
    assert adjoin.allclose(made, adjoin.diag(d) @ x)
    weights = adjoin.rand_like(made)
    for a, b in zip(
        adjoin.autograd.grad(made, (d, x), weights),
        adjoin.autograd.grad(adjoin.diag(d) @ x, (d, x), weights),
        strict=True,
    ):
        assert adjoin.allclose(a, b)
    fixed = st.diagonal(X)
    many = adjoin.randn(5, 4, 3, dtype=DOUBLE)
    assert adjoin.allclose(vmap(lambda m: fixed @ m)(many), adjoin.diag(X) @ many)
    assert adjoin.allclose(jvp(lambda m: fixed @ m, (many[0],), (many[1],))[1], adjoin.diag(X) @ many[1])
    assert adjoin.allclose(grad(lambda m: (fixed @ m).pow(2).sum())(many[0]), 2 * adjoin.diag(X * X) @ many[0])
    assert fixed.shape == (4, 4) and fixed.tolist() == adjoin.diag(X).tolist()
    assert adjoin.allclose(fixed @ fixed, adjoin.diag(X * X))  # no kernel for that: settled
