"""tests/python/toplevel/names_users_know_test.py: small programs as PyTorch users write them, beside what they must give by closed forms."""

import copy
import pickle

import adjoin as torch
import pytest
from adjoin import nn
from adjoin.nn import functional as F
from adjoin.nn.utils import prune

FINE = torch.float64


def test_where_by_bytes():
    condition, x = torch.tensor([1, 0, 2], dtype=torch.uint8), torch.arange(3.0)
    assert torch.where(condition, x, -x).tolist() == [0, -1, 2]
    assert torch.where(condition, 1.0, 0.0).tolist() == [1, 0, 1]
    assert x.where(condition, torch.tensor(9.0)).tolist() == [0, 9, 2]
    with pytest.raises(RuntimeError, match="argument 'condition' is int64; it must be bool"):
        torch.where(condition.long(), x, -x)


@pytest.mark.parametrize("padding", [None, 1])
def test_embedding_gradients_by_frequency(padding):
    index = torch.tensor([[0, 1, 1], [1, 4, 0]])
    plain, shared = (torch.arange(10.0).reshape(5, 2).requires_grad_() for _ in range(2))
    weight = torch.arange(12.0).reshape(2, 3, 2) + 1
    (F.embedding(index, plain, padding_idx=padding) * weight).sum().backward()
    found = F.embedding(index, shared, padding_idx=padding, scale_grad_by_freq=True)
    assert found.equal(plain[index])
    (found * weight).sum().backward()
    times = torch.tensor([[2.0], [3], [1], [1], [1]])
    assert torch.allclose(shared.grad, plain.grad / times)


def test_embeddings_by_frequency_keep_their_values():
    table = torch.tensor([[float("inf")], [1 / 3], [float("nan")]], requires_grad=True)
    found = F.embedding(torch.tensor([0, 1, 1, 1, 2]), table, scale_grad_by_freq=True)
    assert found[:4].flatten().tolist() == table.detach()[[0, 1, 1, 1]].flatten().tolist() and found[4].isnan()
    layer = nn.Embedding(4, 2, scale_grad_by_freq=True)
    layer(torch.tensor([1, 1, 2])).sum().backward()
    assert layer.weight.grad.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]
    bag = nn.EmbeddingBag(5, 2, mode="sum", scale_grad_by_freq=True)
    bag(torch.tensor([[0, 1, 1], [1, 4, 0]])).sum().backward()
    assert bag.weight.grad[:, 0].tolist() == pytest.approx([1, 1, 0, 0, 1])
    with pytest.raises(RuntimeError, match="goes with mode 'sum' and 'mean'"):
        F.embedding_bag(torch.tensor([[0]]), bag.weight, mode="max", scale_grad_by_freq=True)


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("max", [0, 1 / 3, 1 / 3, 0, 0, 1 / 3]), ("amax", [0, 1 / 3, 1 / 3, 0, 0, 1 / 3]), ("min", [1, 0, 0, 0, 0, 0]),
        ("median", [0, 0, 0, 0.5, 0.5, 0]), ("nanmedian", [0, 0, 0, 0.5, 0.5, 0]),
    ],
)  # fmt: skip
def test_gradients_among_equals(name, wanted):
    x = torch.tensor([1.0, 3, 3, 2, 2, 3], requires_grad=True)
    found = getattr(x, name)()
    found.backward()
    assert x.grad.tolist() == pytest.approx(wanted) and found.item() in (1, 2, 3)


def test_medians_of_odd_values():
    nan = float("nan")
    x = torch.tensor([nan, 2.0, 1.0, 2.0, 5.0], requires_grad=True)
    assert x.median().isnan() and x.nanmedian().item() == 2
    x.nanmedian().backward()
    assert x.grad.tolist() == [0, 0.5, 0, 0.5, 0]
    nothing = torch.tensor([nan, nan], requires_grad=True)
    assert nothing.nanmedian().isnan() and nothing.median().isnan()
    assert torch.tensor([3, 1, 2]).median().item() == 2 and torch.empty(0).median().isnan()


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "minimum"])
def test_gradients_of_two_equals(name):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.tensor([1.0, 5.0, 0.0], requires_grad=True)
    getattr(torch, name)(x, y).sum().backward()
    first = [0.5, 0, 1] if name in ("fmax", "maximum") else [0.5, 1, 0]
    assert x.grad.tolist() == first and y.grad.tolist() == [1 - g for g in first]


def test_what_is_out_of_range_is_both_kinds_of_error():
    x, far = torch.arange(3.0), torch.tensor([5])
    for call in (
        lambda: x.gather(0, far),
        lambda: x.scatter(0, far, 1.0),
        lambda: x.index_select(0, far),
        lambda: x[far],
    ):
        with pytest.raises(torch.OutOfRangeError, match="5 is out of range") as caught:
            call()
        assert isinstance(caught.value, IndexError) and isinstance(caught.value, RuntimeError)
    with pytest.raises(IndexError):
        x.sum(4)
    assert [v.item() for v in x] == [0, 1, 2]


def test_writing_through_views_of_leaves():
    part = torch.ones(4)[1:]  # a view, which is then told to require a gradient
    part.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf that requires grad"):
        part[0] = 5
    with pytest.raises(RuntimeError, match="a view of a leaf that requires grad"):
        part.view(3, 1).mul_(2)
    with torch.no_grad():
        part[0] = 5
    assert part.is_leaf and part.grad_fn is None and part.tolist() == [5, 1, 1]
    base = torch.ones(4).requires_grad_() * 1
    base[1:].mul_(3)
    assert base.sum().requires_grad


def test_many_gradients_at_once():
    x = torch.linspace(-1, 1, 3, dtype=FINE).requires_grad_()
    unused = torch.ones(1, requires_grad=True)
    y = x**3
    (found,) = torch.autograd.grad(y, x, torch.eye(3, dtype=FINE), is_grads_batched=True, create_graph=True)
    assert torch.allclose(found, torch.diag(3 * x**2)) and found.requires_grad
    got = torch.autograd.grad(y, (x, unused), torch.eye(3, dtype=FINE), is_grads_batched=True, allow_unused=True)
    assert got[1] is None
    with pytest.raises(RuntimeError, match="grad_outputs of one first dimension"):
        torch.autograd.grad(x.sum(), x, is_grads_batched=True)


def test_derivatives_along_tangents():
    x = torch.linspace(-1, 1, 3, dtype=FINE)
    value, along = torch.func.linearize(lambda a: a**2, x)
    assert value.equal(x**2) and not value.requires_grad
    for tangent in (torch.ones(3, dtype=FINE), x):
        assert torch.allclose(along(tangent), 2 * x * tangent)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    assert torch.allclose(torch.func.jvp(Square.apply, (x,), (x,))[1], 2 * x * x)


def test_random_numbers_in_vmap():
    def noisy(row):
        return row * 0 + torch.rand(2)

    rows = torch.zeros(3, 2)
    with pytest.raises(RuntimeError, match="randomness='same' or 'different'"):
        torch.vmap(noisy)(rows)
    same, others = (torch.vmap(noisy, randomness=r)(rows) for r in ("same", "different"))
    assert same[0].equal(same[1]) and same[0].equal(same[2]) and not others[0].equal(others[1])
    with pytest.raises(RuntimeError, match="randomness is 'never'"):
        torch.vmap(noisy, randomness="never")


def test_hooks_on_saved_tensors_refused_and_not_needed():
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("no hooks here"), pytest.raises(RuntimeError, match="no hooks here"):
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    @graph.disable_saved_tensors_hooks("nor here")
    def guarded():
        with graph.save_on_cpu():
            pass

    with pytest.raises(RuntimeError, match="nor here"):
        guarded()
    with graph.save_on_cpu():
        pass
    with graph.allow_mutation_on_saved_tensors():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x.clone()
        z = (y * y).sum()
        y.mul_(0)
        z.backward()
    assert x.grad.tolist() == [2, 4]


def test_whether_anomalies_are_sought():
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    with torch.autograd.detect_anomaly():
        assert torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()


class Large(prune.BasePruningMethod):
    def __init__(self, least):
        self.least = least

    def compute_mask(self, t, default_mask):
        return (t.abs() > self.least).to(t.dtype) * default_mask


def test_pruning_by_a_rule_of_ones_own():
    layers = [nn.Linear(3, 1, bias=False) for _ in range(2)]
    for layer in layers:
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[0.1, -0.5, 2.0]]))
    Large.apply(layers[0], "weight", least=0.3)
    assert layers[0].weight.tolist() == [[0, -0.5, 2]] and layers[0].weight_mask.tolist() == [[0, 1, 1]]
    Large.apply(layers[0], "weight", 1.0)
    assert layers[0].weight.tolist() == [[0, 0, 2]]
    prune.global_unstructured([(layers[1], "weight")], Large, least=1.0)
    assert layers[1].weight.tolist() == [[0, 0, 2]]
    assert prune.L1Unstructured(1).prune(torch.tensor([3.0, -1.0, 2.0])).tolist() == [3, 0, 2]
    with pytest.raises(NotImplementedError, match="BasePruningMethod must define compute_mask"):
        prune.BasePruningMethod.apply(layers[0], "weight")


def test_loaders_stay_as_they_were_made():
    loader = torch.utils.data.DataLoader(range(4), 2)
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    loader.epoch = 3
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3]]
    assert [b.tolist() for b in copy.copy(loader)] == [[0, 1], [2, 3]]


def test_storages_and_sizes():
    x = torch.arange(2.0)
    memory = x.untyped_storage()
    again = pickle.loads(pickle.dumps(memory))
    assert again.tolist() == memory.tolist() and again != memory
    copied = copy.deepcopy(memory)
    copied[0] = 7
    assert copied.tolist()[0] == 7 and x[0].item() == 0
    assert x.is_same_size(torch.zeros(2)) and not x.is_same_size(torch.zeros(2, 1))
