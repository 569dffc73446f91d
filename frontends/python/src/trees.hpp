// frontends/python/src/trees.hpp: arguments and results of functions: tensors in tuples, lists and
// dictionaries.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// The tree with leaf(tensor, self) in the place of each tensor; NULL with an error set.
using Leaf = PyObject* (*)(PyObject* tensor, void* self);
PyObject* mapped(PyObject* tree, Leaf leaf, void* self);

// Does has(tensor, self) hold for a tensor of the tree? -1 with an error set, as `has` says it.
int any_tensor(PyObject* tree, int (*has)(PyObject* tensor, void* self), void* self);

// What it said, for Python.
inline PyObject* answer(int found) { return found < 0 ? nullptr : PyBool_FromLong(found); }

// The same memory without history, and with what the levels of transforms know of it.
PyObject* detached(PyObject* tensor, void*);

// Does a tensor depend on a leaf that is not in the list? -1 with an error set.
int reaches(PyObject* tensor, void* leaves);
// Without history, unless it depends on another leaf than those of the list.
PyObject* freed(PyObject* tensor, void* leaves);

int init_trees(PyObject* module);
int init_reach(PyObject* module);

}  // namespace adjoin::py
