"""tests/python/nn/init_test.py: initial values have the spread they promise."""

import math

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import init


@pytest.fixture(autouse=True)
def seed():
    adjoin.manual_seed(0)


def spread(tensor):
    values = tensor.flatten().tolist()
    mean = sum(values) / len(values)
    return (
        mean,
        math.sqrt(sum((v - mean) ** 2 for v in values) / len(values)),
        min(values),
        max(values),
    )


def test_plain_ones():
    t = adjoin.empty(2, 3)
    assert init.zeros_(t) is t and t.tolist() == [[0.0] * 3] * 2
    assert init.ones_(t).sum().item() == 6
    assert init.constant_(t, 2.5).sum().item() == 15
    assert init.eye_(t).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.eye_(adjoin.empty(2))


@pytest.mark.parametrize(
    "fill, std",
    [
        (lambda t: init.uniform_(t, -1, 3), 4 / math.sqrt(12)),
        (lambda t: init.normal_(t, 1.0, 0.5), 0.5),
        (lambda t: init.xavier_uniform_(t, gain=2.0), 2 * math.sqrt(2 / (100 + 300))),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / (100 + 300))),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 100)),
        (
            lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"),
            math.sqrt(2 / 300),
        ),
    ],
)
def test_standard_deviation(fill, std):
    assert spread(fill(adjoin.empty(300, 100)))[1] == pytest.approx(std, rel=0.03)


def test_truncated_normal():
    mean, std, low, high = spread(init.trunc_normal_(adjoin.empty(100, 200), std=1.0, a=-1, b=1))
    # The variance of a standard normal cut to [-1, 1] is 1 - 2 phi(1) / (2 Phi(1) - 1).
    phi = math.exp(-0.5) / math.sqrt(2 * math.pi)
    assert std == pytest.approx(math.sqrt(1 - 2 * phi / math.erf(1 / math.sqrt(2))), rel=0.03)
    assert -1 <= low and high <= 1 and abs(mean) < 0.02


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal(shape):
    flat = init.orthogonal_(adjoin.empty(shape), gain=2).reshape(shape[0], -1).double()
    product = flat @ flat.t() if flat.size(0) <= flat.size(1) else flat.t() @ flat
    assert (product - 4 * adjoin.eye(product.size(0), dtype=adjoin.float64)).abs().max().item() < 1e-5


def test_dirac_copies_channels():
    conv = nn.Conv2d(3, 3, 3, padding=1, bias=False)
    init.dirac_(conv.weight)
    x = adjoin.rand(1, 3, 4, 4)
    assert (conv(x) - x).abs().max().item() == 0


def test_sparse():
    t = init.sparse_(adjoin.empty(10, 4), 0.3)
    assert [(t[:, i] == 0).sum().item() for i in range(4)] == [3] * 4


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.5) == pytest.approx(math.sqrt(2 / 1.25))
    with pytest.raises(ValueError, match="Unsupported nonlinearity magic"):
        init.calculate_gain("magic")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_normal_(adjoin.empty(3))


def test_filling_is_not_recorded():
    weight = nn.Parameter(adjoin.empty(2, 2))
    init.normal_(weight)
    assert weight.is_leaf and weight.requires_grad


def test_clipping_and_vectors():
    a, b = nn.Parameter(adjoin.zeros(2)), nn.Parameter(adjoin.zeros(1))
    a.grad, b.grad = adjoin.tensor([3.0, 0.0]), adjoin.tensor([4.0])
    assert nn.utils.clip_grad_norm_([a, b], 1.0).item() == pytest.approx(5.0)
    assert a.grad.tolist() == pytest.approx([0.6, 0.0], abs=1e-5)
    nn.utils.clip_grad_value_([a, b], 0.5)
    assert a.grad.tolist() == [0.5, 0.0] and b.grad.tolist() == [0.5]
    b.grad = adjoin.tensor([math.inf])
    with pytest.raises(RuntimeError, match="is non-finite"):
        nn.utils.clip_grad_norm_([a, b], 1.0, error_if_nonfinite=True)
    nn.utils.vector_to_parameters(adjoin.tensor([1.0, 2.0, 3.0]), [a, b])
    assert nn.utils.parameters_to_vector([a, b]).tolist() == [1.0, 2.0, 3.0]


def test_sequences_padded_and_back():
    rnn = nn.utils.rnn
    parts = [adjoin.ones(2, 3), adjoin.ones(4, 3), adjoin.ones(1, 3)]
    padded = rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0)
    assert padded.shape == (3, 4, 3) and padded[2, 1:].tolist() == [[-1.0] * 3] * 3
    assert rnn.pad_sequence(parts).shape == (4, 3, 3)
    left = rnn.pad_sequence(parts, padding_side="left")
    assert left[:, 2, 0].tolist() == [0.0, 0.0, 0.0, 1.0]
    back = rnn.unpad_sequence(padded, adjoin.tensor([2, 4, 1]), batch_first=True)
    assert [part.shape[0] for part in back] == [2, 4, 1]
