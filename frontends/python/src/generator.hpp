// frontends/python/src/generator.hpp: generators of random numbers as Python objects.
#pragma once

#include "py.hpp"

namespace adjoin::py {

struct GeneratorObject {
  PyObject_HEAD aj_object* object;
  DLDevice device;
};
extern PyTypeObject generator_type;

}  // namespace adjoin::py
