"""tests/python/nn/prune_test.py: methods of pruning as objects: containers, scores of one's own, amounts, what is left after a mistake."""

import pickle

import adjoin as torch
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn.utils import prune


def line(*rows):
    layer = nn.Linear(len(rows[0]), len(rows), bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(rows))
    return layer


def test_a_second_method_makes_a_container():
    layer = line([1.0, 2, 3, 4], [-4.0, -3, -2, -1])
    first = prune.L1Unstructured.apply(layer, "weight", amount=2)
    assert type(first) is prune.L1Unstructured
    hook = prune.LnStructured.apply(layer, "weight", 1, 1, 1)
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2 and hook._tensor_name == "weight"
    assert [type(m).__name__ for m in hook] == ["L1Unstructured", "LnStructured"] and hook[0] is first
    # The columns' sums are 4, 5, 5, 4 with what the first left: the first of the least goes.
    assert layer.weight_mask.tolist() == [[0, 1, 1, 1], [0, 1, 1, 0]]
    assert list(layer._forward_pre_hooks.values()) == [hook]
    x = torch.ones(1, 4)
    layer(x).sum().backward()
    assert layer.weight_orig.grad.tolist() == layer.weight_mask.tolist()
    again = pickle.loads(pickle.dumps(layer))
    assert again(x).tolist() == layer(x).tolist()
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer) and layer.weight.is_leaf and layer.weight.requires_grad
    assert layer.weight.tolist() == [[0, 2, 3, 4], [0, -3, -2, 0]] and dict(layer.named_buffers()) == {}


def test_scores_take_the_place_of_the_values_and_signs_do_not_count():
    layer = line([1.0, 2, 3, 4], [-4.0, -3, -2, -1])
    scores = torch.tensor([[4.0, 2, 1, 3], [-3.0, -1, -2, -4]])
    prune.l1_unstructured(layer, "weight", 2, scores)
    assert layer.weight.tolist() == [[1, 2, 0, 4], [-4, 0, -2, -1]]
    prune.l1_unstructured(layer, "weight", 2, scores)
    assert layer.weight.tolist() == [[1, 0, 0, 4], [-4, 0, 0, -1]]
    a, b = line([1.0, 2, 3]), line([9.0, 8])
    of_both = {(a, "weight"): torch.tensor([[-5.0, 1, 4]]), (b, "weight"): torch.tensor([[2.0, -9]])}
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, of_both, amount=2)
    assert a.weight.tolist() == [[1, 0, 3]] and b.weight.tolist() == [[0, 8]]
    with pytest.raises(TypeError, match="PRUNING_TYPE"):
        prune.global_unstructured([(a, "weight")], prune.RandomStructured, amount=1)


def test_a_container_looks_at_what_is_left():
    container = prune.PruningContainer()
    container._tensor_name = "t"
    values, before = torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]]), torch.tensor([[1, 1, 1, 0], [1, 1, 0, 1]])
    for method, wanted in (
        (prune.L1Unstructured(2), [[0, 0, 1, 0], [1, 1, 0, 1]]),
        (prune.LnStructured(1, 2, 0), [[0, 0, 0, 0], [1, 1, 0, 1]]),
        (prune.LnStructured(1, 2, 1), [[0, 1, 1, 0], [0, 1, 0, 1]]),
        (prune.CustomFromMask(torch.tensor([[1, 0, 1, 1], [1, 1, 1, 1]])), [[1, 0, 1, 0], [1, 1, 0, 1]]),
    ):
        method._tensor_name = "t"
        container.add_pruning_method(method)
        assert container.compute_mask(values, before).tolist() == wanted
    with pytest.raises(ValueError, match="the container's methods prune 't'"):
        container.add_pruning_method(prune.Identity())
    with pytest.raises(TypeError, match="int is not a BasePruningMethod"):
        container.add_pruning_method(1)


def test_chance_takes_as_many_as_it_is_told():
    layer = nn.Conv2d(4, 6, 3)
    prune.random_structured(layer, "weight", 0.5, 1)
    assert sorted(layer.weight_mask.sum((0, 2, 3)).tolist()) == [0, 0, 54, 54]
    prune.random_unstructured(layer, "weight", 0.25)
    assert int(layer.weight_mask.sum()) == 81
    assert prune.RandomUnstructured(7).compute_mask(torch.zeros(3, 4), torch.ones(3, 4)).sum() == 5


@pytest.mark.parametrize("amount, kind", [("half", TypeError), (True, TypeError), (1.5, ValueError), (-1, ValueError)])
def test_amounts_that_mean_nothing(amount, kind):
    with pytest.raises(kind, match="neither a fraction"):
        prune.L1Unstructured(amount)


def test_after_a_mistake_nothing_is_changed():
    layer = line([1.0, 2])
    for call, words in (
        (lambda: prune.l1_unstructured(layer, "weight", 3), "more than the 2"),
        (lambda: prune.ln_structured(layer, "weight", 1, 2, 5), "dim=5"),
        (lambda: prune.l1_unstructured(layer, "weight", 1, torch.ones(3)), "importance_scores have shape"),
    ):
        with pytest.raises((ValueError, IndexError, AssertionError), match=words):
            call()
    with pytest.raises(ValueError, match="are its elements"):
        prune.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0)
    assert list(dict(layer.named_parameters())) == ["weight"] and not layer._forward_pre_hooks
    np.testing.assert_array_equal(layer.weight.detach().numpy(), [[1, 2]])
