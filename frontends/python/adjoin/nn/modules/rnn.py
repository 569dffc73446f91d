"""adjoin.nn.modules.rnn: recurrent networks and single recurrent cells."""

import math
import warnings

import adjoin

from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from ._settings import sizes
from .module import Module

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters by layer and direction, and what they accept.

    Input is (steps, batch, input_size), (batch, steps, input_size) with ``batch_first``, (steps,
    input_size) or a PackedSequence. ``dropout`` falls on every layer's output but the last's.
    """

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, proj_size=0, device=None,
                 dtype=None):  # fmt: skip
        super().__init__()
        sizes(self, input_size=input_size)
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                f"{type(self).__name__}: dropout should be a number in range [0, 1] representing the probability of an element "
                f"being zeroed, not {dropout!r}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        self._make_parameters({"device": device, "dtype": dtype})
        self.reset_parameters()

    def _make_parameters(self, where):
        rows, state = _GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse")[:directions]:
                columns = self.input_size if layer == 0 else state * directions
                shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, state)}
                if self.bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if self.proj_size:
                    shapes["weight_hr"] = (self.proj_size, self.hidden_size)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(adjoin.empty(shape, **where)))
                self._all_weights.append(names)

    def reset_parameters(self):
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Nothing: weights are packed when they are used."""

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self):
        """The parameters of each layer and direction, as a list of lists."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def get_expected_hidden_size(self, batch):
        directions = 2 if self.bidirectional else 1
        return (self.num_layers * directions, batch, self.proj_size or self.hidden_size)

    def get_expected_cell_size(self, batch):
        return (*self.get_expected_hidden_size(batch)[:2], self.hidden_size)

    def permute_hidden(self, hx, permutation):
        """The states with their sequences in another order."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(h.index_select(1, permutation) for h in hx)
        return hx.index_select(1, permutation)

    def _check_input(self, input, batched):
        if input.dim() != (3 if batched else 2):
            raise RuntimeError(f"input must have {3 if batched else 2} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"{type(self).__name__}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _check_states(self, states, batch):
        wanted = (self.get_expected_hidden_size(batch), self.get_expected_cell_size(batch))
        for i, (state, size) in enumerate(zip(states, wanted, strict=False)):
            if tuple(state.size()) != size:
                name = "hidden" if len(states) == 1 else f"hidden[{i}]"
                raise RuntimeError(f"Expected {name} size {size}, got {list(state.size())}")

    def _states(self, hx, like, batch):
        """hx as a list of one state or two; zeros where none is given."""
        lstm = self.mode == "LSTM"
        if hx is None:
            sizes = [self.get_expected_hidden_size(batch)]
            if lstm:
                sizes.append(self.get_expected_cell_size(batch))
            return [adjoin.zeros(s, dtype=like.dtype, device=like.device) for s in sizes]
        return list(hx) if lstm else [hx]

    def _run(self, row, arguments, states):
        hx = states if self.mode == "LSTM" else states[0]
        try:
            output, *states = row(
                *arguments, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
                self.training, self.bidirectional, *([] if len(arguments) == 2 else [self.batch_first])
            )  # fmt: skip
        except RuntimeError as e:
            input, weight = arguments[0].dtype, self._flat_weights[0].dtype
            if input == weight:
                raise
            raise ValueError(
                f"{type(self).__name__}: RNN input dtype ({input}) does not match weight dtype ({weight}). "
                f"Convert input: input.to({weight}), or convert model: model.to({input})"
            ) from e
        return output, tuple(states)

    def forward(self, input, hx=None):
        row = _ROWS[self.mode]
        if isinstance(input, PackedSequence):
            output, states = self._forward_packed(row, input, hx)
        else:
            output, states = self._forward_padded(row, input, hx)
        return output, states if self.mode == "LSTM" else states[0]

    def _forward_packed(self, row, packed, hx):
        data, batch_sizes, order, back = packed
        batch = int(batch_sizes[0])
        states = self._states(hx, data, batch)
        if hx is not None:
            states = list(self.permute_hidden(tuple(states), order))
        self._check_input(data, False)
        self._check_states(states, batch)
        output, states = self._run(row, (data, batch_sizes), states)
        states = self.permute_hidden(states, back)
        return PackedSequence(output, batch_sizes, order, back), states

    def _forward_padded(self, row, input, hx):
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        if hx is not None:
            for state in hx if self.mode == "LSTM" else (hx,):
                if state.dim() != input.dim():
                    kind = "batched 3-D" if batched else "unbatched 2-D"
                    raise RuntimeError(
                        f"For {kind} input, hx should also be {input.dim()}-D but got {state.dim()}-D tensor"
                    )
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        batch = input.size(0 if self.batch_first else 1)
        states = self._states(hx, input, batch)
        if not batched and hx is not None:
            states = [state.unsqueeze(1) for state in states]
        self._check_input(input, True)
        self._check_states(states, batch)
        output, states = self._run(row, (input,), states)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            states = tuple(state.squeeze(1) for state in states)
        return output, states

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, plain in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
            ("dropout", 0.0), ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != plain:
                text += f", {name}={getattr(self, name)}"
        return text


_ROWS = {
    "LSTM": adjoin.lstm,
    "GRU": adjoin.gru,
    "RNN_TANH": adjoin.rnn_tanh,
    "RNN_RELU": adjoin.rnn_relu,
}


def _refuse_projections(size):
    if size:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu by ``nonlinearity``; returns (output,
    h_n)."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
                 batch_first=False, dropout=0.0, bidirectional=False, device=None,
                 dtype=None, *, proj_size=0):  # fmt: skip
        _refuse_projections(proj_size)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias,
                         batch_first, dropout, bidirectional, 0, device, dtype)  # fmt: skip


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), with projected outputs (Sak et
    al., 2014) by ``proj_size``; returns (output, (h_n, c_n))."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, proj_size=0, device=None,
                 dtype=None):  # fmt: skip
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014), the reset gate after the product; returns (output,
    h_n)."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, device=None, dtype=None, *, proj_size=0):  # fmt: skip
        _refuse_projections(proj_size)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, device, dtype)  # fmt: skip


class RNNCellBase(Module):
    """What single steps share: weights and biases, and what they accept."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows, where = num_chunks * hidden_size, {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(adjoin.empty((rows, input_size), **where))
        self.weight_hh = Parameter(adjoin.empty((rows, hidden_size), **where))
        for name in ("bias_ih", "bias_hh"):
            if bias:
                setattr(self, name, Parameter(adjoin.empty(rows, **where)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, row, input, states):
        """States as a list; the results of ``row`` of as many dimensions as input has."""
        name = self._get_name()
        for what, t in [("input", input)] + [("hidden", s) for s in states or ()]:
            if t.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {t.dim()}D instead")
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
        if states is None:
            zeros = adjoin.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
            states = [zeros, zeros] if row is adjoin.lstm_cell else [zeros]
        elif single:
            states = [s.unsqueeze(0) if s.dim() == 1 else s for s in states]
        hx = states if row is adjoin.lstm_cell else states[0]
        out = row(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        out = out if isinstance(out, tuple) else (out,)
        return tuple(t.squeeze(0) for t in out) if single else tuple(out)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of RNN: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size)."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None,
                 dtype=None):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        row = adjoin.rnn_tanh_cell if self.nonlinearity == "tanh" else adjoin.rnn_relu_cell
        return self._step(row, input, None if hx is None else [hx])[0]


class LSTMCell(RNNCellBase):
    """One step of LSTM; returns (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._step(adjoin.lstm_cell, input, None if hx is None else list(hx))


class GRUCell(RNNCellBase):
    """One step of GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(adjoin.gru_cell, input, None if hx is None else [hx])[0]
