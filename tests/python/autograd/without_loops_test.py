"""tests/python/autograd/without_loops_test.py: ops that vmap once called sample by sample: the same numbers, derivatives too, in one call."""

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import func

X = adjoin.randn(3, 4, 5, dtype=adjoin.float64)
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
    for more in ((), (0,)) if name != "nansum" else ():  # samples along another dimension, and two levels
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
