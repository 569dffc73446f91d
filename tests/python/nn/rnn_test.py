"""tests/python/nn/rnn_test.py: recurrent layers against plain loops, finite differences and each other."""

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn.utils import rnn as packing

KINDS = {
    "LSTM": lambda *a, **k: nn.LSTM(*a, **k),
    "GRU": lambda *a, **k: nn.GRU(*a, **k),
    "tanh": lambda *a, **k: nn.RNN(*a, **k),
    "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, h, c, w_ih, w_hh, b_ih, b_hh):
    a, b = w_ih @ x + b_ih, w_hh @ h + b_hh
    if kind == "LSTM":
        i, f, g, o = np.split(a + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
        r, z = sigmoid(ar + br), sigmoid(az + bz)
        n = np.tanh(an + r * bn)
        return (1 - z) * n + z * h, c
    return (np.tanh(a + b) if kind == "tanh" else np.maximum(a + b, 0)), c


def loop(kind, model, sequence):
    """One sequence (steps, size) through all layers; (output, last h, last c)."""
    directions = 2 if model.bidirectional else 1
    hs, cs = [], []
    for layer in range(model.num_layers):
        outputs = []
        for d in range(directions):
            weights = [w.detach().numpy() for w in model.all_weights[layer * directions + d]]
            h = c = np.zeros(model.hidden_size)
            out = np.zeros((len(sequence), model.hidden_size))
            order = range(len(sequence))
            for t in reversed(order) if d else order:
                h, c = step(kind, sequence[t], h, c, *weights)
                out[t] = h
            outputs.append(out)
            hs.append(h)
            cs.append(c)
        sequence = np.concatenate(outputs, 1)
    return sequence, np.array(hs), np.array(cs)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, device):
    model = KINDS[kind](3, 5, num_layers=2, bidirectional=True, dtype=adjoin.float64)
    x = adjoin.randn(7, 2, 3, dtype=adjoin.float64)
    output, states = model.to(device)(x.to(device))
    h = states[0] if kind == "LSTM" else states
    model.to("cpu")
    for k in range(2):
        expected = loop(kind, model, x[:, k].numpy())
        np.testing.assert_allclose(output.detach().to("cpu")[:, k].numpy(), expected[0], rtol=1e-9)
        np.testing.assert_allclose(h.detach().to("cpu")[:, k].numpy(), expected[1], rtol=1e-9)
        if kind == "LSTM":
            c = states[1].detach().to("cpu")[:, k].numpy()
            np.testing.assert_allclose(c, expected[2], rtol=1e-9)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, device):
    model = KINDS[kind](2, 2, bidirectional=kind == "GRU", dtype=adjoin.float64).to(device)

    def function(x, h, *weights):
        row = {"LSTM": adjoin.lstm, "GRU": adjoin.gru, "tanh": adjoin.rnn_tanh, "relu": adjoin.rnn_relu}[kind]
        hx = [h, h * 0.5] if kind == "LSTM" else h
        return tuple(row(x, hx, list(weights), True, 1, 0.0, False, kind == "GRU", False))

    make = lambda *s: adjoin.randn(*s, dtype=adjoin.float64).to(device).requires_grad_()  # noqa: E731
    inputs = (make(3, 2, 2), make(2 if kind == "GRU" else 1, 2, 2), *model.parameters())
    assert adjoin.autograd.gradcheck(function, inputs)
    assert adjoin.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_beside_a_state_that_wants_none(kind, steps):
    model, x, h = KINDS[kind](7, 9), adjoin.randn(steps, 3, 7), adjoin.randn(1, 3, 9)
    c = adjoin.randn(1, 3, 9, requires_grad=True)
    found = []
    for wanted in (False, True):
        first = h.clone().requires_grad_(wanted)
        output = model(x, (first, c) if kind == "LSTM" else first)[0]
        asked = [*model.parameters(), *([c] if kind == "LSTM" else [])]
        found.append(adjoin.autograd.grad(output.sin().sum(), asked))
    assert all(adjoin.equal(a, b) for a, b in zip(*found))


def test_gradients_of_weights_that_depend_on_input():
    """Each use has its own gradient, in the second derivative too."""
    w = adjoin.randn(2, 2, dtype=adjoin.float64, requires_grad=True)

    def function(w):
        x = (w * w).unsqueeze(1)
        out, h = adjoin.rnn_tanh(x, w[:1].unsqueeze(0), [w, w], False, 1, 0.0, False, False, False)
        return out.sum() + h.sum()

    assert adjoin.autograd.gradcheck(function, (w,))
    assert adjoin.autograd.gradgradcheck(function, (w,))


@pytest.mark.parametrize("hidden", [1, 16, 33, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_backends_agree(kind, hidden):
    """Whole and broken panels and tiles, falling batches, both directions."""
    lengths = [9, 9, 7, 7, 7, 4, 1]
    for batch in (1, 7):
        model = KINDS[kind](5, hidden, bidirectional=True, bias=batch > 1)
        x = adjoin.randn(9, batch, 5)
        results = []
        for device in ("cpu", "reference"):
            model.to(device).zero_grad()
            inputs = x.detach().to(device).requires_grad_()
            packed = packing.pack_padded_sequence(inputs, lengths[:batch])
            out, states = model(packed)
            loss = (out.data * out.data).sum() + sum((s * s * s).sum() for s in states)
            loss.backward()
            results.append([t.detach().to("cpu").numpy() for t in
                            (out.data, *states, inputs.grad, *[p.grad for p in model.parameters()])])  # fmt: skip
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_same_bits_on_any_number_of_threads():
    adjoin.manual_seed(0)
    model, x = nn.LSTM(96, 96), adjoin.randn(5, 24, 96)
    before, bits = adjoin.get_num_threads(), []
    adjoin.use_deterministic_algorithms(True)
    try:
        for threads in (1, 2, 3):
            adjoin.set_num_threads(threads)
            model.zero_grad()
            out, _ = model(x)
            out.square().sum().backward()
            bits.append([out.detach().numpy().tobytes(), *[p.grad.numpy().tobytes() for p in model.parameters()]])
    finally:
        adjoin.set_num_threads(before)
        adjoin.use_deterministic_algorithms(False)
    assert bits[0] == bits[1] == bits[2]


@pytest.mark.parametrize("dtype", [adjoin.float16, adjoin.bfloat16])
def test_halves(dtype):
    model, x = nn.GRU(4, 6), adjoin.randn(3, 2, 4)
    out, h = model(x)
    low, low_h = model.to(dtype)(x.to(dtype))
    assert low.dtype == low_h.dtype == dtype
    low.sum().backward()
    assert model.weight_hh_l0.grad.dtype == dtype
    np.testing.assert_allclose(low.detach().float().numpy(), out.detach().numpy(), atol=0.03)


def test_layouts_of_batches():
    model = nn.LSTM(3, 4, batch_first=True)
    x = adjoin.randn(2, 5, 3)
    out, (h, c) = model(x)
    assert out.shape == (2, 5, 4) and h.shape == c.shape == (1, 2, 4)
    single, (h1, c1) = model(x[1])
    assert single.shape == (5, 4) and h1.shape == c1.shape == (1, 4)
    np.testing.assert_allclose(single.detach().numpy(), out[1].detach().numpy(), rtol=1e-5)
    first, states = model(x[:, :2])
    second, (h2, _) = model(x[:, 2:], states)
    np.testing.assert_allclose(adjoin.cat([first, second], 1).detach().numpy(), out.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(h2.detach().numpy(), h.detach().numpy(), rtol=1e-5)


def test_projection_and_dropout():
    model = nn.LSTM(3, 6, num_layers=2, proj_size=2, dropout=0.5)
    assert model.weight_hr_l1.shape == (2, 6) and model.weight_ih_l1.shape == (24, 2)
    out, (h, c) = model(adjoin.randn(4, 3, 3))
    assert out.shape == (4, 3, 2) and h.shape == (2, 3, 2) and c.shape == (2, 3, 6)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert "proj_size=2, num_layers=2, dropout=0.5" in repr(model)


def test_packing_there_and_back():
    sequences = [adjoin.randn(n, 2) for n in (2, 5, 1, 5)]
    packed = packing.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [4, 3, 2, 2, 2]
    assert packed.sorted_indices.tolist() == [1, 3, 0, 2]
    for a, b in zip(packing.unpack_sequence(packed), sequences, strict=True):
        assert a.tolist() == b.tolist()
    padded, lengths = packing.pad_packed_sequence(packed, padding_value=-1.0, total_length=6)
    assert padded.shape == (6, 4, 2) and lengths.tolist() == [2, 5, 1, 5]
    assert padded[2:, 0].eq(-1).all()
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        packing.pack_sequence(sequences)
    with pytest.raises(RuntimeError, match="greater than 0"):
        packing.pack_padded_sequence(adjoin.ones(2, 2, 1), [1, 0])
    x = adjoin.randn(5, 2, 3, requires_grad=True)
    packing.pad_packed_sequence(packing.pack_padded_sequence(x, [5, 3]))[0].sum().backward()
    assert x.grad.sum().item() == 24


def test_what_is_refused():
    model = nn.GRU(3, 4)
    with pytest.raises(RuntimeError, match="Expected 3, got 2"):
        model(adjoin.ones(5, 1, 2))
    with pytest.raises(ValueError, match="2D or 3D"):
        model(adjoin.ones(3))
    with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 1, 4\), got \[1, 2, 4\]"):
        model(adjoin.ones(5, 1, 3), adjoin.ones(1, 2, 4))
    with pytest.raises(RuntimeError, match="should also be 3-D"):
        model(adjoin.ones(5, 1, 3), adjoin.ones(1, 4))
    with pytest.raises(RuntimeError, match="gru: the sequence must have a step"):
        model(adjoin.ones(0, 1, 3))
    with pytest.raises(RuntimeError, match="gru: params has 3 tensors; 4 are wanted"):
        adjoin.gru(
            adjoin.ones(2, 1, 3), adjoin.ones(1, 1, 4), model._flat_weights[:3], True, 1, 0.0, False, False, False
        )
    with pytest.raises(RuntimeError, match=r"weight_hh must have shape \[12, 4\]"):
        w = model._flat_weights
        adjoin.gru(adjoin.ones(2, 1, 3), adjoin.ones(1, 1, 4), [w[0], w[0], *w[2:]], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="must not grow"):
        adjoin.gru(adjoin.ones(3, 3), adjoin.tensor([1, 2]), adjoin.ones(1, 1, 4), w, True, 1, 0.0, False, False)
    with pytest.raises(ValueError, match="Unrecognized RNN mode"):
        nn.RNNBase("CNN", 1, 1)
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.LSTM(2, 2, dropout=0.5)


def test_empty_batch():
    out, (h, c) = nn.LSTM(3, 4)(adjoin.ones(5, 0, 3))
    assert out.shape == (5, 0, 4) and h.shape == c.shape == (1, 0, 4)


def test_cells_are_layers_of_one_step():
    x, h = adjoin.randn(2, 3), adjoin.randn(2, 4)
    for layer, cell in (
        (nn.LSTM(3, 4), nn.LSTMCell(3, 4)),
        (nn.GRU(3, 4), nn.GRUCell(3, 4)),
        (nn.RNN(3, 4, nonlinearity="relu"), nn.RNNCell(3, 4, nonlinearity="relu")),
    ):
        cell.load_state_dict({k: v for k, v in zip(cell.state_dict(), layer.state_dict().values(), strict=True)})
        lstm = isinstance(layer, nn.LSTM)
        whole = layer(x[None], (h[None], h[None] * 0) if lstm else h[None])[0][0]
        one = cell(x, (h, h * 0) if lstm else h)
        np.testing.assert_allclose((one[0] if lstm else one).detach().numpy(), whole.detach().numpy(), rtol=1e-5)
        single = cell(x[0])
        assert (single[0] if lstm else single).shape == (4,)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"bias": 0}, TypeError, "bias should be of type bool, got: int"),
        ({"batch_first": "False"}, TypeError, "batch_first should be of type bool, got: str"),
        ({"input_size": 0}, ValueError, "input_size must be greater than zero"),
    ],
    ids=str,
)
def test_settings_that_are_refused(given, kind, message):
    with pytest.raises(kind, match=message):
        nn.GRU(**{"input_size": 3, "hidden_size": 5, **given})


def test_another_dtype_than_the_weights():
    with pytest.raises(ValueError, match="does not match weight dtype .* Convert input: input.to"):
        nn.LSTM(3, 5)(adjoin.zeros(2, 4, 3, dtype=adjoin.float64))
