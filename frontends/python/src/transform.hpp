// frontends/python/src/transform.hpp: levels of transforms, for those who differentiate functions.
#pragma once

#include <adjoin/abi/transform.h>

#include "extension.hpp"

namespace adjoin::py {

// An input of a derivative: of the innermost level, and a view, so that what was recorded before
// goes on through it. The list `leaves` gets it too.
PyObject* fresh_input(PyObject* given, void* leaves);

// Does what a tensor of a level is made of require grad at a level around? -1 with an error set.
int recorded_around(PyObject* tensor, void*);

int init_derivatives(PyObject* module);

}  // namespace adjoin::py
