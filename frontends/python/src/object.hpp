// frontends/python/src/object.hpp: counted objects of the contract as Python objects, and what goes
// in their place.
#pragma once

#include "program.hpp"

namespace adjoin::py {

// An op's result that is a stream, a function or an object of a plugin's type; takes it.
PyObject* take_object(aj_object* steal);
aj_object* object_in(PyObject* o);  // borrowed; NULL if it is no such thing
// What Python gives where a schema says Object, Function or Stream.
Match object_argument(const Param& p, PyObject* o, aj_value* v, Frame& f);

}  // namespace adjoin::py
