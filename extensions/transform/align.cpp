// extensions/transform/align.cpp: elementwise ops: samples in front, the other dimensions meet at
// their ends.
#include <adjoin/kit/ops.hpp>
#include <algorithm>

#include "batch.hpp"

namespace adjoin::transform {
namespace {

// 0 bool, 1 integer, 2 floating, 3 complex.
int category(DLDataType d) {
  if (d.code == kDLBool) return 0;
  if (d.code == kDLComplex) return 3;
  return d.code == kDLFloat || d.code == kDLBfloat ? 2 : 1;
}

// A sample of no dimensions promotes weakly, its payload does not: it gets the dtype that it would
// have beside the others.
void weaken(Batch& b, int64_t rank) {
  DLDataType wide{};
  bool any = false, differ = false;
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    if (!b.is_tensor(i) || b.facts.params[i].fixed || b.rank(i) == 0) continue;
    if (any)
      check(core().dtype_promote(wide, b.tensor(i).dtype(), &wide));
    else
      wide = b.tensor(i).dtype();
    any = true;
  }
  for (uint32_t i = 0; i < b.call->nargs; i++)
    differ |= b.is_tensor(i) && !b.facts.params[i].fixed && !(b.tensor(i).dtype() == wide);
  if (!differ) return;
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    if (!b.is_tensor(i) || b.facts.params[i].fixed || b.rank(i) != 0) continue;
    const Tensor& t = b.tensor(i);
    if (rank ==
        0) {  // all are such samples: they promote as equals, and must not lose to a payload
      if (!b.is_batched(i)) b.set(i, reshape(t, {1}), false);
    } else if (any && b.is_batched(i) && category(t.dtype()) <= category(wide) &&
               !(t.dtype() == wide)) {
      b.set(i, to(t, wide), true);
    }
  }
}

}  // namespace

void rule_align(Batch& b) {
  int64_t rank = 0;
  bool any = false;
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    if (!b.is_tensor(i)) continue;
    rank = std::max(rank, b.rank(i));
    any |= b.is_batched(i);
  }
  if (any && !b.in_place()) weaken(b, rank);
  for (uint32_t i = 0; any && i < b.call->nargs; i++)
    if (b.is_batched(i)) b.set(i, aligned(b.tensor(i), true, rank), true);
  if (b.in_place() && any && b.is_tensor(0) && b.is_batched(0) &&
      b.rank(0) != b.tensor(0).ndim() - 1)
    raise(AJ_INVALID_ARGUMENT, "vmap: the written tensor has fewer dimensions than the result");
  b.run();
  for (uint32_t i = 0; i < b.facts.nresults; i++) b.out_dims[i] = any ? 0 : -1;
}

}  // namespace adjoin::transform
