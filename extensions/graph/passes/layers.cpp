// extensions/graph/passes/layers.cpp: layers that inference can do without: batch norms behind a
// convolution or a linear layer, dropout that is off.
#include <algorithm>
#include <numeric>

#include "../value.hpp"
#include "passes.hpp"

namespace adjoin::graph {
namespace {

uint32_t place_of_param(const OpFacts& f, std::string_view name) {
  for (uint32_t i = 0; i < f.params.size(); i++)
    if (view_of(f.params[i].name) == name) return i;
  return kNone;
}
// The argument under a name; the default where it is left out.
Arg argument(const Node& n, std::string_view name) {
  const OpFacts& f = facts_of(n.op);
  const uint32_t i = place_of_param(f, name);
  if (i == kNone) return {};
  return i < n.args.size() ? n.args[i] : default_of(f.params[i]);
}
bool is_call(const Node& n, std::string_view name) {
  return n.what == Node::What::call && facts_of(n.op).name == name;
}
bool is_absent(const Arg& a) { return a.kind == Arg::Kind::constant && a.tag == AJ_NONE; }

template <class... A>
Tensor call(const char* name, const A&... args) {
  const aj_op* op = dispatch().find_op(str(name));
  if (!op) raise(AJ_INTERNAL, "passes: there is no op '", name, "'");
  const aj_value values[] = {args...};
  return run_as<Tensor>(op, values, uint32_t(sizeof...(A)));
}

class Folding {
 public:
  explicit Folding(Program& p) : p_(p), to_(p.values.size()) {
    std::iota(to_.begin(), to_.end(), 0u);
  }

  void whole() {
    Shared shared(p_);
    std::vector<uint32_t> uses(p_.values.size());
    std::vector<Node*> made_by(p_.values.size());
    for (Node& n : p_.body.nodes) {
      each_use(n, [&](uint32_t v) { uses[v]++; });
      for (const Result& r : n.results)
        for (uint32_t v : r.values) made_by[v] = &n;
    }
    for (uint32_t v : p_.body.results) uses[v]++;
    NoGradGuard off;
    for (Node& n : p_.body.nodes) {
      if (!is_call(n, "nn::batch_norm") || n.args[0].kind != Arg::Kind::value) continue;
      const uint32_t x = n.args[0].ref;
      Node* layer = made_by[x];
      if (!layer || uses[x] != 1 || shared.is_written(x)) continue;
      if (!is_call(*layer, "nn::linear") && !is_call(*layer, "nn::conv1d") &&
          !is_call(*layer, "nn::conv2d") && !is_call(*layer, "nn::conv3d"))
        continue;
      // A linear layer's channels are its last dimension; a norm's are the second.
      if (is_call(*layer, "nn::linear") && p_.values[x].type.shape.size() != 2) continue;
      if (fold(*layer, n)) to_[n.results[0].values[0]] = x;
    }
    const std::vector<uint32_t> to = to_;
    std::erase_if(p_.body.nodes, [&](const Node& n) {
      return is_call(n, "nn::batch_norm") && n.results[0].values.size() == 1 &&
             to[n.results[0].values[0]] != n.results[0].values[0];
    });
    grow();
    replace(p_, to_);
    remove_dead(p_);
  }

 private:
  void grow() {
    for (uint32_t v = uint32_t(to_.size()); v < p_.values.size(); v++) to_.push_back(v);
  }
  // The values of a constant; undefined: it is none.
  Tensor constant(const Arg& a) const {
    if (a.kind != Arg::Kind::value) return {};
    for (const Weight& w : p_.weights)
      if (w.value == a.ref && w.constant) return w.tensor;
    return {};
  }
  uint32_t keep(const Tensor& t) {
    std::vector<int64_t> shape(t.shape().begin(), t.shape().end());
    const uint32_t v = p_.add({false, t.dtype(), std::move(shape)});
    p_.values[v].name = text("folded", v);
    add_constant(p_, v, t);
    return v;
  }

  bool fold(Node& layer, const Node& norm) {
    const Arg training = argument(norm, "training");
    if (training.kind != Arg::Kind::constant || training.i ||
        argument(norm, "eps").kind != Arg::Kind::constant)
      return false;
    const Tensor mean = constant(argument(norm, "running_mean"));
    const Tensor variance = constant(argument(norm, "running_var"));
    const Arg scale_arg = argument(norm, "weight"), shift_arg = argument(norm, "bias");
    const Tensor scale = constant(scale_arg), shift = constant(shift_arg);
    const Tensor weight = constant(argument(layer, "weight"));
    const Arg bias_arg = argument(layer, "bias");
    const Tensor bias = constant(bias_arg);
    if (!mean.defined() || !variance.defined() || !weight.defined()) return false;
    if ((!scale.defined() && !is_absent(scale_arg)) ||
        (!shift.defined() && !is_absent(shift_arg)) || (!bias.defined() && !is_absent(bias_arg)))
      return false;
    // y = (x - mean) by + shift, x = weight * input + bias.
    Tensor by = call("rsqrt", value(call("add", value(variance), value(argument(norm, "eps").re))));
    if (scale.defined()) by = call("mul", value(by), value(scale));
    Tensor moved = call("mul", value(by), value(call("neg", value(mean))));
    if (bias.defined())
      moved = call("add", value(moved), value(call("mul", value(by), value(bias))));
    if (shift.defined()) moved = call("add", value(moved), value(shift));
    std::vector<int64_t> each(size_t(weight.ndim()), 1);
    each[0] = weight.shape()[0];
    const Tensor along = call("reshape", value(by), value(Ints(each.data(), each.size())));
    put(layer, "weight", keep(call("mul", value(weight), value(along))));
    put(layer, "bias", keep(moved));
    return true;
  }
  void put(Node& n, std::string_view name, uint32_t v) {
    const OpFacts& f = facts_of(n.op);
    const uint32_t i = place_of_param(f, name);
    while (n.args.size() <= i) n.args.push_back(default_of(f.params[n.args.size()]));
    n.args[i] = Arg::of(v);
  }

  Program& p_;
  std::vector<uint32_t> to_;
};

}  // namespace

void fold_norms(Program& p) { Folding(p).whole(); }

void drop_dropout(Program& p) {
  Shared shared(p);
  std::vector<uint32_t> to(p.values.size());
  std::iota(to.begin(), to.end(), 0u);
  std::erase_if(p.body.nodes, [&](const Node& n) {
    if (!is_call(n, "nn::dropout") || n.args[0].kind != Arg::Kind::value || n.results.size() != 1 ||
        n.results[0].values.size() != 1)
      return false;
    const Arg training = argument(n, "training");
    if (training.kind != Arg::Kind::constant || training.tag != AJ_BOOL || training.i) return false;
    const uint32_t v = n.results[0].values[0];
    if (shared.is_written(v)) return false;
    to[v] = n.args[0].ref;
    return true;
  });
  replace(p, to);
}

}  // namespace adjoin::graph
