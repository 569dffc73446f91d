// frontends/python/src/collect.hpp: the graph as Python's collector of cycles sees it.
#pragma once

#include <adjoin/kit/tape.hpp>

#include "tensor.hpp"

namespace adjoin::py {

const aj_x_tape* tape();  // NULL: this libadjoin has none

// Part of a tp_traverse: visits what would end with the references that this object holds to
// tensors and nodes.
int visit_held(void* const* objects, size_t n, visitproc visit, void* arg);

// The same for tensors in a dictionary or list that only one object holds; those that the collector
// knows speak for themselves.
int visit_held_in(PyObject* container, visitproc visit, void* arg);

// From now on the collector looks at this tensor: something that could lead back to it hangs on its
// node or leaf.
inline void watch_cycles(PyObject* tensor) {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

}  // namespace adjoin::py
