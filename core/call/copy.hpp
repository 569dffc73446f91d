// core/call/copy.hpp: copies between tensors, whatever their devices and dtypes.
#pragma once
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* run_copy_across(const aj_value* args, uint32_t nargs,
                           aj_value* rets);               // copy_ between devices
bool arranges_copies(Device* d);                          // has it a kernel for copy_?
aj_status* copy_by_host(aj_tensor* to, aj_tensor* from);  // where one of the devices has none
aj_status* copy_into(aj_tensor* to, aj_tensor* from);     // copy_ without recording
aj_status* cast_to(aj_tensor* t, const DType& dtype, aj_tensor** out);  // without recording

// A copy of a host tensor in pinned memory, taken from the first device of a kind; t itself if it
// lies there already.
aj_status* tensor_pin(aj_tensor* t, int32_t device_type, aj_tensor** out);
int32_t tensor_pinned(const aj_tensor* t);

}  // namespace adjoin
