"""tests/python/autograd/without_loops_test.py: ops that vmap once called sample by sample: the same numbers, derivatives too, in one call."""

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import func

X = adjoin.randn(3, 4, 5, dtype=adjoin.float64)
HOLES = X.where(X > -0.8, adjoin.nan)
HOLES[1] = adjoin.nan
PARTS = adjoin.rand(3, 2, dtype=adjoin.float64)
UNIT, TARGET = adjoin.rand(3, 4, dtype=adjoin.float64), adjoin.rand(3, 4, dtype=adjoin.float64)
AT = adjoin.tensor([[0, 3, 3], [1, 2, 0], [2, 2, 2]])
MORE = adjoin.randn(3, 3, 5, dtype=adjoin.float64)
IMAGES = adjoin.randn(3, 2, 4, 6, 6, dtype=adjoin.float64)
BOXES = adjoin.tensor([[[0, 0, 0, 4, 4], [1, 1, 1, 5, 3]]] * 3, dtype=adjoin.float64) + adjoin.arange(3.0)[
    :, None, None
] * adjoin.tensor([0, 0.3, 0.1, 0.2, 0.1])
WEIGHT, BIAS = adjoin.rand(3, 4, dtype=adjoin.float64), adjoin.rand(3, 4, dtype=adjoin.float64)
MEAN, VAR = adjoin.rand(4, dtype=adjoin.float64), adjoin.rand(4, dtype=adjoin.float64) + 0.5


def batch_norm(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, training=True)


CASES = {
    "index_add, own places": (lambda x, i, y: x.index_add(0, i, y, alpha=2), (X, AT, MORE)),
    "index_add, shared places": (lambda x, y: x.index_add(0, AT[0], y), (X, MORE)),
    "index_add, another dimension": (lambda x, i, y: x.t().index_add(-1, i, y.t()), (X, AT, MORE)),
    "index_add, shared target": (lambda i, y: X[0].index_add(0, i, y), (AT, MORE)),
    "index_add_": (lambda x, i, y: x.clone().index_add_(0, i, y), (X, AT, MORE)),
    "batch_norm, training": (batch_norm, (X, WEIGHT[:, :1].expand(3, 5), BIAS[:, 0:1].expand(3, 5))),
    "batch_norm, images": (lambda x: F.batch_norm(x, None, None, training=True), (IMAGES,)),
    "batch_norm, kept numbers": (lambda x, w: F.batch_norm(x, MEAN, VAR, w, None), (IMAGES, WEIGHT)),
    "batch_norm, shared weight": (lambda x: F.batch_norm(x, MEAN, VAR, WEIGHT[0], BIAS[0]), (IMAGES,)),
    "binary_cross_entropy": (F.binary_cross_entropy, (UNIT, TARGET)),
    "binary_cross_entropy, none": (lambda x, t: F.binary_cross_entropy(x, t, reduction="none"), (UNIT, TARGET)),
    "gaussian_nll_loss": (F.gaussian_nll_loss, (UNIT, TARGET, UNIT + 0.1)),
    "nansum": (lambda x: x.nansum(0), (X.where(X > -1, adjoin.nan),)),
    "matrix_exp": (adjoin.linalg.matrix_exp, (X[:, :, :4],)),
    "index_add, a number": (lambda x, y: x.index_add(0, AT[0, :1], y), (X[:, 0, 0], MORE[:, 0, 0])),
    "masked_scatter": (lambda x, y: x.masked_scatter(x > 0, y), (X, X.flip(1))),
    "masked_scatter, wide mask": (lambda x, m, y: x.masked_scatter(m > 0, y), (X, X[:, :, 2:3], X.flip(2))),
    "nanmedian": (adjoin.nanmedian, (HOLES,)),
    "quantile": (adjoin.quantile, (X, PARTS)),
    "quantile, a dimension": (lambda x, q: x.quantile(q, dim=1, keepdim=True), (X, PARTS)),
    "nanquantile": (lambda x, q: x.nanquantile(q[0], interpolation="midpoint"), (HOLES, PARTS)),
    "combinations": (adjoin.combinations, (X[:, 0],)),
    "batch_norm, running numbers": (
        lambda x, m, v: F.batch_norm(x, m.clone(), v.clone(), training=True),
        (IMAGES, BIAS, WEIGHT),
    ),
}


@pytest.fixture
def no_loops():
    func.loops("error")
    yield
    func.loops("allow")


@pytest.mark.parametrize("name", CASES)
def test_one_call(name, no_loops):
    f, given = CASES[name]
    want = adjoin.stack([f(*sample) for sample in zip(*given, strict=True)])
    assert adjoin.allclose(adjoin.vmap(f)(*given), want, equal_nan=True)
    whole = not any(t.isnan().any() for t in given)
    for more in ((), (0,)) if whole else ():  # samples along another dimension, and two levels
        dims = tuple(1 if t.dim() > 1 else 0 for t in given)
        moved = [t.movedim(0, d) for t, d in zip(given, dims, strict=True)]
        assert adjoin.allclose(adjoin.vmap(f, dims)(*moved), want), more
    twice = adjoin.vmap(adjoin.vmap(f))(*(adjoin.stack([t, t.flip(0)]) for t in given))
    assert adjoin.allclose(twice, adjoin.stack([want, want.flip(0)]), equal_nan=True)


@pytest.mark.parametrize("name", [n for n in CASES if n != "index_add, shared target"])
def test_derivatives_of_each_sample(name, no_loops):
    f, given = CASES[name]

    def loss(*args):
        return (f(*args) ** 2).sum()

    got = adjoin.vmap(func.grad(loss))(*given)
    want = adjoin.stack([func.grad(loss)(*sample) for sample in zip(*given, strict=True)])
    assert adjoin.allclose(got, want, equal_nan=True)
    forward = adjoin.vmap(lambda *a: func.jvp(lambda t: f(t, *a[1:]), a[:1], (adjoin.ones_like(a[0]),))[1])(*given)
    each = [
        func.jvp(lambda t, s=s: f(t, *s[1:]), s[:1], (adjoin.ones_like(s[0]),))[1] for s in zip(*given, strict=True)
    ]
    assert adjoin.allclose(forward, adjoin.stack(each), equal_nan=True)


def test_classes_and_labels(no_loops):
    labels = adjoin.tensor([[0, 2], [1, 1], [2, 0]])
    want = adjoin.stack([F.one_hot(t, 3) for t in labels])
    assert adjoin.equal(adjoin.vmap(lambda t: F.one_hot(t, 3))(labels), want)
    with pytest.raises((RuntimeError, IndexError)):
        adjoin.vmap(lambda t: F.one_hot(t, 2))(labels)
    with pytest.raises(RuntimeError, match="out of range"):
        adjoin.vmap(lambda x, i, y: x.index_add(0, i, y))(X, AT + 2, MORE)


@pytest.mark.parametrize("kind", ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"])
def test_regions(kind, no_loops):
    op = getattr(adjoin.ops.torchvision, kind)
    more = (1.0, 2, 2) + {"roi_align": (2, False), "ps_roi_align": (2,)}.get(kind, ())

    def f(x, boxes):
        made = op(x, boxes, *more)
        return made if isinstance(made, adjoin.Tensor) else made[0]

    want = adjoin.stack([f(x, b) for x, b in zip(IMAGES, BOXES, strict=True)])
    assert adjoin.allclose(adjoin.vmap(f)(IMAGES, BOXES), want)
    assert adjoin.allclose(adjoin.vmap(f, (0, None))(IMAGES, BOXES[1]), adjoin.stack([f(x, BOXES[1]) for x in IMAGES]))
    if kind != "roi_align":  # the gradients of the others group boxes by their images, which differ
        return
    grads = adjoin.vmap(func.grad(lambda x, b: (f(x, b) ** 2).sum()))(IMAGES, BOXES)
    each = [func.grad(lambda x, b: (f(x, b) ** 2).sum())(x, b) for x, b in zip(IMAGES, BOXES, strict=True)]
    assert adjoin.allclose(grads, adjoin.stack(each))


COUNTED = {
    "bincount": (lambda t: adjoin.bincount(t, minlength=5), (AT,)),
    "bincount, weights": (lambda t, w: adjoin.bincount(t, w, minlength=4), (AT, MORE[:, 0, :3])),
    "nonzero_static": (lambda x: adjoin.nonzero_static(x > 0, size=7), (X,)),
    "nonzero_static, longer": (lambda x: adjoin.nonzero_static(x > 0.5, size=30, fill_value=9), (X,)),
    "nonzero_static, a number": (lambda x: adjoin.nonzero_static(x, size=2), (X[:, 0, 0],)),
    "histc": (lambda x: adjoin.histc(x, 6), (X,)),
    "histc, all equal": (lambda x: adjoin.histc(x, 4), (adjoin.ones(3, 5) * adjoin.tensor([[1], [2], [-7]]),)),
    "histogram": (lambda x: adjoin.histogram(x, 5)[0], (X,)),
    "histogram, edges": (lambda x: adjoin.histogram(x, 7)[1], (X,)),
    "histogram, density": (lambda x, w: adjoin.histogram(x, 4, weight=w, density=True)[0], (X, X.abs())),
    "histogram, range": (lambda x: adjoin.histogram(x, 3, range=(-1.0, 1.0))[0], (X,)),
    "histc, halves": (lambda x: adjoin.histc(x, 5), (X.half(),)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_and_places_of_each_sample(name, no_loops):
    f, given = COUNTED[name]
    want = adjoin.stack([f(*sample) for sample in zip(*given, strict=True)])
    got = adjoin.vmap(f)(*given)
    assert got.dtype == want.dtype and adjoin.equal(got, want)
    twice = adjoin.vmap(adjoin.vmap(f))(*(adjoin.stack([t, t.flip(0)]) for t in given))
    assert adjoin.equal(twice, adjoin.stack([want, want.flip(0)]))
    none = adjoin.vmap(f)(*(t[:0] for t in given))
    assert none.shape == (0, *want.shape[1:])


CHANCES = adjoin.rand(3, 7, dtype=adjoin.float64)
DRAWN = {
    "bernoulli": (adjoin.bernoulli, (CHANCES,)),
    "bernoulli_": (lambda x, p: x.clone().bernoulli_(p), (X[:, 0], PARTS[:, :1])),
    "multinomial": (lambda p: p.multinomial(3), (CHANCES,)),
    "multinomial, again": (lambda p: p.multinomial(9, replacement=True), (CHANCES,)),
    "normal": (adjoin.normal, (X, X.abs())),
    "normal, one mean": (lambda s: adjoin.normal(2.0, s), (X.abs(),)),
    "normal, one std": (lambda m: adjoin.normal(m, 0.5), (X,)),
    "fractional_max_pool2d": (lambda x: F.fractional_max_pool2d(x, 2, output_size=3), (IMAGES,)),
    "fractional_max_pool3d": (lambda x: F.fractional_max_pool3d(x, 2, output_size=2), (IMAGES,)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_of_each_sample(name, no_loops):
    f, given = DRAWN[name]
    adjoin.manual_seed(5)
    want = adjoin.stack([f(*sample) for sample in zip(*given, strict=True)])
    adjoin.manual_seed(5)
    assert adjoin.equal(adjoin.vmap(f, randomness="different")(*given), want)
    first = [adjoin.stack([t[0]] * 3) for t in given]
    one, *others = adjoin.vmap(f, randomness="same")(*first)
    assert all(adjoin.equal(one, other) for other in others)
    with pytest.raises(RuntimeError, match="randomness"):
        adjoin.vmap(f)(*given)


def test_a_median_that_is_nan_shares_its_gradient():
    x = adjoin.full((4,), adjoin.nan, requires_grad=True)
    x.nanmedian().backward()
    assert x.grad.tolist() == [0.25] * 4


def test_what_one_sample_holds_is_refused():
    small, unequal = adjoin.zeros(3, 2, dtype=adjoin.float64), adjoin.tensor([[0, 1], [4, 0], [1, 1]])
    wrong = {
        "mask takes": lambda: adjoin.vmap(lambda x, y: x.masked_scatter(x > -9, y))(X, small),
        "from 0 to 1": lambda: adjoin.vmap(adjoin.quantile)(X, PARTS + adjoin.tensor([[0], [0], [1]])),
        "negative elements": lambda: adjoin.vmap(adjoin.bincount)(AT - 1),
        "give minlength=5": lambda: adjoin.vmap(adjoin.bincount)(unequal),
        "not finite": lambda: adjoin.vmap(lambda x: adjoin.histc(x, 4))(HOLES),
        "between 0 and 1": lambda: adjoin.vmap(adjoin.bernoulli, randomness="same")(CHANCES * 2),
        "must not be negative": lambda: adjoin.vmap(adjoin.normal, randomness="different")(X, X),
        "the sum 0": lambda: adjoin.vmap(lambda p: p.multinomial(1), randomness="same")(small),
    }
    for words, call in wrong.items():
        with pytest.raises(RuntimeError, match=words):
            call()


def test_running_numbers_of_each_sample(no_loops):
    mean, var = BIAS.clone(), WEIGHT.t().contiguous().t()  # the second one in another order
    wants = [(m.clone(), v.clone()) for m, v in zip(mean, var, strict=True)]
    for x, (m, v) in zip(IMAGES, wants, strict=True):
        F.batch_norm(x, m, v, training=True)
    adjoin.vmap(lambda x, m, v: F.batch_norm(x, m, v, training=True))(IMAGES, mean, var)
    assert adjoin.allclose(mean, adjoin.stack([m for m, _ in wants]))
    assert adjoin.allclose(var, adjoin.stack([v for _, v in wants]))
