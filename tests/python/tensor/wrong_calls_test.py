"""tests/python/tensor/wrong_calls_test.py: calls that ask for what cannot be are refused, by name and with what was found."""

import adjoin as aj
import pytest
from adjoin import distributions, func, nn
from adjoin.nn import functional as F
from adjoin.nn.utils import rnn


def _bytes():
    return aj.zeros(5, dtype=aj.uint8)


NUMBERS = {
    "normal: std must not be negative: -1": lambda: aj.normal(aj.zeros(3), -1.0),
    "normal: std must not be negative: the smallest is -1": lambda: aj.normal(aj.zeros(2), aj.tensor([1.0, -1.0])),
    "normal: std must not be negative: the smallest is -2": lambda: aj.normal(0.0, aj.tensor([-2.0, 1.0])),
    "bernoulli: probabilities must be between 0 and 1; they reach from 0 to 2": lambda: aj.bernoulli(
        aj.tensor([0.0, 2.0])
    ),
    "bernoulli: probabilities must be .* from nan": lambda: aj.bernoulli(aj.tensor([0.5, float("nan")])),
    "bernoulli_: probabilities must be .* from -1": lambda: aj.zeros(3).bernoulli_(aj.full((3,), -1.0)),
    "uniform_: uniform_ expects to-from, .*float32: from=0, to=inf": lambda: aj.zeros(3).uniform_(0, float("inf")),
    "uniform_: uniform_ expects to-from, .*float16": lambda: aj.zeros(3).half().uniform_(0, 1e6),
    "log_normal_: std must be above 0: 0": lambda: aj.zeros(3).log_normal_(0, 0),
    "cauchy_: sigma must be above 0: -1": lambda: aj.zeros(3).cauchy_(0, -1),
    "cauchy_: the numbers are not whole: input is uint8": lambda: _bytes().cauchy_(),
    "exponential_: the numbers are not whole": lambda: _bytes().exponential_(),
    "random_: to - 1 is out of bounds for uint8, which does not hold 299": lambda: _bytes().random_(0, 300),
    "random_: from is out of bounds for uint8, which does not hold -5": lambda: _bytes().random_(-5, 10),
    "random_: .* is out of bounds for int8, which does not hold": lambda: _bytes().to(aj.int8).random_(-129, 0),
    "random_: .* is out of bounds for int32, which does not hold": lambda: _bytes().int().random_(2**40),
    "random_: .* is out of bounds for bool, which does not hold": lambda: _bytes().bool().random_(3),
    "random_: .* is out of bounds for float16, which does not hold": lambda: aj.zeros(3).half().random_(100000),
    "randint: .* is out of bounds for uint8, which does not hold": lambda: aj.randint(0, 300, (3,), dtype=aj.uint8),
    "randint_like: .* is out of bounds for uint8, which does not hold": lambda: aj.randint_like(_bytes(), 300),
    "randperm: int8 does not hold the integers below 200": lambda: aj.randperm(200, dtype=aj.int8),
    "randperm: float16 does not hold": lambda: aj.randperm(3000, dtype=aj.float16),
    "clamp: nothing to do: At least one of 'min' or 'max' must not be None": lambda: aj.clamp(aj.zeros(3)),
    "clamp.*: nothing to do: At least one of .min. or .max. must not be None": lambda: aj.zeros(3).clamp_(),
    "bincount: the size minlength is -1 but must be >= 0": lambda: aj.bincount(aj.arange(3), minlength=-1),
    "conv2d: the kernel must have elements": lambda: F.conv2d(aj.zeros(1, 3, 5, 5), aj.zeros(4, 3, 0, 3)),
    "conv_transpose1d: the kernel must have elements": lambda: F.conv_transpose1d(aj.zeros(1, 3, 5), aj.zeros(3, 4, 0)),
    "window: the values are floating point numbers": lambda: aj.hann_window(4, dtype=aj.int64),
    "Cannot pack empty tensors": lambda: rnn.pack_padded_sequence(aj.ones(4, 0, 3), []),
    "jvp: the primals have shapes": lambda: func.jvp(aj.sin, (aj.ones(3),), (aj.ones(4),)),
    "jvp: primals and tangents must be tuples": lambda: func.jvp(aj.sin, aj.ones(3), aj.ones(3)),
}

VALUES = {
    "alpha_dropout: p must be between 0 and 1: 2": lambda: F.alpha_dropout(aj.ones(3), 2.0),
    "margin must be above 0: -1": lambda: F.triplet_margin_loss(*[aj.ones(2, 3)] * 3, margin=-1.0),
    "margin to be greater than 0, got 0": lambda: nn.TripletMarginLoss(margin=0),
    "input of 1 dimension needs offsets": lambda: nn.EmbeddingBag(5, 2)(aj.arange(5)),
    "leave offsets": lambda: nn.EmbeddingBag(5, 2)(aj.arange(4).reshape(2, 2), aj.tensor([0])),
    "a Tensor lr must be 1-element, it has shape": lambda: aj.optim.SGD([nn.Parameter(aj.ones(2))], lr=aj.ones(2)),
    "does not fit into 64 bits": lambda: aj.manual_seed(2**65),
    "chunk_size should be None or greater than 0": lambda: aj.vmap(aj.sin, chunk_size=0),
    "a primal is the int 3": lambda: func.vjp(aj.sin, 3),
    "probs of Geometric to be positive": lambda: distributions.Geometric(0.0),
    "cache_size must be 0 or 1": lambda: distributions.transforms.ExpTransform(cache_size=2),
    "transforms must be a Transform or list, but was 3": lambda: distributions.TransformedDistribution(
        distributions.Normal(0.0, 1.0), 3
    ),
    "a list of Transforms": lambda: distributions.TransformedDistribution(distributions.Normal(0.0, 1.0), [3]),
    "count must be floating, it is adjoin.int64": lambda: aj.binomial(aj.arange(3), aj.tensor(0.5)),
}


@pytest.mark.parametrize("message", NUMBERS)
def test_refused(message):
    with pytest.raises(RuntimeError, match=message):
        NUMBERS[message]()


@pytest.mark.parametrize("message", VALUES)
def test_refused_values(message):
    with pytest.raises(ValueError, match=message):
        VALUES[message]()


def test_the_ends_are_allowed():
    assert aj.bernoulli(aj.tensor([0.0, 1.0])).tolist() == [0, 1]
    assert aj.bernoulli(aj.zeros(0)).shape == (0,)
    assert aj.zeros(2).bernoulli_(aj.tensor(1.0)).tolist() == [1, 1]
    assert aj.normal(aj.tensor([1.0, 2.0]), aj.zeros(2)).tolist() == [1, 2]
    assert aj.normal(aj.zeros(0), aj.zeros(0)).shape == (0,)
    drawn = _bytes().expand(4096, 5).clone().random_(0, 256)
    assert drawn.min().item() < 8 and drawn.max().item() > 247
    for dtype in (aj.int8, aj.int16, aj.int32, aj.int64, aj.uint64, aj.bool, aj.float16, aj.bfloat16, aj.float64):
        assert (aj.empty(99, dtype=dtype).random_() >= 0).all()
    low = aj.zeros(4096, dtype=aj.int8).random_(-128, 128)
    assert low.min().item() < -120 and low.max().item() > 119
    assert sorted(aj.randperm(256, dtype=aj.uint8).tolist()) == list(range(256))
    most = aj.finfo(aj.float32).max
    assert aj.zeros(99).uniform_(-most / 2, most / 2).isfinite().all()
    with aj.device("meta"):
        assert aj.bernoulli(aj.full((3,), 2.0)).shape == (3,)


def test_attention_masks_must_fit():
    attention, x = nn.MultiheadAttention(4, 2), aj.ones(3, 2, 4)  # 3 steps, a batch of 2
    cases = {
        "key_padding_mask is .3, 2., but should be .2, 3.": {"key_padding_mask": aj.zeros(3, 2, dtype=aj.bool)},
        "floating types of key_padding_mask": {"key_padding_mask": aj.zeros(2, 3, dtype=aj.int64)},
        "floating types of attn_mask": {"attn_mask": aj.zeros(3, 3, dtype=aj.int64)},
    }
    for message, masks in cases.items():
        with pytest.raises(AssertionError, match=message):
            attention(x, x, x, **masks)
    with pytest.raises(AssertionError, match="key shape"):
        attention(x, x, aj.ones(2, 2, 4))
    out, weights = attention(x, x, x, key_padding_mask=aj.tensor([[False, False, True], [False, True, True]]))
    assert weights[1, :, 0].tolist() == [1, 1, 1] and weights[0, :, 2].tolist() == [0, 0, 0]
    assert attention(x[:, 0], x[:, 0], x[:, 0], key_padding_mask=aj.tensor([False, False, True]))[0].shape == (3, 4)


def test_embedding_bag_beneath():
    weight, of = aj.arange(10.0).reshape(5, 2), aj.tensor([1, 2, 4, 0, 3])
    offsets = aj.tensor([0, 2, 5])
    rows, bags, counts, places = aj.embedding_bag(weight, of, offsets)
    assert rows.tolist() == [[6, 8], [14, 17], [0, 0]] and bags.tolist() == [] and counts.tolist() == [0, 0, 0]
    rows, bags, counts, _ = aj.embedding_bag(weight, of, offsets, False, 1, False, None, False, 2)
    assert aj.allclose(rows, aj.tensor([[2, 3], [14 / 3, 17 / 3], [0, 0]]))
    assert bags.tolist() == [0, 0, 1, 1, 1] and counts.tolist() == [1, 3, 0]
    rows, bags, counts, places = aj.embedding_bag(weight, of, offsets, mode=2, include_last_offset=True)
    assert rows.tolist() == [[4, 5], [8, 9]] and counts.tolist() == [2, 3] and places.tolist() == [[2, 2], [4, 4]]
    given = weight.clone().requires_grad_()
    aj.embedding_bag(given, of.reshape(1, 5), offsets, per_sample_weights=aj.arange(5.0))[0].sum().backward()
    assert given.grad[:, 0].tolist() == [3, 0, 1, 4, 2]
    with pytest.raises(ValueError, match="embedding_bag: 3 is none of 0 .sum."):
        aj.embedding_bag(weight, of, offsets, mode=3)


def test_binomial_counts():
    aj.manual_seed(1)
    sure = aj.binomial(aj.tensor([5.0, 3.0, 0.0]), aj.tensor([1.0, 0.0, 1.0]))
    assert sure.tolist() == [5, 0, 0] and sure.dtype == aj.float32
    drawn = aj.binomial(aj.full((20000,), 10.0), aj.tensor(0.3))
    assert abs(drawn.mean().item() - 3) < 0.05 and abs(drawn.var().item() - 2.1) < 0.1
    same = [aj.binomial(aj.full((9,), 10.0), aj.tensor(0.3), aj.Generator().manual_seed(4)).tolist() for _ in range(2)]
    assert same[0] == same[1] and aj.binomial(aj.zeros(0), aj.zeros(0)).shape == (0,)
