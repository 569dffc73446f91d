"""tests/python/toplevel/lists_and_slopes_test.py: functions of lists, slopes, counts, old arguments of losses and softmax, and the kinds of
errors and warnings that programs written for PyTorch expect."""

import warnings

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest


def lists():
    return [adjoin.tensor([1.0, 2.0]), adjoin.tensor([[3.0]])]


def values(tensors):
    return [t.tolist() for t in tensors]


def test_ops_on_lists():
    made = adjoin._foreach_add(lists(), lists(), alpha=2)
    assert isinstance(made, tuple) and values(made) == [[3.0, 6.0], [[9.0]]]
    assert values(adjoin._foreach_mul(lists(), [2, 3])) == [[2.0, 4.0], [[9.0]]]
    assert values(adjoin._foreach_maximum(lists(), 1.5)) == [[1.5, 2.0], [[3.0]]]
    assert values(adjoin._foreach_pow(2.0, lists())) == [[2.0, 4.0], [[8.0]]]
    assert values(adjoin._foreach_addcdiv(lists(), lists(), lists(), [1.0, 2.0])) == [[2.0, 3.0], [[5.0]]]
    assert values(adjoin._foreach_addcmul(lists(), lists(), lists(), adjoin.tensor([1.0, 2.0]))) == [
        [2.0, 6.0],
        [[21.0]],
    ]
    assert values(adjoin._foreach_lerp(lists(), lists(), 0.5)) == values(lists())
    assert values(adjoin._foreach_norm(lists(), 1)) == [3.0, 3.0] and values(adjoin._foreach_max(lists())) == [2.0, 3.0]
    assert values(adjoin._foreach_sqrt(adjoin._foreach_mul(lists(), lists()))) == values(lists())


def test_ops_written_into_lists():
    mine = lists()
    assert values(adjoin._foreach_sub_(mine, 1)) == values(mine) == [[0.0, 1.0], [[2.0]]]
    adjoin._foreach_clamp_max_(mine, [0.5, 9.0])
    adjoin._foreach_maximum_(mine, 0.25)
    assert values(mine) == [[0.25, 0.5], [[2.0]]]
    adjoin._foreach_copy_(mine, lists())
    adjoin._foreach_lerp_(mine, adjoin._foreach_neg(mine), 0.5)
    assert values(mine) == [[0.0, 0.0], [[0.0]]]
    adjoin._foreach_addcmul_(mine, lists(), lists(), 2.0)
    assert values(adjoin._foreach_zero_(mine)) == [[0.0, 0.0], [[0.0]]]


def test_lists_that_one_launch_changes():
    """Tensors alike; others go one by one, and so does what a graph records."""
    mine, others = lists(), lists()
    assert values(adjoin._foreach_add_(mine, others, alpha=-3)) == values(mine) == [[-2.0, -4.0], [[-6.0]]]
    adjoin._foreach_sub_(mine, others)
    adjoin._foreach_mul_(mine, adjoin.tensor(0.5))
    assert values(mine) == [[-1.5, -3.0], [[-4.5]]]
    adjoin._foreach_add_(mine, mine)
    assert values(mine) == [[-3.0, -6.0], [[-9.0]]]
    adjoin._foreach_add_(mine, [adjoin.tensor(1), adjoin.ones(1, 1, dtype=adjoin.float64)])
    assert values(mine) == [[-2.0, -5.0], [[-8.0]]]
    leaf = adjoin.ones(2, requires_grad=True)
    recorded = [leaf * 1, leaf * 2]
    adjoin._foreach_add_(recorded, [leaf, leaf], alpha=2)
    sum(t.sum() for t in recorded).backward()
    assert leaf.grad.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("call", [lambda: adjoin._foreach_abs([]), lambda: adjoin._foreach_add(lists(), lists()[:1])])
def test_lists_that_do_not_fit(call):
    with pytest.raises(RuntimeError, match="foreach"):
        call()


def test_gradient_is_numpys():
    x = np.random.default_rng(0).normal(size=(5, 7))
    for order in (1, 2):
        for got, right in zip(
            adjoin.gradient(adjoin.tensor(x), edge_order=order), np.gradient(x, edge_order=order), strict=True
        ):
            np.testing.assert_allclose(got.numpy(), right)
    places = np.cumsum(np.random.default_rng(1).uniform(0.5, 2, 7))
    (got,) = adjoin.gradient(adjoin.tensor(x), spacing=(adjoin.tensor(places),), dim=1, edge_order=2)
    np.testing.assert_allclose(got.numpy(), np.gradient(x, places, axis=1, edge_order=2))


def test_poisson_has_its_mean_and_variance():
    adjoin.manual_seed(0)
    counts = adjoin.poisson(adjoin.full((20000,), 4.0))
    assert abs(counts.mean().item() - 4) < 0.06 and abs(counts.var().item() - 4) < 0.2
    assert adjoin.poisson(adjoin.zeros(3)).tolist() == [0, 0, 0]
    one, two = (adjoin.poisson(adjoin.ones(50), generator=adjoin.Generator().manual_seed(3)) for _ in range(2))
    assert adjoin.equal(one, two)


def test_spread_and_mean():
    x = adjoin.tensor([[1.0, 3.0], [2.0, 8.0]])
    assert type(adjoin.std_mean(x)) is tuple
    assert [t.tolist() for t in adjoin.var_mean(x, 1, False)] == [[1.0, 9.0], [2.0, 5.0]]
    assert adjoin.var_mean(x, False)[0].item() == 7.25
    assert adjoin.std_mean(x, 0, True, True)[1].shape == (1, 2)
    assert [p.tolist() for p in adjoin.split(x[0], split_size_or_sections=1)] == [[1.0], [3.0]]


def test_shapes_of_losses_that_differ_are_warned_of():
    column, row = adjoin.ones(3, 1), adjoin.zeros(3)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, adjoin.nn.MSELoss()):
        with pytest.warns(UserWarning, match="is different to the input size"):
            loss(column, row)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.mse_loss(row, row + 2, reduction="sum").item() == 12
        assert F.mse_loss(row, row + 2, weight=adjoin.tensor([1.0, 0.0, 0.0])).item() == 4


def test_old_arguments():
    scores, classes = adjoin.tensor([[0.0, 1.0], [2.0, 0.0]]), adjoin.tensor([1, 0])
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.nll_loss(scores, classes, size_average=False).item() == -3
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert F.cross_entropy(scores, classes, reduce=False).shape == (2,)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert adjoin.equal(F.softmax(scores), F.softmax(scores, 1))
    with pytest.warns(UserWarning, match="'batchmean'"):
        F.kl_div(scores, scores)


ERRORS = {
    "adjoin.cat([])": ValueError,
    "adjoin.ones(2, dtype=adjoin.int64).mean()": NotImplementedError,
    "adjoin.ones(2, dtype=adjoin.int64).std()": NotImplementedError,
    "adjoin.softmax(adjoin.ones(2, dtype=adjoin.int64), 0)": NotImplementedError,
    "adjoin.zeros(0).max()": RuntimeError,
    "adjoin.zeros(0).argmax()": adjoin.OutOfRangeError,
    "adjoin.zeros(0, 3).max(0)": adjoin.OutOfRangeError,
    "adjoin.zeros(0, 3).median(0)": adjoin.OutOfRangeError,
    "F.binary_cross_entropy(adjoin.ones(2), adjoin.ones(3))": ValueError,
    "F.cross_entropy(adjoin.ones(2, 3), adjoin.zeros(3, dtype=adjoin.int64))": ValueError,
    "F.batch_norm(adjoin.ones(1, 3), None, None, training=True)": ValueError,
    "adjoin.tensor(['a'])": ValueError,
    "adjoin.tensor(None)": RuntimeError,
    "adjoin.ones(2)['a']": TypeError,
}


@pytest.mark.parametrize("call", ERRORS)
def test_kinds_of_errors(call):
    with pytest.raises(Exception) as got:
        eval(call)
    assert got.type is ERRORS[call]


def test_a_truth_as_an_index_adds_a_dimension():
    x = adjoin.arange(6).reshape(2, 3)
    assert x[adjoin.tensor(True)].shape == (1, 2, 3) and x[adjoin.tensor(False)].shape == (0, 2, 3)
    assert x[:, adjoin.tensor(True)].shape == (2, 1, 3)


def test_nothing_has_a_median_and_repeats_no_order():
    assert adjoin.zeros(0).median().isnan() and adjoin.zeros(0).nanmedian().isnan()
    assert adjoin.ones(1, 3, 4).expand(2, 3, 4).clone().stride() == (12, 4, 1)
    assert adjoin.xlogy(adjoin.ones(2, dtype=adjoin.float16), 2).dtype == adjoin.float16


def test_types_of_nodes_have_their_names():
    y = (adjoin.ones(2, requires_grad=True) ** 2).sum()
    assert type(y.grad_fn).__name__ == "SumBackward0" and isinstance(y.grad_fn, adjoin.autograd.graph.Node)
    assert type(y.grad_fn.next_functions[0][0]).__name__ == "PowBackward0"


def test_functions_of_networks_at_the_top():
    x, w = adjoin.ones(1, 2, 4, 4), adjoin.ones(3, 2, 3, 3)
    assert adjoin.conv2d(x, w).shape == (1, 3, 2, 2) and adjoin.layer_norm(x, (4,)).shape == x.shape
    assert adjoin.max_pool2d(x, 2).shape == (1, 2, 2, 2) and adjoin.dropout(x, 0.5, False) is not None
