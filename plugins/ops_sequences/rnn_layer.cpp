// plugins/ops_sequences/rnn_layer.cpp: one recurrent layer in one direction: shapes, the layer by
// single ops, and its gradients by the tape.
#include <adjoin/kit/make.hpp>

#include "rnn.hpp"

namespace adjoin::ops {

int64_t gate_count(std::string_view mode) {
  if (mode == "LSTM") return 4;
  if (mode == "GRU") return 3;
  want(mode == "RNN_TANH" || mode == "RNN_RELU", "mode is '", mode,
       "'; LSTM, GRU, RNN_TANH and RNN_RELU are known");
  return 1;
}

namespace {

void check_shape(const Tensor& t, const Sizes& shape, std::string_view name) {
  want(!t.defined() || std::ranges::equal(t.shape(), shape), name, " must have shape ",
       shown(shape), ", it has ", t.defined() ? shown(t) : kit::Shape{});
}

void check_layer(const RecurrentLayer& l) {
  uint8_t code = l.input.dtype().code;
  want(code == kDLFloat || code == kDLBfloat, "input must have a floating dtype, it has ",
       l.input.dtype());
  want(l.input.ndim() == 2 && l.hx.ndim() == 2 && l.weight_ih.ndim() == 2,
       "input, hx and weight_ih must be matrices, their shapes are ", shown(l.input), ", ",
       shown(l.hx), " and ", shown(l.weight_ih));
  int64_t gates = gate_count(l.mode), batch = l.hx.size(0), hidden = l.hx.size(1), rows = 0;
  want(!l.batch_sizes.empty(), "the sequence must have a step at least");
  int64_t before = l.batch_sizes[0];
  for (int64_t size : l.batch_sizes) {
    want(size >= 0 && size <= before,
         "batch_sizes must not grow from step to step: ", shown(l.batch_sizes));
    before = size;
    rows += size;
  }
  want(rows == l.input.size(0) && l.batch_sizes[0] == batch, "batch_sizes ", shown(l.batch_sizes),
       " do not fit input ", shown(l.input), " and hx ", shown(l.hx));
  want((l.mode == "LSTM") == l.cx.defined(), "cx goes with mode LSTM and with no other");
  check_shape(l.cx, {batch, hidden}, "cx");
  check_shape(l.weight_ih, {gates * hidden, l.input.size(1)}, "weight_ih");
  check_shape(l.weight_hh, {gates * hidden, hidden}, "weight_hh");
  check_shape(l.bias_ih, {gates * hidden}, "bias_ih");
  check_shape(l.bias_hh, {gates * hidden}, "bias_hh");
  want(l.bias_ih.defined() == l.bias_hh.defined(), "there must be two biases or none");
  for (const Tensor* t : {&l.hx, &l.cx, &l.weight_ih, &l.weight_hh, &l.bias_ih, &l.bias_hh})
    want(!t->defined() || t->dtype() == l.input.dtype(), "all tensors must have input's dtype ",
         l.input.dtype(), ", one has ", t->defined() ? t->dtype() : l.input.dtype(),
         "; cast with .to()");
}

// The layer from a call's arguments, of which input is number `first`.
RecurrentLayer layer_of(const kit::Values& c, uint32_t first, uint32_t sizes) {
  RecurrentLayer l = {
      c.tensor(first),     c.tensor(first + 1), c.tensor(first + 2), c.tensor(first + 3),
      c.tensor(first + 4), c.tensor(first + 5), c.tensor(first + 6), Tensor(),
      c.ints(sizes).vec(), c.text(sizes + 1),   c.flag(sizes + 2)};
  check_layer(l);
  return l;
}

struct Step {
  Tensor h, c, gates;
};

Tensor part(const Tensor& gates, int64_t i, int64_t hidden) {
  return cut(gates, 1, i * hidden, (i + 1) * hidden);
}

// One step of a batch: x is the input's share of the gates already.
Step one_step(const RecurrentLayer& l, const Tensor& x, const Tensor& h, const Tensor& c) {
  Tensor y = linear(h, l.weight_hh, l.bias_hh);
  int64_t n = l.weight_hh.size(0) / gate_count(l.mode);
  if (l.mode == "LSTM") {
    Tensor all = x + y, i = sigmoid(part(all, 0, n)), f = sigmoid(part(all, 1, n)),
           g = tanh(part(all, 2, n)), o = sigmoid(part(all, 3, n)), now = f * c + i * g;
    Tensor out = o * tanh(now);
    return {l.weight_hr.defined() ? linear(out, l.weight_hr) : out, now, cat({i, f, g, o}, 1)};
  }
  if (l.mode == "GRU") {
    Tensor r = sigmoid(part(x, 0, n) + part(y, 0, n)), z = sigmoid(part(x, 1, n) + part(y, 1, n)),
           q = part(y, 2, n), m = tanh(part(x, 2, n) + r * q);
    return {m + z * (h - m), Tensor(), cat({r, z, m, q}, 1)};
  }
  return {l.mode == "RNN_RELU" ? relu(x + y) : tanh(x + y), Tensor(), Tensor()};
}

// The first rows of t replaced.
Tensor with_first(const Tensor& rows, const Tensor& t) {
  int64_t n = rows.size(0);
  return n == t.size(0) ? rows : cat({rows, cut(t, 0, n, t.size(0))}, 0);
}

}  // namespace

RecurrentResult unroll(const RecurrentLayer& l) {
  Tensor x = linear(l.input, l.weight_ih, l.bias_ih), h = l.hx, c = l.cx;
  size_t count = l.batch_sizes.size();
  std::vector<Tensor> outputs(count), gates(count), cells(count);
  int64_t at = l.reverse ? l.input.size(0) : 0;
  for (size_t i = 0; i < count; ++i) {
    size_t t = l.reverse ? count - 1 - i : i;
    int64_t batch = l.batch_sizes[t];
    if (l.reverse) at -= batch;
    Step s = one_step(l, cut(x, 0, at, at + batch), cut(h, 0, 0, batch),
                      c.defined() ? cut(c, 0, 0, batch) : c);
    if (!l.reverse) at += batch;
    h = with_first(s.h, h);
    if (c.defined()) c = with_first(s.c, c);
    outputs[t] = s.h, gates[t] = s.gates, cells[t] = s.c;
  }
  DLDataType kept = statistics_dtype(l.input.dtype());
  auto joined = [&](const std::vector<Tensor>& all) {
    Tensor one = all[0].defined() ? cat(all, 0) : zeros_of(l.input, {0});
    return one.dtype() == kept ? one : to(one, kept);
  };
  return {cat(outputs, 0), h, c.defined() ? c : zeros_of(l.input, {0}), joined(gates),
          joined(cells)};
}

aj_status* rnn_layer_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    RecurrentLayer l = layer_of(c, 0, 7);
    int64_t rows = l.input.size(0), hidden = l.hx.size(1);
    DLDataType dtype = l.input.dtype(), kept = statistics_dtype(dtype);
    Sizes none{0};
    c.out(0, dtype, Sizes{rows, hidden});
    c.out(1, dtype, l.hx.shape());
    c.out(2, dtype, l.cx.defined() ? sizes_of(l.cx) : none);
    c.out(3, kept, gate_count(l.mode) > 1 ? Sizes{rows, 4 * hidden} : none);
    c.out(4, kept, l.cx.defined() ? Sizes{rows, hidden} : none);
  });
}

aj_status* rnn_layer_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    RecurrentResult r = unroll(layer_of(b, 0, 7));
    b.ret(0, r.output);
    b.ret(1, r.hn);
    b.ret(2, r.cn);
    b.ret(3, r.gates);
    b.ret(4, r.cells);
  });
}

namespace {

// The layer whose gradients are asked for, what it kept being of its shapes.
RecurrentLayer backward_of(const kit::Values& v) {
  RecurrentLayer l = layer_of(v, 3, 13);
  int64_t rows = l.input.size(0), hidden = l.hx.size(1);
  DLDataType dtype = l.input.dtype(), kept = statistics_dtype(dtype);
  Sizes none{0}, out{rows, hidden}, hx = sizes_of(l.hx);
  Sizes shapes[6] = {out,
                     hx,
                     l.cx.defined() ? sizes_of(l.cx) : none,
                     out,
                     gate_count(l.mode) > 1 ? Sizes{rows, 4 * hidden} : none,
                     l.cx.defined() ? out : none};
  const uint32_t at[6] = {0, 1, 2, 10, 11, 12};
  const char* names[6] = {"grad_output", "grad_hn", "grad_cn", "output", "gates", "cells"};
  for (int i = 0; i < 6; ++i) {
    want_shape(v.tensor(at[i]), names[i], shapes[i]);
    if (product(shapes[i])) want_dtype(v.tensor(at[i]), names[i], i < 4 ? dtype : kept);
  }
  want(v.bools(16).size() == 7, "needs must hold seven flags, it holds ", v.bools(16).size());
  return l;
}

}  // namespace

aj_status* rnn_layer_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    backward_of(c);
    Bools needs = c.bools(16);
    for (uint32_t i = 0; i < 7; ++i) {
      const Tensor& t = c.tensor(3 + i);
      c.out(i, c.tensor(3).dtype(), needs[i] && t.defined() ? sizes_of(t) : Sizes{0});
    }
  });
}

namespace {

struct GradMode {
  explicit GradMode(bool on) : before(kit::env.autograd->set_grad_mode(on)) {}
  ~GradMode() { kit::env.autograd->set_grad_mode(before); }
  int32_t before;
};

// The gradients of what `layer` returns for its tensors that require grad; undefined for others.
std::vector<Tensor> tape_gradients(const RecurrentLayer& l, const kit::Values& given,
                                   std::span<const Tensor* const> wanted, bool create_graph) {
  RecurrentResult r = unroll(l);
  aj_tensor* roots[] = {r.output.get(), r.hn.get(), r.cn.get()};
  aj_tensor* grads[] = {given.tensor(0).get(), given.tensor(1).get(), given.tensor(2).get()};
  std::vector<aj_tensor*> inputs, out;
  for (const Tensor* t : wanted) inputs.push_back(t->get());
  out.resize(inputs.size());
  aj_backward run = {};
  run.struct_size = sizeof run;
  run.flags = AJ_BACKWARD_ALLOW_UNUSED | (create_graph ? AJ_BACKWARD_CREATE_GRAPH : 0);
  run.roots = roots, run.grads = grads, run.nroots = l.cx.defined() ? 3 : 2;
  run.inputs = inputs.data(), run.out = out.data(), run.ninputs = uint32_t(inputs.size());
  kit::check(kit::env.autograd->backward(&run));
  std::vector<Tensor> made;
  for (aj_tensor* t : out) made.push_back(Tensor::steal(t));
  return made;
}

}  // namespace

// On tensors that begin a graph of their own: of a tensor that is used twice, or that depends on
// another one, each use has its own gradient. What is saved depends on input, so it is made again.
aj_status* rnn_layer_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    RecurrentLayer l = backward_of(b);
    Bools needs = b.bools(16);
    bool recording = kit::env.autograd->grad_mode();
    GradMode on(true);
    Tensor* parts[] = {&l.input, &l.hx, &l.cx, &l.weight_ih, &l.weight_hh, &l.bias_ih, &l.bias_hh};
    std::vector<const Tensor*> wanted;
    for (uint32_t i = 0; i < 7; ++i) {
      Tensor& t = *parts[i];
      if (!t.defined()) continue;
      bool linked = recording && t.requires_grad();
      t = linked ? clone(t) : t.detach();
      if (!needs[i]) continue;
      if (!linked) t.requires_grad_();
      wanted.push_back(&t);
    }
    std::vector<Tensor> made;
    if (!wanted.empty())
      made = in_own_name([&] { return tape_gradients(l, b, wanted, recording); });
    for (uint32_t i = 0, at = 0; i < 7; ++i) {
      bool is = needs[i] && parts[i]->defined();
      Tensor g = is ? made[at++] : zeros_of(l.input, {0});
      b.ret(i, g.defined() ? g : zeros_of(l.input, sizes_of(*parts[i])));
    }
  });
}

}  // namespace adjoin::ops
