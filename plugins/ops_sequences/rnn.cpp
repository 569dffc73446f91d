// plugins/ops_sequences/rnn.cpp: stacks of recurrent layers in one direction or two, over padded or
// packed sequences; single cells.
#include "rnn.hpp"

namespace adjoin::ops {
namespace {

struct Settings {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
};

RecurrentResult run_layer(const RecurrentLayer& l) {
  if (l.weight_hr.defined()) return unroll(l);
  auto [output, hn, cn, gates, cells] =
      rnn_layer(l.input, l.hx, l.cx, l.weight_ih, l.weight_hh, l.bias_ih, l.bias_hh, l.batch_sizes,
                l.mode, l.reverse);
  return {output, hn, cn, Tensor(), Tensor()};
}

// Rows of all steps through all layers; hx and cx are [layers * directions, batch, size].
RecurrentResult run_layers(Tensor rows, const Sizes& batch_sizes, const Tensor& hx,
                           const Tensor& cx, const Tensors& params, const Settings& s,
                           std::string_view mode) {
  int64_t least = s.has_biases ? 4 : 2, given = int64_t(params.size());
  want(s.layers > 0 && s.layers <= given, "num_layers is ", s.layers, ", wanted 1 or more, with ",
       least, " tensors or more in params for each; ", given, " are given");
  int64_t directions = s.bidirectional ? 2 : 1, cells = s.layers * directions;
  bool projected = mode == "LSTM" && given == cells * (least + 1);
  int64_t each = least + projected;
  want(given == cells * each, "params has ", given, " tensors; ", cells * least, " are wanted for ",
       s.layers, " layers in ", directions, " directions");
  want(hx.ndim() == 3 && hx.size(0) == cells, "hx must be (", cells,
       ", batch, size), its shape is ", shown(hx));
  want(!cx.defined() || (cx.ndim() == 3 && cx.size(0) == cells), "cx must be (", cells,
       ", batch, size)");
  std::vector<Tensor> hn, cn;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      int64_t k = layer * directions + d;
      const Tensor* p = params.data() + k * each;
      RecurrentLayer l = {rows,
                          select(hx, 0, k),
                          cx.defined() ? select(cx, 0, k) : Tensor(),
                          p[0],
                          p[1],
                          s.has_biases ? p[2] : Tensor(),
                          s.has_biases ? p[3] : Tensor(),
                          projected ? p[least] : Tensor(),
                          batch_sizes,
                          mode,
                          d == 1};
      RecurrentResult r = in_own_name([&] { return run_layer(l); });
      outputs.push_back(r.output);
      hn.push_back(r.hn);
      cn.push_back(r.cn);
    }
    rows = directions == 1 ? outputs[0] : cat(outputs, 1);
    if (s.train && s.dropout > 0 && layer + 1 < s.layers) rows = dropout(rows, s.dropout, true);
  }
  Tensor all_h = s.layers * directions == 1 ? unsqueeze(hn[0], 0) : stack(hn),
         all_c = !cx.defined() ? Tensor()
                 : cells == 1  ? unsqueeze(cn[0], 0)
                               : stack(cn);
  return {rows, all_h, all_c, Tensor(), Tensor()};
}

// Arguments from number `first`: has_biases, num_layers, dropout, train, bidirectional.
Settings settings_of(const kit::Body& b, uint32_t first) {
  return {b.flag(first), b.integer(first + 1), b.real(first + 2), b.flag(first + 3),
          b.flag(first + 4)};
}

struct States {
  Tensor hx, cx;
};
States states_of(const kit::Body& b, uint32_t at, bool lstm) {
  if (!lstm) return {b.tensor(at), Tensor()};
  Tensors both = b.tensors(at);
  want(both.size() == 2, "hx must be two tensors, hx and cx; there are ", int64_t(both.size()));
  return {both[0], both[1]};
}

void ret(const kit::Body& b, const RecurrentResult& r, bool lstm) {
  b.ret(0, r.output);
  b.ret(1, r.hn);
  if (lstm) b.ret(2, r.cn);
}

aj_status* padded(aj_call* call, std::string_view mode) {
  return kit::compose(call, [&](kit::Body& b) {
    bool lstm = mode == "LSTM", batch_first = b.flag(8);
    States s = states_of(b, 1, lstm);
    Tensor x = b.tensor(0);
    want(x.ndim() == 3, "input must be (steps, batch, size), its shape is ", shown(x));
    if (batch_first) x = transpose(x, 0, 1);
    int64_t steps = x.size(0), batch = x.size(1);
    want(steps > 0, "the sequence must have a step at least: input is ", shown(x));
    RecurrentResult r =
        run_layers(reshape(x, {steps * batch, x.size(2)}), Sizes(size_t(steps), batch), s.hx, s.cx,
                   b.tensors(2), settings_of(b, 3), mode);
    r.output = view(r.output, Sizes{steps, batch, r.output.size(1)});
    if (batch_first) r.output = transpose(r.output, 0, 1);
    ret(b, r, lstm);
  });
}

aj_status* packed(aj_call* call, std::string_view mode) {
  return kit::compose(call, [&](kit::Body& b) {
    bool lstm = mode == "LSTM";
    States s = states_of(b, 2, lstm);
    Tensor sizes = contiguous(to(b.tensor(1), std::nullopt, DLDevice{kDLCPU, 0}));
    want(sizes.ndim() == 1, "batch_sizes must be a vector, its shape is ", shown(sizes));
    const int64_t* first = sizes.data<int64_t>();
    ret(b,
        run_layers(b.tensor(0), Sizes(first, first + sizes.numel()), s.hx, s.cx, b.tensors(3),
                   settings_of(b, 4), mode),
        lstm);
  });
}

aj_status* cell(aj_call* call, std::string_view mode) {
  return kit::compose(call, [&](kit::Body& b) {
    bool lstm = mode == "LSTM";
    States s = states_of(b, 1, lstm);
    want(s.hx.ndim() == 2, "hx must be (batch, size), its shape is ", shown(s.hx));
    RecurrentLayer l = {b.tensor(0),    s.hx,        s.cx,        b.tensor(2),
                        b.tensor(3),    b.tensor(4), b.tensor(5), Tensor(),
                        {s.hx.size(0)}, mode,        false};
    RecurrentResult r = in_own_name([&] { return run_layer(l); });
    b.ret(0, r.output);
    if (lstm) b.ret(1, r.cn);
  });
}

}  // namespace

aj_status* lstm_body(void*, aj_call* call) { return padded(call, "LSTM"); }
aj_status* gru_body(void*, aj_call* call) { return padded(call, "GRU"); }
aj_status* rnn_tanh_body(void*, aj_call* call) { return padded(call, "RNN_TANH"); }
aj_status* rnn_relu_body(void*, aj_call* call) { return padded(call, "RNN_RELU"); }
aj_status* lstm_data_body(void*, aj_call* call) { return packed(call, "LSTM"); }
aj_status* gru_data_body(void*, aj_call* call) { return packed(call, "GRU"); }
aj_status* rnn_tanh_data_body(void*, aj_call* call) { return packed(call, "RNN_TANH"); }
aj_status* rnn_relu_data_body(void*, aj_call* call) { return packed(call, "RNN_RELU"); }
aj_status* lstm_cell_body(void*, aj_call* call) { return cell(call, "LSTM"); }
aj_status* gru_cell_body(void*, aj_call* call) { return cell(call, "GRU"); }
aj_status* rnn_tanh_cell_body(void*, aj_call* call) { return cell(call, "RNN_TANH"); }
aj_status* rnn_relu_cell_body(void*, aj_call* call) { return cell(call, "RNN_RELU"); }

}  // namespace adjoin::ops
