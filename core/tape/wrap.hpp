// core/tape/wrap.hpp: tensors without strides: what stands in place of their memory, and who settles them.
#pragma once
#include <adjoin/abi/wrap.h>

#include <string>
#include <string_view>

#include "core/op/op.hpp"
#include "core/call/order.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

// The memory of a wrapper. Its aliases share it, so they share payload and version, and the values once they are there.
struct WrapStorage : ForeignStorage {
  uint64_t key;
  aj_object* payload;    // NULL once fulfilled
  aj_tensor* source;     // whose memory was taken over
  aj_tensor* version_of;
  int32_t level, layout;
  std::atomic<uint8_t> spin;  // held while payload and source are replaced
};

// A key's definition. Never freed; one without functions takes its place once its plugin is disabled.
struct Wrapper {
  aj_wrapper_def def;
  std::string key, hint, provider;
};

inline bool is_strided(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_STRIDED; }

aj_status* def_wrapper(aj_registrar* r, const aj_wrapper_def* d);
const Wrapper* wrapper_of(const aj_tensor* t);  // of its key; t is not strided

// t itself if it is strided, in C order if that is ours to choose; else its values; else refused.
aj_status* strided_of(aj_tensor* t, std::string_view who, aj_tensor** out);
aj_status* settle_wrapper(aj_tensor* t, std::string_view who);
// Before the memory of t is shown or written: it is strided afterwards, or the status says why not.
inline aj_status* settle_memory(aj_tensor* t, std::string_view who) {
  if ((t->obj.flags & (AJ_TENSOR_STRIDED | AJ_TENSOR_FREE_ORDER)) == AJ_TENSOR_STRIDED) return nullptr;
  return is_strided(t) ? settle_order(t) : settle_wrapper(t, who);
}
aj_status* refuse_wrapper(const aj_tensor* t, std::string_view who);

aj_status* tensor_set_payload(aj_tensor* t, aj_object* payload);
aj_object* tensor_payload(const aj_tensor* t, uint64_t key);
// What is kept of a version: differs from the storage's own number where writes elsewhere count, too.
uint32_t watched_version(const aj_tensor* t);
void wrap_written(Storage& s);  // a write to a wrapper counts for who shares its version
aj_status* tensor_copy(aj_tensor* t, aj_tensor** out);  // by its key; NULL: the key has no copy, or t is strided
aj_status* sum_gradients(aj_tensor* a, aj_tensor* b, aj_tensor** out);  // of unlike layouts

extern const aj_wrappers wrap_table;

}  // namespace adjoin
