// core/op/call.hpp: calling ops from inside the core.
#pragma once
#include "core/base/value.hpp"
#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* call(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                uint32_t nrets);
aj_status* redispatch(const aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                      aj_value* rets, uint32_t nrets);
const aj_op* find_op(std::string_view name);
aj_op* op_by_index(uint32_t index);

// tls.grad_off of what a kernel at the key "transform" does for a call that the tape records: the
// calls that it makes for the levels around ask whether it was on before.
constexpr uint8_t kOffByTape = 4;

// What differs from the defaults of a call made by the core: turns recording off for a scope.
struct NoGrad {
  uint8_t before = tls.grad_off;
  NoGrad() { tls.grad_off = 1; }
  ~NoGrad() { tls.grad_off = before; }
};

}  // namespace adjoin
