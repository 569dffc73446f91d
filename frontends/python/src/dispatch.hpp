// frontends/python/src/dispatch.hpp: tensors of the key "python", whose class serves their calls.
#pragma once

#include <atomic>

#include "py.hpp"

namespace adjoin::py {

// The tensor becomes an instance of its class; NULL in out: an error is set. False: it is not of
// that key.
bool wrap_instance(aj_tensor* steal, PyObject** out);
// What the object has from now on, shared with the others of one payload (tensor.cpp).
void set_attributes(PyObject* object, PyObject* dict);
// How many threads have entered a mode: it is to see who reads a value, too.
extern std::atomic<int> watching;
// A thread includes a key (1), or does not any more (-1).
void watch_values(uint64_t mask, int more);
int init_dispatch(PyObject* module);

}  // namespace adjoin::py
