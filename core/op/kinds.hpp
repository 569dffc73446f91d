// core/op/kinds.hpp: the ways in which an op is run: pointwise, reduce, scan, view, generic.
#pragma once
#include <adjoin/kit/words.hpp>

#include "core/op/op.hpp"

namespace adjoin {

// core/call has these.
aj_status* run_pointwise(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*,
                         uint32_t);
// What run_pointwise does not serve at once.
aj_status* run_planned(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*,
                       uint32_t);
aj_status* run_reduce(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*,
                      uint32_t);
aj_status* run_scan(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*,
                    uint32_t);
aj_status* run_view(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*,
                    uint32_t);
aj_status* run_generic(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*,
                       uint32_t);

// May it write where elements share memory? One number everywhere is the same whoever wins.
inline bool writes_one_number(const aj_op* op, const aj_value* args, uint32_t nargs) {
  return kit::has_word(op->tags, "overlap:number") && (nargs < 2 || args[1].tag != AJ_TENSOR);
}
aj_status* set_kind(aj_op* op);  // from kind_name
RunFn kind_run(Kind kind);       // how its ops are run
// Of which dtypes a kernel takes dense tensors that are alike, whatever they hold: Kernel::alike.
uint64_t alike_dtypes(const aj_op* op, const Kernel& k);
bool has_own_shapes(const aj_op* op);  // the kind says the shapes, no infer needed
extern const Kernel meta_kernel;       // serves the meta device: shapes were all

constexpr int kMaxOperands = 16;
constexpr int kMaxResults = 8;

}  // namespace adjoin
