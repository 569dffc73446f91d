// adjoin/kit/scalar.hpp: arithmetic, rounding, comparison and logic of one element, shared by CPU,
// CUDA and HIP.
//
// A functor without state serves every type; one with state is a template over the type its numbers
// are kept in.
#ifndef ADJOIN_KIT_SCALAR_HPP
#define ADJOIN_KIT_SCALAR_HPP
#include <adjoin/kit/dtype.hpp>
#include <cmath>
#include <complex>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar {

// Integers wrap: unsigned arithmetic of at least 32 bits, since uint16 * uint16 would be an int and
// could overflow.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>;

template <class T>
AJ_HD inline bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else if constexpr (is_complex<T>)
    return x.re != x.re || x.im != x.im;
  else
    return false;
}
template <class T>
AJ_HD inline bool is_true(T x) {
  if constexpr (is_complex<T>)
    return x.re != 0 || x.im != 0;
  else
    return x != T(0);
}

struct Positive {
  template <class T>
  AJ_HD T operator()(T x) const {
    return x;
  }
};
struct Neg {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (is_integer<T>)
      return T(Wide<T>(0) - Wide<T>(x));
    else
      return -x;
  }
};
struct Abs {
  template <class T>
  AJ_HD Real<T> operator()(T x) const {
    if constexpr (is_complex<T>)
      return std::hypot(x.re, x.im);
    else if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else if constexpr (std::is_unsigned_v<T>)
      return x;
    else
      return x < 0 ? T(Wide<T>(0) - Wide<T>(x)) : x;
  }
};
struct Sign {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return x;
    else
      return T((T(0) < x) - (x < T(0)));
  }
};
struct Square {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (is_integer<T>)
      return T(Wide<T>(x) * Wide<T>(x));
    else
      return x * x;
  }
};
struct Reciprocal {
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(1) / x;
  }
};
struct Relu {
  template <class T>
  AJ_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct ReluBackward {
  template <class T>
  AJ_HD T operator()(T g, T positive) const {
    return positive > T(0) ? g : T(0);
  }
};
#define AJ_ROUNDING_(Name, fn)      \
  struct Name {                     \
    template <class T>              \
    AJ_HD T operator()(T x) const { \
      if constexpr (is_integer<T>)  \
        return x;                   \
      else                          \
        return std::fn(x);          \
    }                               \
  };
AJ_ROUNDING_(Floor, floor)
AJ_ROUNDING_(Ceil, ceil)
AJ_ROUNDING_(Trunc, trunc)
AJ_ROUNDING_(Round, nearbyint)  // ties to even
#undef AJ_ROUNDING_
template <class T>
struct RoundDecimals {
  T scale;  // 10^|decimals|
  bool left;
  AJ_HD T operator()(T x) const {
    if constexpr (is_integer<T>)
      return x;
    else
      return left ? std::nearbyint(x / scale) * scale : std::nearbyint(x * scale) / scale;
  }
};
struct Frac {
  template <class T>
  AJ_HD T operator()(T x) const {
    return x - std::trunc(x);
  }
};
struct BitwiseNot {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return T(~x);
  }
};
struct LogicalNot {
  template <class T>
  AJ_HD bool operator()(T x) const {
    return !is_true(x);
  }
};
struct IsNan {
  template <class T>
  AJ_HD bool operator()(T x) const {
    return is_nan(x);
  }
};
struct IsInf {
  template <class T>
  AJ_HD bool operator()(T x) const {
    if constexpr (is_complex<T>)
      return std::isinf(x.re) || std::isinf(x.im);
    else if constexpr (std::is_floating_point_v<T>)
      return std::isinf(x);
    else
      return false;
  }
};
struct IsFinite {
  template <class T>
  AJ_HD bool operator()(T x) const {
    if constexpr (is_complex<T>)
      return std::isfinite(x.re) && std::isfinite(x.im);
    else if constexpr (std::is_floating_point_v<T>)
      return std::isfinite(x);
    else
      return true;
  }
};
struct SignBit {
  template <class T>
  AJ_HD bool operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::signbit(x);
    else
      return x < T(0);
  }
};

struct Add {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>)
      return T(Wide<T>(a) + Wide<T>(b));
    else
      return a + b;
  }
};
struct Sub {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>)
      return T(Wide<T>(a) - Wide<T>(b));
    else
      return a - b;
  }
};
struct Mul {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>)
      return T(Wide<T>(a) * Wide<T>(b));
    else
      return a * b;
  }
};
struct Div {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a / b;
  }
};
template <class T>
struct AddScaled {  // sub is this with -alpha
  T alpha;
  AJ_HD T operator()(T a, T b) const { return Add{}(a, Mul{}(alpha, b)); }
};

#if defined(__CUDACC__) || defined(__HIPCC__)
AJ_HD inline void divided_by_zero() {}  // a kernel cannot raise: it has looked before
#else
[[noreturn]] inline void divided_by_zero() {
  raise_as("RuntimeError", AJ_INVALID_ARGUMENT,
           "integer division by zero; mask the zeros or divide as floats");
}
#endif
struct TruncDivide {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      if (b == 0) divided_by_zero();
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1))
          return Neg{}(
              a);  // the smallest integer has no positive twin: wraps, and the processor would trap
      return T(a / b);
    } else {
      return std::trunc(a / b);
    }
  }
};
struct FMod {  // sign of the dividend
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      if (b == 0) divided_by_zero();
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1)) return 0;
      return T(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};
struct Remainder {  // sign of the divisor
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    T r = FMod{}(a, b);
    return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  }
};
struct FloorDivide {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      T q = TruncDivide{}(a, b);
      return FMod{}(a, b) != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
    } else {
      if (b == 0) return a / b;
      T r = std::fmod(a, b),
        q = (a - r) / b;  // q is near an integer: the rounded a / b might be on its wrong side
      if (r != 0 && (b < 0) != (r < 0)) q -= 1;
      if (q == 0) return std::copysign(T(0), a / b);
      T whole = std::floor(q);
      return q - whole > T(0.5) ? whole + 1 : whole;
    }
  }
};

struct Maximum {  // a NaN wins
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a > b || is_nan(a) ? a : b;
  }
};
struct Minimum {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a < b || is_nan(a) ? a : b;
  }
};
struct BitwiseAnd {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
struct ShiftLeft {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if (b < T(0) || uint64_t(b) >= sizeof(T) * 8) return 0;
    return T(Wide<T>(a) << int(b));
  }
};
struct ShiftRight {  // of negative numbers: rounds down
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if (b < T(0) || uint64_t(b) >= sizeof(T) * 8) return a < T(0) ? T(-1) : T(0);
    return T(a >> int(b));
  }
};

#define AJ_COMPARE_(Name, op)               \
  struct Name {                             \
    template <class T>                      \
    AJ_HD bool operator()(T a, T b) const { \
      return a op b;                        \
    }                                       \
  };
AJ_COMPARE_(Eq, ==)
AJ_COMPARE_(Lt, <)
AJ_COMPARE_(Le, <=)
AJ_COMPARE_(Gt, >)
AJ_COMPARE_(Ge, >=)
#undef AJ_COMPARE_
struct Ne {
  template <class T>
  AJ_HD bool operator()(T a, T b) const {
    return !(a == b);
  }
};
struct LogicalAnd {
  template <class T>
  AJ_HD bool operator()(T a, T b) const {
    return is_true(a) && is_true(b);
  }
};
struct LogicalOr {
  template <class T>
  AJ_HD bool operator()(T a, T b) const {
    return is_true(a) || is_true(b);
  }
};
struct LogicalXor {
  template <class T>
  AJ_HD bool operator()(T a, T b) const {
    return is_true(a) != is_true(b);
  }
};

struct Where {
  template <class T>
  AJ_HD T operator()(bool c, T a, T b) const {
    return c ? a : b;
  }
};
struct Clamp {  // max wins over min; any NaN wins over both
  bool has_min, has_max;
  template <class T>
  AJ_HD T operator()(T x, T lo, T hi) const {
    if (has_min) x = Maximum{}(x, lo);
    if (has_max) x = Minimum{}(x, hi);
    return x;
  }
};
struct Lerp {  // from the nearer end, so that weights 0 and 1 give the ends themselves
  template <class T>
  AJ_HD T operator()(T a, T b, T w) const {
    bool near;
    if constexpr (is_complex<T>)
      near = w.re * w.re + w.im * w.im < Real<T>(0.25);
    else
      near = (w < 0 ? -w : w) < T(0.5);
    return near ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  }
};
template <class T>
struct AddCMul {
  T value;
  AJ_HD T operator()(T x, T a, T b) const { return Add{}(x, Mul{}(Mul{}(value, a), b)); }
};
template <class T>
struct AddCDiv {
  T value;
  AJ_HD T operator()(T x, T a, T b) const { return x + value * a / b; }
};

}  // namespace scalar
}  // namespace kit
}  // namespace adjoin
#endif
