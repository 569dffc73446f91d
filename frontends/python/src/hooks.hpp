// frontends/python/src/hooks.hpp: Python functions that run with gradients.
#pragma once

#include "tensor.hpp"

namespace adjoin::py {

// Each returns a handle whose remove() takes the hook away; NULL with an error set.
PyObject* hook_on_tensor(PyObject* tensor, PyObject* f, int32_t kind);
PyObject* hook_on_node(aj_node* n, PyObject* f, int32_t kind);

// The objects that a hook of this module holds, of what it gives to the core with its drop
// function.
void objects_of_hook(void (*drop)(void*), void* self, PyObject** two);

// A tuple of gradients, None where there is none.
PyObject* grads_tuple(aj_tensor* const* grads, uint32_t n);

}  // namespace adjoin::py
