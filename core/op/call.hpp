// core/op/call.hpp: calling ops from inside the core.
#pragma once
#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* call(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets);
aj_status* redispatch(const aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets);
const aj_op* find_op(std::string_view name);
aj_op* op_by_index(uint32_t index);

inline aj_value none() { return aj_value{AJ_NONE, 0, {0}}; }
inline aj_value value(aj_tensor* t) { aj_value v = none(); if (t) { v.tag = AJ_TENSOR; v.v.tensor = t; } return v; }
inline aj_value value(int64_t i) { aj_value v{AJ_INT, 0, {i}}; return v; }
inline aj_value value(double f) { aj_value v{AJ_FLOAT, 0, {0}}; v.v.f = f; return v; }
inline aj_value value(bool b) { aj_value v{AJ_BOOL, 0, {b}}; return v; }
inline aj_value value(std::span<const int64_t> s) { aj_value v{AJ_INTS, uint32_t(s.size()), {0}}; v.v.ints = s.data(); return v; }
inline aj_value value(const DType& d) { aj_value v{AJ_DTYPE, 0, {0}}; v.v.dtype = d.dl; return v; }
inline aj_value value(DLDevice d) { aj_value v{AJ_DEVICE, 0, {0}}; v.v.device = d; return v; }

// What differs from the defaults of a call made by the core: turns recording off for a scope.
struct NoGrad {
  uint8_t before = tls.grad_off;
  NoGrad() { tls.grad_off = 1; }
  ~NoGrad() { tls.grad_off = before; }
};

void release_value(aj_value& v);  // an owned result

}  // namespace adjoin
