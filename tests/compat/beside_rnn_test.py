"""tests/compat/beside_rnn_test.py: recurrent layers beside PyTorch's: names, values, gradients, packing."""

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import adjoin
from beside import copy_weights, near, ours

SETTINGS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True}),
    ("LSTM", {"proj_size": 3, "num_layers": 2, "batch_first": True}),
    ("LSTM", {"bias": False}),
    ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("GRU", {"bias": False}),
    ("RNN", {"num_layers": 3}),
    ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
]


def pair(name, *sizes, **settings):
    torch.manual_seed(1)
    theirs = getattr(torch.nn, name)(*sizes, dtype=torch.float64, **settings)
    mine = getattr(adjoin.nn, name)(*sizes, dtype=adjoin.float64, **settings)
    copy_weights(theirs, mine)
    return theirs, mine


def parts(result):
    return [t for r in result for t in (r if isinstance(r, tuple) else (r,))]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_layers(name, settings, packed):
    theirs, mine = pair(name, 4, 5, **settings)
    assert repr(mine) == repr(theirs)
    x = torch.randn(6, 3, 4, dtype=torch.float64)
    y = ours(x)
    batch_first = settings.get("batch_first", False)
    if batch_first:
        x, y = x.transpose(0, 1), y.transpose(0, 1)
    x.requires_grad_(), y.requires_grad_()
    results = []
    for lib, model, given in ((torch, theirs, x), (adjoin, mine, y)):
        tools = lib.nn.utils.rnn
        if packed:
            seq = tools.pack_padded_sequence(given, [4, 6, 2], batch_first, enforce_sorted=False)
            out, states = model(seq)
            out, lengths = tools.pad_packed_sequence(out, batch_first, padding_value=0.5)
            assert lengths.tolist() == [4, 6, 2]
        else:
            out, states = model(given)
        all_parts = parts((out, states))
        sum((p * p).sum() for p in all_parts).backward()
        results.append([*all_parts, given.grad, *[p.grad for p in model.parameters()]])
    for a, b in zip(*reversed(results), strict=True):
        near(a, b, 1e-9)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(name):
    theirs, mine = pair(name, 4, 5)
    assert repr(mine) == repr(theirs)
    x, h = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)
    for states in (None, (h, h * 2)):
        state = states if name == "LSTMCell" or states is None else states[0]
        moved = None if states is None else tuple(map(ours, states))
        if name != "LSTMCell" and moved:
            moved = moved[0]
        for a, b in zip(parts((mine(ours(x), moved),)), parts((theirs(x, state),)), strict=True):
            near(a, b, 1e-9)


def test_second_derivative():
    theirs, mine = pair("GRU", 2, 3)
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    y = ours(x).requires_grad_()
    both = []
    for lib, model, given in ((torch, theirs, x), (adjoin, mine, y)):
        (g,) = lib.autograd.grad(model(given)[0].sum(), given, create_graph=True)
        (g * g).sum().backward()
        both.append([given.grad, *[p.grad for p in model.parameters() if p.grad is not None]])
    for a, b in zip(*reversed(both), strict=True):
        near(a, b, 1e-8)
