// frontends/python/src/graphs.hpp: the parts of the binding of programs.
#pragma once

#include "py.hpp"

namespace adjoin::py {

constexpr const char* kProgramCapsule = "adjoin.program";

PyObject* program_capsule(aj_object* steal);  // NULL with an error set
int init_scripts(PyObject* module);           // scripts.cpp: scripted ones

}  // namespace adjoin::py
