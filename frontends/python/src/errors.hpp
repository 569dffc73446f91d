// frontends/python/src/errors.hpp: statuses of the core as Python exceptions, and back.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// Sets the exception that a status stands for and frees it; always returns NULL. A Python exception
// that passed through the core comes out as the same object.
PyObject* raise(aj_status* steal);

// Takes the current Python exception; the result goes to the core.
aj_status* status_from_python();

// Drops the current exception where another way goes on. Ctrl-C that came meanwhile is not lost:
// its handler runs again at the next chance.
void forget_error();

// Keeps the current exception, which a signal's handler raised, for the error that the core makes
// of it.
void keep_interrupt();

// True when s is an error, which is then set.
inline bool failed(aj_status* s) {
  if (likely(!s)) return false;
  raise(s);
  return true;
}

// A refusal that begins with the core's word for it, with the method's name there: "stride: ...".
aj_status* named_for(aj_status* steal, const char* who);

// A TypeError and a RuntimeError: a tensor stands where it does not serve.
PyObject* tensor_argument_error();

// Does the exception that is set say that tensors are on several devices?
bool is_device_mismatch();

// The text of a string object, which is released.
PyObject* take_string(aj_object* steal);
PyObject* take_complex(aj_object* steal);

}  // namespace adjoin::py
