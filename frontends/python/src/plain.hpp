// frontends/python/src/plain.hpp: values of the core that only functions written in Python are
// given.
#pragma once

#include "py.hpp"

namespace adjoin::py {

PyObject* memory_format_object(int64_t format);  // borrowed
PyObject* generator_object(aj_object* steal);    // of the host: a value does not say whose it is

}  // namespace adjoin::py
