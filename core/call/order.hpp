// core/call/order.hpp: channels-last between the layers of a network whose user asked for no order
// of memory.
//
// A result of AJ_TENSOR_FREE_ORDER lies channels-last because a kernel is faster so, while its user
// was promised C order. Its strides are true, so every kernel can read it. Ops that keep the order
// pass it on; anybody else, views too, and whoever shows strides or memory to a user, settles it
// first: then it is in C order and stays so.
#pragma once
#include "core/call/frame.hpp"
#include "core/call/slow.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {

aj_status* settle_orders(const aj_value* args, uint32_t nargs);

// May this call run on its arguments as they lie, and its results lie likewise?
bool keeps_order(const aj_op* op, const aj_value* args, uint32_t nargs);
aj_status* keep_order(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                      aj_value* rets, uint32_t nrets, bool rec, RunStep run);

// Where the free order begins: result 0 is turned to channels-last before its kernel writes it, if
// that is worth it.
void choose_order(Frame* f);

}  // namespace adjoin
