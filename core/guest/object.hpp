// core/guest/object.hpp: counted objects other than tensors: strings, lists, functions, generators,
// and types of plugins.
#pragma once
#include <adjoin/abi/core.h>

#include <atomic>
#include <string_view>

#include "core/base/status.hpp"

namespace adjoin {

// What ends a tensor and a node of the tape: core/tensor and core/tape have them.
void tensor_destroy(aj_tensor* t);
void node_destroy(aj_object* o);    // of type kNodeType
constexpr int32_t kNodeType = 200;  // aj_node.obj.type
void object_destroy(aj_object* o);  // objects other than these

inline std::atomic<uint32_t>& refs(aj_object* o) {
  return *reinterpret_cast<std::atomic<uint32_t>*>(&o->refs_private);
}
inline void retain(aj_object* o) {
  if (o) refs(o).fetch_add(1, std::memory_order_relaxed);
}
inline void retain(aj_tensor* t) { retain(reinterpret_cast<aj_object*>(t)); }
// A count of 1 is ours alone: no locked instruction.
inline bool drop_ref(std::atomic<uint32_t>& r) {
  if (r.load(std::memory_order_acquire) == 1) return true;
  return r.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
inline void release(aj_tensor* t) {
  if (t && drop_ref(refs(&t->obj))) tensor_destroy(t);
}
void release(aj_object* o);

aj_status* type_register(aj_str name, uint64_t payload_size, void (*destroy)(void*),
                         int32_t* out_type);
aj_status* type_find(aj_str name, int32_t* out_type);
aj_str type_name(int32_t type);
void types_end(std::string_view plugin);  // its types make no objects any more
aj_status* type_object_new(int32_t type, aj_object** out, void** out_payload);
aj_status* object_new(int32_t type, size_t payload, void (*destroy)(void*), aj_object** out,
                      void** out_payload);
void* object_payload(aj_object* o);
void (*object_destroyer(const aj_object* o))(void*);  // of its payload; NULL: none

aj_status* string_new(aj_str text, aj_object** out);
aj_str string_get(const aj_object* o);
aj_status* list_new(const aj_value* items, uint32_t n, aj_object** out);
aj_status* list_new_stealing(aj_value* items, uint32_t n, aj_object** out);
const aj_value* list_get(const aj_object* o, uint32_t* n);
aj_status* complex_new(double real, double imag, aj_object** out);
aj_status* complex_get(const aj_object* o, double* real, double* imag);
aj_status* stream_new(DLDevice device, void* native, aj_object** out);
aj_status* stream_get(const aj_object* o, DLDevice* device, void** native);
void release_value(aj_value& v);  // an owned result
// A borrowed value as one that is given away: what points to memory of somebody becomes an object.
aj_status* value_own(const aj_value& v, aj_value* out);
aj_status* function_new(aj_function_fn fn, void* self, void (*drop)(void*), aj_object** out);
aj_status* function_call(aj_object* f, const aj_value* args, uint32_t nargs, aj_value* ret);

// retain and release of the contract: tensors, objects and nodes, told apart by type.
void any_retain(void* object);
void any_release(void* object);

}  // namespace adjoin
