// core/tape/wrap.hpp: tensors without strides: what stands in place of their memory, and who
// settles them.
#pragma once
#include <adjoin/abi/wrap.h>

#include <string>
#include <string_view>

#include "core/op/registry.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {

const Wrapper* wrapper_of(const aj_tensor* t);  // of its key; t is not strided

int32_t level_of(const aj_tensor* t);           // as aj_wrap said; else 0

aj_status* refuse_wrapper(const aj_tensor* t, std::string_view who);

aj_status* tensor_set_payload(aj_tensor* t, aj_object* payload);
aj_object* tensor_payload(const aj_tensor* t, uint64_t key);
// What is kept of a version: differs from the storage's own number where writes elsewhere count,
// too.
uint32_t watched_version(const aj_tensor* t);
aj_status* tensor_copy(aj_tensor* t,
                       aj_tensor** out);  // by its key; NULL: the key has no copy, or t is strided
aj_status* sum_gradients(aj_tensor* a, aj_tensor* b, aj_tensor** out);  // of unlike layouts

extern const aj_wrappers wrap_table;

}  // namespace adjoin
