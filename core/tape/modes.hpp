// core/tape/modes.hpp: recording on and off; a tensor's place on the tape as its owner sees and
// sets it.
#pragma once
#include "core/tape/node.hpp"

namespace adjoin {

int32_t grad_mode();
int32_t set_grad_mode(int32_t on);
int32_t inference_mode();
int32_t set_inference_mode(int32_t on);

aj_status* set_requires_grad(aj_tensor* t, int32_t on);
aj_status* get_grad(aj_tensor* t, aj_tensor** out);
aj_status* set_grad(aj_tensor* t, aj_tensor* grad);
aj_status* detach(aj_tensor* t, aj_tensor** out);
aj_status* detach_in_place(aj_tensor* t);
aj_status* data_of(aj_tensor* t, aj_tensor** out);
aj_status* set_data(aj_tensor* t, aj_tensor* source);
aj_status* base_of(aj_tensor* t, aj_tensor** out);

}  // namespace adjoin
