// adjoin/nn/rnn.hpp: recurrent networks and single recurrent cells.
#ifndef ADJOIN_NN_RNN_HPP
#define ADJOIN_NN_RNN_HPP
#include <adjoin/nn/linear.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {

struct RecurrentOptions {
  int64_t layers = 1;
  bool bias = true, batch_first = false, bidirectional = false;
  double dropout = 0;     // on every layer's output but the last's, while training
  int64_t proj_size = 0;  // LSTM: projected outputs (Sak et al., 2014)
  bool relu = false;      // RNN: relu instead of tanh
};

struct StateOf {  // what RNN and GRU return
  Tensor output, hidden;
};

// What RNN, LSTM and GRU share: parameters by layer and direction, named as in Python
// (weight_ih_l0, ...). Input (steps, batch, in), (batch, steps, in) with batch_first, or (steps,
// in).
class Recurrent {
 public:
  bool training = true;

  void collect(const std::string& prefix, Parts& found) {
    found.modes.push_back(&training);
    for (size_t i = 0; i < weights_.size(); ++i)
      found.tensors.push_back({prefix + names_[i], &weights_[i], true});
  }

 protected:
  Recurrent(const char* who, int64_t gates, int64_t in, int64_t hidden, const RecurrentOptions& o)
      : options_(o), who_(who), hidden_(hidden) {
    if (hidden <= 0 || o.layers <= 0 || o.proj_size < 0 || o.proj_size >= hidden ||
        !(o.dropout >= 0 && o.dropout <= 1))
      kit::raise(AJ_INVALID_ARGUMENT, who, ": hidden size ", hidden, ", layers ", o.layers,
                 ", proj_size ", o.proj_size, ", dropout ", o.dropout,
                 "; wanted: positive sizes, a projection below the hidden size, a probability");
    int64_t out = o.proj_size ? o.proj_size : hidden, ways = o.bidirectional ? 2 : 1;
    for (int64_t layer = 0; layer < o.layers; ++layer)
      for (int64_t way = 0; way < ways; ++way) {
        std::string end = "_l" + std::to_string(layer) + (way ? "_reverse" : "");
        add("weight_ih" + end, {gates * hidden, layer ? out * ways : in});
        add("weight_hh" + end, {gates * hidden, out});
        if (o.bias) add("bias_ih" + end, {gates * hidden}), add("bias_hh" + end, {gates * hidden});
        if (o.proj_size) add("weight_hr" + end, {o.proj_size, hidden});
      }
    double bound = 1 / std::sqrt(double(hidden));
    for (const Tensor& w : weights_) init::uniform_(w, -bound, bound);
  }

  bool batched(const Tensor& x, Here here) const {
    if (x.ndim() != 2 && x.ndim() != 3)
      kit::check(kit::fail(AJ_INVALID_ARGUMENT, who_, ": the input has ", x.ndim(),
                           " dimensions; wanted: 2 or 3"),
                 here);
    return x.ndim() == 3;
  }
  int64_t batch_dim() const { return options_.batch_first ? 0 : 1; }
  Tensor zeros_for(const Tensor& x, int64_t width) const {
    return zeros({options_.layers * (options_.bidirectional ? 2 : 1), x.size(batch_dim()), width},
                 x.dtype(), x.device());
  }
  Tensors weights() const { return Tensors(weights_.data(), weights_.size()); }
  int64_t out_width() const { return options_.proj_size ? options_.proj_size : hidden_; }

  using Layer = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const Tensors&, bool,
                                               int64_t, double, bool, bool, bool, Here);
  // A layer with one state, over a batch or a single sequence.
  StateOf run(Layer op, const Tensor& input, const Tensor& state, Here here) const {
    bool whole = batched(input, here);
    const RecurrentOptions& o = options_;
    Tensor x = whole ? input : unsqueeze(input, batch_dim(), here);
    Tensor h = !state.defined() ? zeros_for(x, hidden_) : whole ? state : unsqueeze(state, 1, here);
    auto [out, last] = op(x, h, weights(), o.bias, o.layers, o.dropout, training, o.bidirectional,
                          o.batch_first, here);
    return whole ? StateOf{out, last} : StateOf{squeeze(out, batch_dim()), squeeze(last, 1)};
  }

  RecurrentOptions options_;
  const char* who_;
  int64_t hidden_;

 private:
  void add(std::string name, const Ints& shape) {
    names_.push_back(std::move(name));
    weights_.push_back(Parameter(empty(shape)));
  }
  std::vector<std::string> names_;
  std::vector<Tensor> weights_;  // parameters; plain, so that they are one list for the op
};

// h = f(W_ih x + b_ih + W_hh h + b_hh), f tanh or relu.
class RNN final : public Module<RNN>, public Recurrent {
 public:
  using Recurrent::collect;
  RNN(int64_t in, int64_t hidden, RecurrentOptions o = {}) : Recurrent("RNN", 1, in, hidden, o) {}
  StateOf operator()(const Tensor& input, const Tensor& state = {},
                     Here here = Here::current()) const {
    return run(options_.relu ? static_cast<Layer>(rnn_relu) : static_cast<Layer>(rnn_tanh), input,
               state, here);
  }
};

// Gated recurrent units (Cho et al., 2014), the reset gate after the product.
class GRU final : public Module<GRU>, public Recurrent {
 public:
  using Recurrent::collect;
  GRU(int64_t in, int64_t hidden, RecurrentOptions o = {}) : Recurrent("GRU", 3, in, hidden, o) {}
  StateOf operator()(const Tensor& input, const Tensor& state = {},
                     Here here = Here::current()) const {
    return run(gru, input, state, here);
  }
};

struct LSTMState {
  Tensor hidden, cell;
};
struct LSTMResult {
  Tensor output;
  LSTMState state;
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997).
class LSTM final : public Module<LSTM>, public Recurrent {
 public:
  using Recurrent::collect;
  LSTM(int64_t in, int64_t hidden, RecurrentOptions o = {}) : Recurrent("LSTM", 4, in, hidden, o) {}
  LSTMResult operator()(const Tensor& input, const LSTMState& state = {},
                        Here here = Here::current()) const {
    bool whole = batched(input, here);
    const RecurrentOptions& o = options_;
    Tensor x = whole ? input : unsqueeze(input, batch_dim(), here);
    Tensor hx[] = {state.hidden, state.cell};
    for (int i = 0; i < 2; ++i)
      hx[i] = !hx[i].defined() ? zeros_for(x, i ? hidden_ : out_width())
              : whole ? hx[i]
                               : unsqueeze(hx[i], 1, here);
    auto [out, h, c] = lstm(x, Tensors(hx, 2), weights(), o.bias, o.layers, o.dropout, training,
                            o.bidirectional, o.batch_first, here);
    if (whole) return {out, {h, c}};
    return {squeeze(out, batch_dim()), {squeeze(h, 1), squeeze(c, 1)}};
  }
};

struct CellOptions {
  bool bias = true;
  bool relu = false;  // RNNCell: relu instead of tanh
};

// One step: (batch, in) and (batch, hidden).
struct Cell {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  int64_t hidden;

  Cell(int64_t gates, int64_t in, int64_t size, const CellOptions& o) : hidden(size) {
    double bound = size > 0 ? 1 / std::sqrt(double(size)) : 0;
    weight_ih = init::uniform_(empty({gates * size, in}), -bound, bound);
    weight_hh = init::uniform_(empty({gates * size, size}), -bound, bound);
    if (!o.bias) return;
    bias_ih = init::uniform_(empty({gates * size}), -bound, bound);
    bias_hh = init::uniform_(empty({gates * size}), -bound, bound);
  }
  Tensor start(const Tensor& x, const Tensor& h) const {
    return h.defined() ? h : zeros({x.size(0), hidden}, x.dtype(), x.device());
  }
  template <class C>
  static constexpr auto cell_fields() {
    return Fields<&C::weight_ih, &C::weight_hh, &C::bias_ih, &C::bias_hh>();
  }
};

struct RNNCell final : Module<RNNCell>, Cell {
  bool relu;
  RNNCell(int64_t in, int64_t size, CellOptions o = {}) : Cell(1, in, size, o), relu(o.relu) {}
  Tensor operator()(const Tensor& x, const Tensor& h = {}, Here here = Here::current()) const {
    return relu ? rnn_relu_cell(x, start(x, h), weight_ih, weight_hh, bias_ih, bias_hh, here)
                : rnn_tanh_cell(x, start(x, h), weight_ih, weight_hh, bias_ih, bias_hh, here);
  }
  static constexpr auto fields() { return cell_fields<RNNCell>(); }
};

struct GRUCell final : Module<GRUCell>, Cell {
  GRUCell(int64_t in, int64_t size, CellOptions o = {}) : Cell(3, in, size, o) {}
  Tensor operator()(const Tensor& x, const Tensor& h = {}, Here here = Here::current()) const {
    return gru_cell(x, start(x, h), weight_ih, weight_hh, bias_ih, bias_hh, here);
  }
  static constexpr auto fields() { return cell_fields<GRUCell>(); }
};

struct LSTMCell final : Module<LSTMCell>, Cell {
  LSTMCell(int64_t in, int64_t size, CellOptions o = {}) : Cell(4, in, size, o) {}
  LSTMState operator()(const Tensor& x, const LSTMState& s = {},
                       Here here = Here::current()) const {
    const Tensor hx[] = {start(x, s.hidden), start(x, s.cell)};
    auto [h, c] = lstm_cell(x, Tensors(hx, 2), weight_ih, weight_hh, bias_ih, bias_hh, here);
    return {h, c};
  }
  static constexpr auto fields() { return cell_fields<LSTMCell>(); }
};

}  // namespace nn
}  // namespace adjoin
#endif
