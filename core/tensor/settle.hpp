// core/tensor/settle.hpp: before memory is shown or written, it is as users were promised: strided,
// and in C order if they asked for none. core/call/order.cpp has settle_in_place;
// core/tape/wrap.cpp has the others.
#pragma once
#include <string_view>

#include "core/tensor/tensor.hpp"

namespace adjoin {

inline bool is_strided(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_STRIDED; }

// Brings t to C order in memory of its own. Others may read t meanwhile, as they do inside
// keep_order.
aj_status* settle_in_place(aj_tensor* t);
inline aj_status* settle_order(aj_tensor* t) {
  return order_is_free(t) ? settle_in_place(t) : nullptr;
}

// t itself if it is strided, in C order if that is ours to choose; else its values; else refused.
aj_status* strided_of(aj_tensor* t, std::string_view who, aj_tensor** out);
aj_status* settle_wrapper(aj_tensor* t, std::string_view who);
// Before the memory of t is shown or written: it is strided afterwards, or the status says why not.
inline aj_status* settle_memory(aj_tensor* t, std::string_view who) {
  if ((t->obj.flags & (AJ_TENSOR_STRIDED | AJ_TENSOR_FREE_ORDER)) == AJ_TENSOR_STRIDED)
    return nullptr;
  return is_strided(t) ? settle_order(t) : settle_wrapper(t, who);
}
void wrap_written(Storage& s);  // a write to a wrapper counts for who shares its version

}  // namespace adjoin
