"""tests/python/toplevel/overridden_test.py: __torch_function__ sees functions of Python's by their own names, with their arguments."""

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import functional as F


class Seen(adjoin.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, args, kwargs))
        return "seen"


def seen(*shape):
    return adjoin.rand(*shape).as_subclass(Seen)


IMAGE, ROWS, CLASSES, LINE = seen(2, 3, 8, 8), seen(4, 6), adjoin.zeros(4, dtype=adjoin.int64), seen(2, 3, 8)
CALLS = [
    (F.softmax, (ROWS, -1)), (F.log_softmax, (ROWS, -1)), (F.softmin, (ROWS, -1)), (F.cross_entropy, (ROWS, CLASSES)), (F.nll_loss, (ROWS, CLASSES)),
    (F.mse_loss, (adjoin.rand(4, 6), ROWS)), (F.l1_loss, (ROWS, ROWS)), (F.smooth_l1_loss, (ROWS, ROWS)), (F.huber_loss, (ROWS, ROWS)),
    (F.binary_cross_entropy, (ROWS, ROWS)), (F.binary_cross_entropy_with_logits, (ROWS, ROWS)), (F.kl_div, (ROWS, ROWS)),
    (F.gaussian_nll_loss, (ROWS, ROWS, ROWS)), (F.poisson_nll_loss, (ROWS, ROWS)), (F.cosine_embedding_loss, (ROWS, ROWS, CLASSES)),
    (F.margin_ranking_loss, (ROWS, ROWS, ROWS)), (F.triplet_margin_loss, (ROWS, ROWS, ROWS)), (F.multi_margin_loss, (ROWS, CLASSES)),
    (F.soft_margin_loss, (ROWS, ROWS)), (F.interpolate, (IMAGE, 4)), (F.grid_sample, (IMAGE, adjoin.rand(2, 4, 4, 2))), (F.affine_grid, (ROWS, [1, 1, 2, 2])),
    (F.max_pool1d, (LINE, 2)), (F.max_pool2d, (IMAGE, 2)), (F.adaptive_avg_pool2d, (IMAGE, 2)), (F.adaptive_max_pool2d, (IMAGE, 2)),
    (F.fractional_max_pool2d, (IMAGE, 2, 4)), (F.max_unpool2d, (IMAGE, CLASSES, 2)), (F.dropout2d, (IMAGE,)), (F.gumbel_softmax, (ROWS,)),
    (adjoin.split, (ROWS, 2)), (adjoin.std_mean, (ROWS,)), (adjoin.gradient, (ROWS,)), (adjoin.unique, (ROWS,)), (adjoin.nonzero, (ROWS,)),
    (adjoin.atleast_1d, (ROWS,)), (adjoin.is_floating_point, (ROWS,)), (adjoin.pca_lowrank, (ROWS,)), (nn.init.normal_, (ROWS,)),
]  # fmt: skip


@pytest.mark.parametrize("function, args", CALLS, ids=[function.__name__ for function, _ in CALLS])
def test_a_subclass_sees_the_function(function, args):
    Seen.calls.clear()
    assert function(*args) == "seen"
    ((func, positional, named),) = Seen.calls
    assert func is function
    assert all(a is b for a, b in zip(positional, args, strict=False))  # what has a default comes by its name
    assert set(args[len(positional) :]) <= set(named.values())


def test_arguments_come_as_they_were_given():
    Seen.calls.clear()
    F.cross_entropy(ROWS, CLASSES, reduction="sum", label_smoothing=0.1)
    ((_, args, named),) = Seen.calls
    assert args[0] is ROWS and args[1] is CLASSES
    assert (named["reduction"], named["label_smoothing"], named["ignore_index"], named["weight"]) == (
        "sum",
        0.1,
        -100,
        None,
    )
    adjoin.atleast_1d(adjoin.ones(2), ROWS)
    assert Seen.calls[-1][1][1] is ROWS


class Counts(adjoin.overrides.TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **kwargs or {})


def test_a_mode_sees_the_function_and_not_what_it_is_made_of():
    x = adjoin.rand(4, 6)
    with Counts() as counts:
        loss = F.cross_entropy(x, CLASSES)
    assert counts.seen == [F.cross_entropy] and adjoin.equal(loss, F.cross_entropy(x, CLASSES))


class Passing(adjoin.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return adjoin.overrides.redispatch_function(func, types, args, kwargs)


def test_a_function_is_called_past_the_override():
    x = adjoin.rand(3, 6)
    assert adjoin.equal(F.softmax(x.as_subclass(Passing), -1).as_subclass(adjoin.Tensor), F.softmax(x, -1))
    with pytest.raises(TypeError, match="sequence"):
        adjoin.overrides.has_torch_function(3)
    assert adjoin.overrides.has_torch_function([ROWS]) and not adjoin.overrides.has_torch_function_unary(x)
