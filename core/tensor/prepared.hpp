// core/tensor/prepared.hpp: forms of a tensor's contents made for faster use, such as packed
// weights, kept until the contents may have changed.
//
// A storage carries a number of its contents: 0 before anybody asks, another one after every write.
// Numbers are never given twice, so a form is right as long as its number is the storage's.
#pragma once
#include "core/tensor/tensor.hpp"

namespace adjoin {

// aj_core's entries, which say what these do.
uint64_t prepared_find(aj_tensor* t, const void* key, uint64_t bytes, aj_tensor** out);
void prepared_keep(aj_tensor* t, uint64_t ticket, const void* key, uint64_t bytes, aj_tensor* form);
void tensor_escape(aj_tensor* t);

// Every form is dropped: memory is short, or the user wants it back.
void prepared_release();

}  // namespace adjoin
