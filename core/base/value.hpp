// core/base/value.hpp: values as ops take and give them.
#pragma once
#include <adjoin/abi/core.h>

#include <span>

#include "core/base/dtype.hpp"

namespace adjoin {

inline aj_value none() { return aj_value{AJ_NONE, 0, {0}}; }
inline aj_value value(aj_tensor* t) {
  aj_value v = none();
  if (t) {
    v.tag = AJ_TENSOR;
    v.v.tensor = t;
  }
  return v;
}
inline aj_value value(int64_t i) {
  aj_value v{AJ_INT, 0, {i}};
  return v;
}
inline aj_value value(double f) {
  aj_value v{AJ_FLOAT, 0, {0}};
  v.v.f = f;
  return v;
}
inline aj_value value(bool b) {
  aj_value v{AJ_BOOL, 0, {b}};
  return v;
}
inline aj_value value(std::span<const int64_t> s) {
  aj_value v{AJ_INTS, uint32_t(s.size()), {0}};
  v.v.ints = s.data();
  return v;
}
inline aj_value value(const DType& d) {
  aj_value v{AJ_DTYPE, 0, {0}};
  v.v.dtype = d.dl;
  return v;
}
inline aj_value value(DLDevice d) {
  aj_value v{AJ_DEVICE, 0, {0}};
  v.v.device = d;
  return v;
}

}  // namespace adjoin
