// frontends/python/src/dispatch.hpp: tensors of the key "python", whose class serves their calls.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// The tensor becomes an instance of its class; NULL in out: an error is set. False: it is not of
// that key.
bool wrap_instance(aj_tensor* steal, PyObject** out);
// What the object has from now on, shared with the others of one payload (tensor.cpp).
void set_attributes(PyObject* object, PyObject* dict);
int init_dispatch(PyObject* module);

}  // namespace adjoin::py
