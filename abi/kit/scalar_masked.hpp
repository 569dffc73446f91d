// adjoin/kit/scalar_masked.hpp: functions of one or two elements with places where the formula does
// not count: 0 log 0, a NaN beside a number; and the parts of a number.
#ifndef ADJOIN_KIT_SCALAR_MASKED_HPP
#define ADJOIN_KIT_SCALAR_MASKED_HPP
#include <adjoin/kit/scalar_math.hpp>
#include <bit>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar {

struct Entr {  // NaN stays
  template <class T>
  AJ_HD T operator()(T x) const {
    if (x > T(0)) return -x * std::log(x);
    return x == T(0) ? T(0) : x < T(0) ? T(-__builtin_inff()) : x;
  }
};
struct XLogY {
  template <class T>
  AJ_HD T operator()(T x, T y) const {
    return x == T(0) && !is_nan(y) ? T(0) : x * std::log(y);
  }
};
struct XLog1pY {
  template <class T>
  AJ_HD T operator()(T x, T y) const {
    return x == T(0) && !is_nan(y) ? T(0) : x * std::log1p(y);
  }
};
struct FMax {  // a NaN loses
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a > b || is_nan(b) ? a : b;
  }
};
struct FMin {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a < b || is_nan(b) ? a : b;
  }
};
struct Heaviside {
  template <class T>
  AJ_HD T operator()(T x, T at_zero) const {
    return x == T(0) ? at_zero : T(x > T(0));
  }
};
struct AngleOfReal {
  template <class T>
  AJ_HD T operator()(T x) const {
    return is_nan(x) ? x : x < T(0) ? T(3.14159265358979323846) : T(0);
  }
};

// x = mantissa * 2^exponent, the mantissa's size from 0.5 to below 1; zero, infinities and NaN are
// their own mantissas and have the exponent 0. By the bits of a double, where only doubles are
// subnormal.
struct Parts {
  static constexpr uint64_t kExponent = uint64_t(0x7ff) << 52, kHalf = uint64_t(1022) << 52;
  uint64_t bits;
  int64_t scaled = 0;
  AJ_HD explicit Parts(double x) : bits(std::bit_cast<uint64_t>(x)) {
    if (bits & kExponent) return;
    bits = std::bit_cast<uint64_t>(x * 18014398509481984.0);
    scaled = 54;
  }
  AJ_HD bool plain() const { return (bits & kExponent) && (bits & kExponent) != kExponent; }
  AJ_HD int64_t exponent() const { return int64_t((bits & kExponent) >> 52) - 1022 - scaled; }
};
struct Mantissa {
  template <class T>
  AJ_HD T operator()(T x) const {
    const Parts p{double(x)};
    return p.plain() ? T(std::bit_cast<double>((p.bits & ~Parts::kExponent) | Parts::kHalf)) : x;
  }
};
struct Exponent {
  template <class T>
  AJ_HD T operator()(T x) const {
    const Parts p{double(x)};
    return p.plain() ? T(p.exponent()) : T(0);
  }
};

}  // namespace scalar
}  // namespace kit
}  // namespace adjoin

// Their rows for a backend that goes element by element; `one` and `two` as in scalar_rows.hpp.
// clang-format off
#define AJ_MASKED_ROWS(one, two)                            \
  {"special::entr", one<scalar::Entr, floating>},           \
  {"xlogy", two<scalar::XLogY, floating>},                  \
  {"special::xlog1py", two<scalar::XLog1pY, floating>},     \
  {"fmax", two<scalar::FMax, reals_bool>},                  \
  {"fmin", two<scalar::FMin, reals_bool>},                  \
  {"_::unit_step", two<scalar::Heaviside, reals_bool>},     \
  {"_::angle_of_real", one<scalar::AngleOfReal, floating>}, \
  {"_::mantissa", one<scalar::Mantissa, floating>},         \
  {"_::exponent", one<scalar::Exponent, floating>}
// clang-format on
#endif
