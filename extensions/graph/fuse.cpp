// extensions/graph/fuse.cpp: chains of element-wise calls as one pass over memory. Each block of
// elements goes through all calls of a group while it lies in the processor's cache; what only they
// need never becomes a whole tensor. The kernels are eager's, and an element's bits do not depend
// on its place, so neither do those of the result.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "passes/passes.hpp"
#include "run.hpp"
#include "value.hpp"

namespace adjoin::graph {

bool is_element_wise(std::string_view kind) {
  static constexpr std::string_view kinds[] = {
      "unary", "unary_float", "unary_bool", "binary", "binary_float", "compare", "pointwise"};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

namespace {

constexpr int64_t kBlock = 16384;  // elements that go through a group at once
constexpr int64_t kLeast =
    1 << 18;  // below, whole tensors are in the cache, and blocks cost more calls
constexpr size_t kMostSteps = 64, kMostInputs = 24;

bool elementwise(const Program& p, const Node& n) {
  if (n.what != Node::What::call || !n.into.empty() || n.results.size() != 1 || n.results[0].list ||
      n.results[0].values.size() != 1)
    return false;
  const OpFacts& f = facts_of(n.op);
  if (f.writes || f.draws || !is_element_wise(f.kind)) return false;
  return std::all_of(n.args.begin(), n.args.end(), [&](const Arg& a) {
    return a.kind == Arg::Kind::value ? !p.values[a.ref].type.other : a.kind == Arg::Kind::constant;
  });
}

int64_t numel_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n)) return 0;
  return n;
}

class Grouping {
 public:
  Grouping(const Program& p, const Block& b, Sequence& s)
      : p_(p), s_(s), part_(s.steps.size()), last_(p.values.size(), 0) {
    for (size_t i = 0; i < s.steps.size(); i++)
      each_use(node(i), [&](uint32_t v) { last_[v] = i; });
    for (uint32_t v : b.results) last_[v] = s.steps.size();
    for (size_t k = 0; k < s.parts.size(); k++)
      std::fill_n(part_.begin() + std::ptrdiff_t(s.parts[k].first), s.parts[k].count, k + 1);
  }

  // Neighbours of one shape; a group of one is none.
  void whole() {
    size_t first = 0;
    for (size_t i = 0; i <= s_.steps.size(); i++) {
      const bool joins = fits(i) && part_[i] == part_[first] &&
                         (i == first || alike(node(first), node(i))) && i - first < kMostSteps;
      if (joins) continue;
      if (i - first > 1) add(first, i);
      first = fits(i) ? i : i + 1;
    }
  }

 private:
  const Node& node(size_t i) const { return *s_.steps[i].node; }
  bool fits(size_t i) const { return i < s_.steps.size() && elementwise(p_, node(i)) && large(i); }
  const std::vector<int64_t>& shape(const Node& n) const {
    return p_.values[n.results[0].values[0]].type.shape;
  }
  // As far as that is known before it runs.
  bool large(size_t i) const {
    const std::vector<int64_t>& s = shape(node(i));
    return std::any_of(s.begin(), s.end(), [](int64_t n) { return n < 0; }) ||
           numel_of(s) >= kLeast;
  }
  bool alike(const Node& a, const Node& b) const {
    return shape(a) == shape(b) && a.no_grad == b.no_grad;
  }

  void add(size_t first, size_t end) {
    Group g;
    g.first = first;
    g.count = end - first;
    g.shape = shape(node(first));
    std::unordered_map<uint32_t, uint32_t> local;
    std::vector<bool> made(p_.values.size());
    for (size_t i = first; i < end; i++) made[node(i).results[0].values[0]] = true;
    for (size_t i = first; i < end; i++)
      each_use(node(i), [&](uint32_t v) {
        if (!made[v] && local.emplace(v, uint32_t(g.inputs.size())).second) g.inputs.push_back(v);
      });
    if (g.inputs.size() > kMostInputs || g.inputs.empty()) return;
    for (uint32_t v : g.inputs) g.types.push_back(p_.values[v].type);
    g.registers = uint32_t(g.inputs.size());
    for (size_t i = first; i < end; i++) {
      Step s = s_.steps[i];
      s.dies.clear();
      for (Step::Put& put : s.values) put.reg = local[put.reg];
      const uint32_t v = node(i).results[0].values[0], mine = g.registers++;
      local[v] = mine;
      g.results.push_back(mine);
      if (last_[v] >= end) g.outputs.push_back({mine, v, p_.values[v].type.dtype});
      g.steps.push_back(std::move(s));
    }
    // A block's temporaries go when they were read last, and their memory is used again.
    for (size_t i = first; i < end; i++)
      each_use(node(i), [&](uint32_t v) {
        auto& dies = g.steps[i - first].dies;
        if (made[v] && last_[v] == i && std::find(dies.begin(), dies.end(), local[v]) == dies.end())
          dies.push_back(local[v]);
      });
    s_.groups.push_back(std::move(g));
  }

  const Program& p_;
  Sequence& s_;
  std::vector<size_t>
      part_;  // by step, its number + 1; a group that is in one serves if it declines
  std::vector<size_t> last_;  // by value: the node that reads it last
};

DLTensor like_of(DLDataType dtype, int32_t ndim, int64_t* shape) {
  return {nullptr, {kDLCPU, 0}, ndim, dtype, shape, nullptr, 0};
}

// The index space is cut into rows of dimension 0, or, where all is of one shape, into pieces of
// one long row.
class Fused {
 public:
  Fused(const Group& g, std::vector<Tensor>& regs, const std::vector<int64_t>& sizes)
      : g_(g), regs_(regs), sizes_(sizes), shape_(shape_at(Type{false, {}, g.shape}, sizes)) {}

  bool fits() {
    uint64_t include, exclude;
    dispatch().thread_keys(&include, &exclude);
    const uint64_t tape = dispatch().key_mask(AJ_STR_LIT("autograd"));
    const bool grad = autograd().grad_mode() && !g_.steps[0].node->no_grad;
    for (size_t i = 0; i < g_.inputs.size(); i++) {
      const aj_tensor* t = regs_[g_.inputs[i]].get();
      if (!t || t->dl.device.device_type != kDLCPU) return false;
      constexpr uint32_t wanted = AJ_TENSOR_STRIDED | AJ_TENSOR_DENSE;
      if ((t->obj.flags & (wanted | AJ_TENSOR_FREE_ORDER)) != wanted) return false;
      if (((t->keys | include) & ~exclude & ~(grad ? 0 : tape)) >> 24) return false;
      // A view may have got a history since.
      if (grad && t->obj.flags & AJ_TENSOR_VIEW) return false;
      const std::vector<int64_t> shape = shape_at(g_.types[i], sizes_);
      if (g_.types[i].other || !(t->dl.dtype == g_.types[i].dtype) || !operand(shape) ||
          !std::equal(t->dl.shape, t->dl.shape + t->dl.ndim, shape.begin(), shape.end()))
        return false;
    }
    return cut();
  }

  void run() {
    for (const Group::Output& o : g_.outputs) {
      DLTensor like = like_of(o.dtype, int32_t(shape_.size()), shape_.data());
      aj_tensor* made = nullptr;
      check(core().tensor_empty(&like, 0, &made));
      outputs_.push_back(Tensor::steal(made));
    }
    auto body = [](void* self, int64_t lo, int64_t hi) {
      return guard("", [&] { static_cast<Fused*>(self)->blocks(lo, hi); });
    };
    check(core().parallel_for(pieces_, std::max<int64_t>(1, pieces_ / 64), body, this));
    for (size_t i = 0; i < outputs_.size(); i++) regs_[g_.outputs[i].to] = outputs_[i];
  }

 private:
  // Is a tensor of the group's shape, one row for all of them, or one element?
  bool operand(const std::vector<int64_t>& shape) {
    const size_t n = shape_.size(), own = shape.size();
    if (own > n) return false;
    bool whole = own == n;
    for (size_t i = 0; i < own; i++) {
      const int64_t size = shape[own - 1 - i], wide = shape_[n - 1 - i];
      if (size != wide && size != 1) return false;
      whole &= size == wide;
    }
    flat_ &= whole || own == 0 || (own == 1 && shape[0] == 1);
    return true;
  }
  bool cut() {
    const int64_t n = numel_of(shape_);
    if (n < kLeast) return false;
    rows_ = flat_ ? n : shape_[0];
    const int64_t row = n / rows_;
    step_ = std::max<int64_t>(1, kBlock / row);
    pieces_ = (rows_ + step_ - 1) / step_;
    return row <= 4 * kBlock && pieces_ > 1;
  }

  // Rows lo .. hi of what has rows; else the tensor itself.
  Tensor part(const Tensor& t, int64_t lo, int64_t hi) const {
    if (t.numel() == 1) return t;
    if (!flat_ && (size_t(t.ndim()) < shape_.size() || t.shape()[0] != rows_)) return t;
    std::vector<int64_t> shape(t.shape().begin(), t.shape().end());
    if (flat_) shape = {hi - lo};
    shape[0] = hi - lo;
    DLTensor like = like_of(t.dtype(), int32_t(shape.size()), shape.data());
    const int64_t row = flat_ ? 1 : t.numel() / rows_;
    aj_tensor* made = nullptr;
    check(core().tensor_view(t.get(), &like, lo * row, &made));
    return Tensor::steal(made);
  }

  void blocks(int64_t first, int64_t end) {
    NoGradGuard off;
    std::vector<Tensor> regs(g_.registers);
    for (int64_t b = first; b < end; b++) {
      const int64_t lo = b * step_, hi = std::min(lo + step_, rows_);
      for (size_t i = 0; i < g_.inputs.size(); i++) regs[i] = part(regs_[g_.inputs[i]], lo, hi);
      for (size_t i = 0; i < outputs_.size(); i++)
        regs[g_.outputs[i].from] = part(outputs_[i], lo, hi);
      for (size_t i = 0; i < g_.steps.size(); i++) {
        aj_value ret{};
        Tensor& to = regs[g_.results[i]];
        if (to.defined()) ret = value(to);  // an output is written where it belongs
        call_step(g_.steps[i], regs.data(), sizes_, &ret);
        to = Tensor::steal(ret.v.tensor);
        for (uint32_t dead : g_.steps[i].dies) regs[dead] = Tensor();
      }
      for (uint32_t r : g_.results) regs[r] = Tensor();
    }
  }

  const Group& g_;
  std::vector<Tensor>& regs_;
  const std::vector<int64_t>& sizes_;
  std::vector<int64_t> shape_;
  std::vector<Tensor> outputs_;
  bool flat_ = true;
  int64_t rows_ = 0, step_ = 0, pieces_ = 0;  // pieces_ blocks of step_ rows
};

}  // namespace

void find_groups(const Program& p, const Block& b, Sequence& s) { Grouping(p, b, s).whole(); }

bool run_group(const Group& g, std::vector<Tensor>& regs, const std::vector<int64_t>& sizes) {
  Fused fused(g, regs, sizes);
  if (!fused.fits()) return false;
  fused.run();
  return true;
}

}  // namespace adjoin::graph
