// frontends/python/src/engine.hpp: runs of the engine.
#pragma once

#include "op.hpp"

namespace adjoin::py {

// backward() of n tensors. grads: n objects, tensors or None, or NULL. inputs: None, a tensor or a
// sequence. Returns None.
PyObject* run_backward(PyObject* const* roots, Py_ssize_t n, PyObject* const* grads,
                       PyObject* inputs, bool retain, bool create);

}  // namespace adjoin::py
