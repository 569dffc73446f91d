// extensions/transform/dims.cpp: ops with dimensions and sizes: each dimension is one further back,
// sizes get the number of samples in front.
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <numeric>

#include "batch.hpp"

namespace adjoin::transform {
namespace {

bool reduces(const OpFacts& f) { return f.kind.starts_with("reduce"); }

// Every tensor with its samples; lists too.
void spread_all(Batch& b) {
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    if (b.is_tensor(i)) {
      if (!b.is_batched(i) && !(b.in_place() && i == 0)) b.set(i, b.spread(i), true);
    } else if (b.args[i].tag == AJ_TENSORS) {
      auto list = const_cast<aj_tensor**>(b.args[i].v.tensors);
      for (uint32_t j = 0; j < b.args[i].aux; j++) {
        int32_t& batched = b.batched[b.first(i) + j];
        if (!list[j] || batched == 0) continue;
        b.held.push_back(spread(Tensor::view(list[j]), false, b.size()));
        list[j] = b.held.back().get();
        batched = 0;
      }
    }
  }
}

// A shape that the user sees, -1 resolved: with no samples nobody could tell it from the payload.
std::vector<int64_t> sizes_of(const Batch& b, uint32_t i) {
  std::vector<int64_t> sizes(b.args[i].v.ints, b.args[i].v.ints + b.args[i].aux);
  if (b.facts.name == "expand") {
    const Tensor& t = b.tensor(0);
    const int64_t lead = int64_t(sizes.size()) - b.rank(0);
    for (size_t d = 0; d < sizes.size(); d++)
      if (sizes[d] == -1 && int64_t(d) >= lead) sizes[d] = t.shape()[size_t(int64_t(d) - lead) + 1];
    return sizes;
  }
  auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open == sizes.end()) return sizes;
  int64_t have = 1, rest = 1;
  for (int64_t d = 0; d < b.rank(0); d++) have *= b.tensor(0).shape()[size_t(d + 1)];
  for (int64_t s : sizes) rest *= s == -1 ? 1 : s;
  if (rest > 0 && have % rest == 0) *open = have / rest;
  return sizes;
}

// No dimension is named: all but the samples'.
void reduce_all(Batch& b, uint32_t i) {
  const int64_t rank = b.tensor(0).ndim() - 1;
  if (b.facts.params[i].list) {
    std::vector<int64_t> all(static_cast<size_t>(rank));
    std::iota(all.begin(), all.end(), 1);
    b.set_ints(i, all);
    return;
  }
  const int64_t count = std::accumulate(b.tensor(0).shape().begin() + 1, b.tensor(0).shape().end(),
                                        int64_t(1), std::multiplies<>());
  b.set(0, reshape(b.tensor(0), {b.size(), count}), true);
  b.args[i] = value(int64_t(1));
}

void move_dims(Batch& b) {
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    const OpFacts::Param& p = b.facts.params[i];
    aj_value& v = b.args[i];
    const bool dim = p.base == AJ_PARAM_DIM || p.name == "dimension";
    const bool none = v.tag == AJ_NONE || (v.tag == AJ_INTS && v.aux == 0);
    if (dim && reduces(b.facts) && none) {
      reduce_all(b, i);
    } else if (dim && v.tag == AJ_INT) {
      v.v.i++;
    } else if (dim && v.tag == AJ_INTS) {
      std::vector<int64_t> moved(v.v.ints, v.v.ints + v.aux);
      for (int64_t& d : moved) d++;
      if (b.facts.name == "permute" || b.facts.name == "permute_backward")
        moved.insert(moved.begin(), 0);
      b.set_ints(i, moved);
    } else if (p.base == AJ_PARAM_SIZE && p.list == -1 && v.tag == AJ_INTS) {
      std::vector<int64_t> sizes = sizes_of(b, i);
      sizes.insert(sizes.begin(), b.size());
      b.set_ints(i, sizes);
    }
  }
}

// A sample of no dimensions has one in the payload, so that a dimension can be named.
bool deepen(Batch& b) {
  if (b.facts.kind == "view" || !b.is_tensor(0) || b.rank(0) != 0 ||
      b.facts.name.ends_with("_backward") || b.facts.makes)
    return false;
  for (uint32_t i = 0; i < b.call->nargs; i++)
    if (b.is_tensor(i) && b.rank(i) == 0) b.set(i, reshape(b.tensor(i), {b.size(), 1}), true);
  return true;
}

}  // namespace

void rule_dims(Batch& b) {
  if (std::none_of(b.batched.begin(), b.batched.end(), [](int32_t d) { return d == 0; })) {
    b.run();
    for (uint32_t i = 0; i < b.facts.nresults; i++) b.out_dims[i] = -1;
    return;
  }
  const std::string_view name = b.facts.name;
  if ((name == "squeeze.dim" || name == "transpose") && b.rank(0) == 0)
    return b.give(0, alias(b.tensor(0)));
  spread_all(b);
  const bool windows = name == "unfold" && b.rank(0) == 0;  // of one element; their dimension goes
  if (windows) b.set(0, reshape(b.tensor(0), {b.size(), 1}), true);
  const bool flat = name != "gather" || b.rank(2) == 0;  // gather's result is as its index
  const bool deep = deepen(b) && flat;
  if (name == "expand") b.set(0, aligned(b.tensor(0), true, b.args[1].aux), true);
  move_dims(b);
  b.run();
  if (windows) return b.give(0, select(b.result(0), 1, 0));
  for (uint32_t i = 0; deep && i < b.facts.nresults; i++)
    if (b.rets[i].tag == AJ_TENSOR && b.result(i).ndim() == 2)
      b.give(i, reshape(b.result(i), {b.size()}));
  if (!deep && reduces(b.facts)) {  // a flattened reduction that keeps dimensions
    const int keep = b.facts.find("keepdim");
    const int64_t rank =
        at_level(b.call->args[0].v.tensor, b.level) ? b.call->args[0].v.tensor->dl.ndim : 0;
    if (keep >= 0 && b.args[keep].v.i && b.result(0).ndim() != rank + 1) {
      std::vector<int64_t> ones(size_t(rank + 1), 1);
      ones[0] = b.size();
      b.give(0, reshape(b.result(0), ones));
    }
  }
}

}  // namespace adjoin::transform
