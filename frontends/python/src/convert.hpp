// frontends/python/src/convert.hpp: tensors from Python's data.
#pragma once

#include "tensor.hpp"

namespace adjoin::py {

// A new tensor with the contents of a number, nested sequences, an array or a tensor. dtype NULL:
// from the data.
aj_tensor* tensor_from_data(PyObject* data, const DLDataType* dtype, DLDevice device);

// A tensor on an object's own memory: buffers, __array_interface__, DLPack. NULL without an error
// if it offers none.
aj_tensor* tensor_on_memory(PyObject* o);

// Changes dtype and device by the core's op; takes the reference.
aj_tensor* cast_to(aj_tensor* steal, const DLDataType* dtype, const DLDevice* device);

}  // namespace adjoin::py
