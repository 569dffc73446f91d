// core/ops/softmax.cpp: shapes of softmax and of whatever has its first argument's shape.
#include "core/ops/infer.hpp"

namespace adjoin::ops {

aj_status* same_as_first(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { c.out(0, c.tensor(0).dtype(), c.tensor(0).shape()); });
}

aj_status* softmax_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    DLDataType dtype = c.given(2) ? c.dtype(2) : t.dtype();
    want(dtype.code == kDLFloat || dtype.code == kDLBfloat,
         "floating-point numbers are wanted, input is ", t.dtype(), "; pass dtype=float32");
    c.out(0, dtype, t.shape());
  });
}

}  // namespace adjoin::ops
