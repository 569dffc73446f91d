// frontends/python/src/buffer.hpp: memory shared with other Python objects by the buffer protocol
// and its relatives.
#pragma once

#include "tensor.hpp"

namespace adjoin::py {

// A tensor with a copy of what an object holds. NULL without an error if the object offers no
// memory.
aj_tensor* copy_of_memory(PyObject* o);

// A tensor on the object's memory, which it keeps alive. NULL without an error if the object offers
// none.
aj_tensor* view_of_memory(PyObject* o);

bool dtype_of_format(const char* format, Py_ssize_t itemsize, DLDataType* out);
// NULL for a dtype that Python's struct notation does not have.
const char* format_of_dtype(DLDataType d);

}  // namespace adjoin::py
