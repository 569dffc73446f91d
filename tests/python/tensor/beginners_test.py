"""tests/python/tensor/beginners_test.py: mistakes of who begins: each message says what was asked, what was found, what to do."""

import adjoin
import numpy
import pytest
from adjoin import nn

X = adjoin.zeros(2, 3)
NETWORK = nn.Linear(2, 3)
CASES = {
    "a float size": (
        lambda: nn.Linear(3.0, 4),
        TypeError,
        r"Linear: in_features must be an int, not 3.0, a float; use int\(\)",
    ),
    "a size as text": (lambda: nn.Linear("3", 4), TypeError, r"Linear: in_features must be an int, not '3', a str"),
    "channels": (lambda: nn.Conv2d(3, 4.5, 3), TypeError, "Conv2d: out_channels must be an int, not 4.5"),
    "features": (lambda: nn.BatchNorm1d("3"), TypeError, "BatchNorm1d: num_features must be an int"),
    "rows": (lambda: nn.Embedding(10.0, 3), TypeError, "Embedding: num_embeddings must be an int"),
    "inputs": (lambda: nn.LSTM(3.0, 4), TypeError, "LSTM: input_size must be an int"),
    "norm": (lambda: nn.LayerNorm(3.0), TypeError, "LayerNorm: normalized_shape must be an int"),
    "a chance": (lambda: nn.Dropout("a"), TypeError, "Dropout: p must be a number between 0 and 1, not 'a'"),
    "a layer called as a function": (
        lambda: nn.ReLU(X),
        TypeError,
        r"ReLU: a tensor was given .* make the layer first .*: ReLU\(\)\(",
    ),
    "softmax": (lambda: nn.Softmax(X), TypeError, "Softmax: a tensor was given where a setting stands"),
    "a loss called as a function": (
        lambda: nn.CrossEntropyLoss(X, adjoin.tensor([0, 1])),
        TypeError,
        "CrossEntropyLoss: a tensor was given",
    ),
    "a float bound": (
        lambda: adjoin.randint(0, 10.5, (2,)),
        TypeError,
        r"randint\(\): argument 'high' must be int, not float",
    ),
    "a float among sizes": (
        lambda: adjoin.zeros(2, 3.5),
        TypeError,
        r"zeros\(\): argument 'size' must be tuple of ints, not float",
    ),
    "a float index": (lambda: X[1.0], IndexError, r"index: 1.0 is a float; ints, slices.*use int\(\)"),
    "a float index to write": (lambda: X.__setitem__((0, 1.5), 1), IndexError, "index: 1.5 is a float"),
    "a float tensor as index": (
        lambda: X[adjoin.tensor([1.0])],
        IndexError,
        r"bool, this one is float32; use .long\(\)",
    ),
    "a dtype as text": (
        lambda: X.to("flaot32"),
        RuntimeError,
        "no device is called 'flaot32'; was the dtype adjoin.float32 meant",
    ),
    "a dtype as right text": (lambda: X.to("int64"), RuntimeError, "was the dtype adjoin.int64 meant"),
    "an array of text": (
        lambda: adjoin.tensor(numpy.array(["a", "b"])),
        TypeError,
        "an array of text .* has no dtype here.*astype",
    ),
    "an array of objects": (lambda: adjoin.tensor(numpy.array([None, 1])), TypeError, "an array of objects"),
    "a keyword of a layer": (
        lambda: nn.Linear(2, 3, bais=True),
        TypeError,
        "keyword argument 'bais'; did you mean 'bias'",
    ),
    "another one": (lambda: nn.Conv2d(2, 3, 3, pading=1), TypeError, "did you mean 'padding'"),
    "parameters": (
        lambda: adjoin.optim.SGD(NETWORK, lr=0.1),
        TypeError,
        r"SGD: params must be .*, not a Linear; use its .parameters\(\)",
    ),
    "several elements": (
        lambda: X.item(),
        RuntimeError,
        r"6 elements is no single number; index it, or use .tolist\(\)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_messages(name):
    call, kind, told = CASES[name]
    with pytest.raises(kind, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_what_is_right_stays_right():
    assert nn.Linear(numpy.int64(3), adjoin.tensor(4))(adjoin.ones(3)).shape == (4,)
    assert nn.CrossEntropyLoss(adjoin.ones(3))(X, adjoin.tensor([0, 1])).dim() == 0

    class Own(nn.Module):
        def __init__(self, weight, **more):
            super().__init__()
            self.weight, self.more = weight, more

    assert Own(weight=X, anything=3).more == {"anything": 3}
    with pytest.raises(RuntimeError, match="no plugin provides 'nowhere'"):
        X.to("nowhere")
