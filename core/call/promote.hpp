// core/call/promote.hpp: the dtype that operands of different dtypes compute in.
#pragma once
#include "core/tensor/tensor.hpp"

namespace adjoin {

// Collects operands; numbers and 0-dim tensors are weak, as in PyTorch.
struct Promotion {
  int dims = -1, zero = -1, number = -1;

  static constexpr int kNoneFits = -2;  // -1 is nobody yet
  static int of_one(int a, int b) {
    return a == kNoneFits || b == kNoneFits ? kNoneFits : a < 0 ? b : a;
  }
  static int join(int a, int b) {
    if (a < 0 || b < 0) return of_one(a, b);
    int both = promote(a, b);
    return both < 0 ? kNoneFits : both;
  }
  void add(const aj_tensor* t) {
    if (priv(t).flags & kWrappedNumber)
      number = join(number, priv(t).dtype);
    else
      (t->dl.ndim ? dims : zero) = join(t->dl.ndim ? dims : zero, priv(t).dtype);
  }
  void add(const aj_value& v) {
    int d = v.tag == AJ_BOOL      ? int(AJ_DT_BOOL)
            : v.tag == AJ_INT     ? int(AJ_DT_INT64)
            : v.tag == AJ_COMPLEX ? complex_of(default_dtype())
                                  : default_dtype();
    number = join(number, d);
  }
  static int combine(int higher, int lower) {
    if (higher < 0 || lower < 0) return of_one(higher, lower);
    int h = dt(higher).cls, l = dt(lower).cls;
    if (h == AJ_CLASS_COMPLEX) return higher;
    if (h == AJ_CLASS_FLOAT) return l == AJ_CLASS_COMPLEX ? complex_of(higher) : higher;
    if (h == AJ_CLASS_BOOL || l == AJ_CLASS_FLOAT || l == AJ_CLASS_COMPLEX)
      return promote(higher, lower);
    return higher;
  }
  int result() const { return combine(dims, combine(zero, number)); }
};

}  // namespace adjoin
