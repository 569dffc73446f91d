// abi/kit/combine.hpp: what a reduction of a collective does with elements. Halves are added in
// float32 and rounded once; bool is logic; complex numbers have no order.
#ifndef ADJOIN_KIT_COMBINE_HPP
#define ADJOIN_KIT_COMBINE_HPP
#include <adjoin/abi/comm.h>

#include <adjoin/kit/dtype.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace adjoin::kit::comm {

// out[i] = a[i] op b[i]
using Combine = void (*)(void* out, const void* a, const void* b, size_t n);

namespace combining {

template <class T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (is_half<T>)
    return T(float(a) + float(b));
  else if constexpr (is_integer<T>)  // wraps around
    return T(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (is_half<T>)
    return T(float(a) * float(b));
  else if constexpr (is_integer<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}
// NaN wins, as everywhere.
template <class T>
T smaller(T a, T b) {
  if constexpr (is_half<T>)
    return float(b) < float(a) || std::isnan(float(b)) ? b : a;
  else if constexpr (std::is_floating_point_v<T>)
    return b < a || std::isnan(b) ? b : a;
  else
    return b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  if constexpr (is_half<T>)
    return float(b) > float(a) || std::isnan(float(b)) ? b : a;
  else if constexpr (std::is_floating_point_v<T>)
    return b > a || std::isnan(b) ? b : a;
  else
    return b > a ? b : a;
}

template <class T, T (*F)(T, T)>
void each(void* out, const void* a, const void* b, size_t n) {
  T* o = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
#pragma GCC ivdep  // out may be a or b, element for element
  for (size_t i = 0; i < n; i++) o[i] = F(x[i], y[i]);
}
template <class T>
T bit_and(T a, T b) {
  return T(a & b);
}
template <class T>
T bit_or(T a, T b) {
  return T(a | b);
}
template <class T>
T bit_xor(T a, T b) {
  return T(a ^ b);
}

inline constexpr const char* kOps[] = {"sum",  "avg", "product", "min",       "max",
                                       "band", "bor", "bxor",    "premul_sum"};

using bits_too = integral_bool;
using ordered = Join<Join<reals, halves>, bool_only>;

}  // namespace combining

// Raises where the dtype has no such operation.
inline Combine combine_of(DLDataType dtype, int32_t op) {
  using namespace combining;
  switch (op) {
    case AJ_RED_SUM:
    case AJ_RED_AVG:
    case AJ_RED_PREMUL:
      return visit<stored>(dtype, []<class T>() -> Combine { return each<T, add<T>>; });
    case AJ_RED_PROD:
      return visit<stored>(dtype, []<class T>() -> Combine { return each<T, multiply<T>>; });
    case AJ_RED_MIN:
      return visit<ordered>(dtype, []<class T>() -> Combine { return each<T, smaller<T>>; });
    case AJ_RED_MAX:
      return visit<ordered>(dtype, []<class T>() -> Combine { return each<T, larger<T>>; });
    case AJ_RED_BAND:
      return visit<bits_too>(dtype, []<class T>() -> Combine { return each<T, bit_and<T>>; });
    case AJ_RED_BOR:
      return visit<bits_too>(dtype, []<class T>() -> Combine { return each<T, bit_or<T>>; });
    case AJ_RED_BXOR:
      return visit<bits_too>(dtype, []<class T>() -> Combine { return each<T, bit_xor<T>>; });
    default:
      raise(AJ_INVALID_ARGUMENT, "there is no reduction ", op, "; the largest is ", kOps[8]);
  }
}

// The dtypes that an operation has, as a mask of AJ_DT_.
inline uint64_t combines(int32_t op) {
  using namespace combining;
  if (op >= AJ_RED_BAND && op <= AJ_RED_BXOR) return bits_too::own_mask;
  if (op == AJ_RED_MIN || op == AJ_RED_MAX) return ordered::own_mask;
  return stored::own_mask;
}

// x[i] *= by; integers are divided and cut, as PyTorch does, by 1 / by.
inline void scale(DLDataType dtype, void* x, size_t n, double by) {
  visit<stored>(dtype, [&]<class T>() {
    T* p = static_cast<T*>(x);
    for (size_t i = 0; i < n; i++) {
      if constexpr (std::is_same_v<T, bool>) {
        continue;
      } else if constexpr (is_half<T>) {
        p[i] = T(float(p[i]) * float(by));
      } else if constexpr (is_integer<T>) {
        p[i] = T(double(p[i]) * by);
      } else if constexpr (is_complex<T>) {
        p[i] = T(p[i].re * Real<T>(by), p[i].im * Real<T>(by));
      } else {
        p[i] = T(p[i] * T(by));
      }
    }
  });
}

}  // namespace adjoin::kit::comm
#endif
