// frontends/python/src/compiled.hpp: a function's call in a lazy scope, without Python between.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// failed: an error is set. fresh: some of its calls had not been met before.
enum class Scoped { failed, met, fresh };
Scoped in_scope(PyObject* memory, uint32_t flags, PyObject* function, PyObject* const* args,
                size_t nargsf, PyObject* kwnames, PyObject** out);
bool scope_here();  // is a scope open on this thread?

int init_compiled(PyObject* module);

}  // namespace adjoin::py
