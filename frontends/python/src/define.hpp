// frontends/python/src/define.hpp: calls of the core that a Python function serves.
#pragma once

#include <adjoin/kit/experimental.hpp>

#include "op.hpp"

namespace adjoin::py {

// Definitions that come while a process runs; NULL with an error set.
const aj_x_plugins* experimental();
// What a Python function is given: the op's arguments in order, as tuples, numbers and tensors.
PyObject* arguments(const aj_call* call);
// What it returned, owned; a result that was lent and is returned stays. False with an error set,
// and nothing in rets.
bool put_results(const aj_call* call, PyObject* o);

}  // namespace adjoin::py
