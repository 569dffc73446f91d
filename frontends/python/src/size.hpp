// frontends/python/src/size.hpp: Size, the tuple that a shape is.
#pragma once

#include "py.hpp"

namespace adjoin::py {

extern PyTypeObject size_type;
PyObject* size_object(const int64_t* sizes, int32_t n);
PyObject* one_size(int64_t n);  // of a shape, as a number
PyObject* tuple_of(const int64_t* values, int32_t n);

}  // namespace adjoin::py
