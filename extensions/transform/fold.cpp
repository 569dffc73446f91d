// extensions/transform/fold.cpp: the samples into an op's leading dimension, or before it, where
// the op takes any number of such; and rules of plugins.
#include <adjoin/kit/ops.hpp>
#include <adjoin/kit/view.hpp>

#include "batch.hpp"

namespace adjoin::transform {
namespace {

bool none_batched(Batch& b) {
  for (int32_t d : b.batched)
    if (d == 0) return false;
  b.run();
  for (uint32_t i = 0; i < b.facts.nresults; i++) b.out_dims[i] = -1;
  return true;
}

}  // namespace

void rule_lead(Batch& b) {
  if (none_batched(b)) return;
  const int64_t rank = b.rank(0);
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    if (!b.is_tensor(i)) continue;
    if (b.facts.params[i].name != "mask") {
      b.set(i, b.spread(i), true);
    } else if (b.is_batched(i)) {  // it meets the scores at their ends
      b.set(i, aligned(b.tensor(i), true, rank), true);
    }
  }
  b.run();
}

// The place of a weight says which word of the generator drops it: among more it is another one.
void rule_attention(Batch& b) {
  const bool drops = kit::Args(b.call).real(uint32_t(b.facts.find("p"))) > 0;
  drops ? rule_loop(b) : rule_lead(b);
}

void rule_fold(Batch& b) {
  if (none_batched(b)) return;
  if (b.size() == 0) return rule_loop(b);  // nothing tells how long the dimension was
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    aj_value& v = b.args[i];
    if (b.is_tensor(i)) {
      Tensor t = b.spread(i);
      std::vector<int64_t> sizes(t.shape().begin() + 1, t.shape().end());
      sizes[0] *= b.size();
      b.set(i, reshape(t, sizes), true);
    } else if (b.facts.params[i].base == AJ_PARAM_SIZE && b.facts.params[i].list == -1 &&
               v.tag == AJ_INTS && b.facts.params[i].name == "input_shape") {
      std::vector<int64_t> sizes(v.v.ints, v.v.ints + v.aux);
      sizes[0] *= b.size();
      b.set_ints(i, sizes);
    }
  }
  b.run();
  for (uint32_t i = 0; i < b.facts.nresults; i++) {
    if (b.rets[i].tag != AJ_TENSOR) continue;
    const Tensor& t = b.result(i);
    std::vector<int64_t> sizes(t.shape().begin(), t.shape().end());
    sizes[0] = b.size() ? sizes[0] / b.size() : 0;
    sizes.insert(sizes.begin(), b.size());
    b.give(i, reshape(t, sizes));
  }
}

void rule_foreign(Batch& b) {
  aj_batch_call c{};
  c.struct_size = sizeof c;
  c.flags = b.in_place() ? uint32_t(AJ_CALL_IN_PLACE) : 0;
  c.core = &core();
  c.op = &dispatch();
  c.target = b.facts.op;
  c.args = b.args;
  c.dims = b.batched.data();
  c.rets = b.rets;
  c.out_dims = b.out_dims;
  c.size = b.size();
  c.nargs = b.call->nargs;
  c.ndims = uint32_t(b.batched.size());
  c.nrets = b.facts.nresults;
  c.randomness = b.level.randomness;
  if (b.in_place()) {
    b.rets[0] = b.args[0];
    core().retain(b.rets[0].v.tensor);
  }
  check(b.facts.foreign->batch(b.facts.foreign->self, &c));
  for (uint32_t i = 0; i < b.facts.nresults; i++)
    if (b.rets[i].tag == AJ_TENSOR && b.out_dims[i] > 0) {
      std::vector<int64_t> order{b.out_dims[i]};
      for (int64_t d = 0; d < b.result(i).ndim(); d++)
        if (d != b.out_dims[i]) order.push_back(d);
      b.give(i, permute(b.result(i), order));
    }
}

}  // namespace adjoin::transform
