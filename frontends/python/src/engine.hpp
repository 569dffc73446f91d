// frontends/python/src/engine.hpp: runs of the engine.
#pragma once

#include "op.hpp"

namespace adjoin::py {

// backward() of n tensors. grads: n objects, tensors or None, or NULL. inputs: None, a tensor or a
// sequence. Returns None.
PyObject* run_backward(PyObject* const* roots, Py_ssize_t n, PyObject* const* grads,
                       PyObject* inputs, bool retain, bool create);

// One pass of the engine, and what is queued meanwhile. False with an error set.
bool run_pass(const aj_backward& request);

}  // namespace adjoin::py
