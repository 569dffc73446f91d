// frontends/python/src/package.hpp: what the package is called: adjoin, or torch where a program is
// run so.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// For texts alone. An empty Ref with an error set.
Ref package_name();
int init_package(PyObject* module);

}  // namespace adjoin::py
