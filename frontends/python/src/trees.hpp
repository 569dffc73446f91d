// frontends/python/src/trees.hpp: arguments and results of functions: tensors in tuples, lists and
// dictionaries.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// The tree with leaf(tensor, self) in the place of each tensor; NULL with an error set.
using Leaf = PyObject* (*)(PyObject* tensor, void* self);
PyObject* mapped(PyObject* tree, Leaf leaf, void* self);

int init_trees(PyObject* module);
int init_reach(PyObject* module);

}  // namespace adjoin::py
