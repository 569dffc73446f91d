// frontends/python/src/value.hpp: the elements of tensors as Python numbers.
#pragma once

#include "tensor.hpp"

namespace adjoin::py {

// The only element; NULL with an error set.
PyObject* item_of(aj_tensor* t);
// One element of a built-in dtype at an address.
PyObject* number_at(const void* data, DLDataType dtype);

// A strided tensor with its data on the host: t itself (retained), or a copy. NULL with an error
// set.
aj_tensor* host_copy(aj_tensor* t);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float x);
float bfloat_to_float(uint16_t bits);
uint16_t float_to_bfloat(float x);

int tensor_bool(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_float(PyObject* self);
PyObject* tensor_index(PyObject* self);

}  // namespace adjoin::py
