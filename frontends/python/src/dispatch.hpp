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
// The object becomes that of the tensor that `other` has, which nobody else holds and which is left
// without: what has no memory changes its shape so (tensor.cpp).
void take_over(PyObject* self, PyObject* other);
// Calls with the tensor, which has memory, are seen by its class from now on.
void see_calls(aj_tensor* t);
bool is_seen(const aj_tensor* t);  // are they?
// How many threads have entered a mode: it is to see who reads a value, too.
extern std::atomic<int> watching;
// A thread includes a key (1), or does not any more (-1).
void watch_values(uint64_t mask, int more);
int init_dispatch(PyObject* module);

}  // namespace adjoin::py
