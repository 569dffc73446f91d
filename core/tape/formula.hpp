// core/tape/formula.hpp: the derivative of an op as a function, without a recorded call.
#pragma once
#include <adjoin/abi/op.h>

namespace adjoin {

// What the derivative of `op` gives for grad_out (one per flattened result, NULL: zero): for each
// flattened input that `needs` names a gradient of its shape and dtype, owned, or NULL for zero.
// args are complete, as a kernel sees them, rets are the results of that call. Nothing of the tape
// is looked at: it records the formula's ops if something in them requires grad.
// AJ_NOT_FOUND: the op has no derivative of its own.
aj_status* apply_vjp(const aj_op* op, const aj_value* args, uint32_t nargs, const aj_value* rets,
                     uint32_t nrets, aj_tensor* const* grad_out, const uint8_t* needs,
                     aj_tensor** grad_in);

}  // namespace adjoin
