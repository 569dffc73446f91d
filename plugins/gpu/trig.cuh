// plugins/gpu/trig.cuh: sine, cosine and tangent of floats. The toolkits' keep the digits of 2 / pi
// that a large argument needs in an array, on a stack; here they are three words.
#ifndef ADJOIN_PLUGINS_GPU_TRIG_CUH
#define ADJOIN_PLUGINS_GPU_TRIG_CUH
#include <adjoin/kit/scalar_special.hpp>
#include <bit>
#include <cmath>
#include <cstdint>

#include "pointwise.cuh"

namespace adjoin::gpu {
namespace trig {

// x = quadrant * pi / 2 + rest, |rest| <= pi / 4; quadrants count modulo 4.
struct Turned {
  float rest;
  uint32_t quadrant;
};

// 32 bits of 2 / pi from the bit `first` after the point on; before the point are zeros.
AJ_HD inline uint32_t two_over_pi(int first) {
  auto word = [](int i) -> uint32_t {  // no table: it would be memory
    return i == 0   ? 0xa2f9836eu
           : i == 1 ? 0x4e441529u
           : i == 2 ? 0xfc2757d1u
           : i == 3 ? 0xf534ddc0u
           : i == 4 ? 0xdb629599u
           : i == 5 ? 0x3c439041u
           : i == 6 ? 0xfe5163abu
                    : 0u;
  };
  int at = first >> 5, bit = first & 31;
  uint64_t both = uint64_t(word(at)) << 32 | word(at + 1);
  return uint32_t(both >> (32 - bit));
}

// Payne and Hanek's method: what of 2 / pi is multiplied to whole turns is left out. x is finite,
// at least 1 and not negative.
AJ_HD inline Turned turned_far(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x), m = (bits & 0x7fffffu) | 0x800000u;
  int first = int(bits >> 23) - 150 - 2;                         // x = m 2^(first + 2)
  uint64_t turns = uint64_t(m) * two_over_pi(first + 64) >> 32;  // in units of 2^-62 quadrants
  turns += uint64_t(m) * two_over_pi(first + 32);
  turns += uint64_t(m * two_over_pi(first)) << 32;
  uint64_t nearest = (turns + (uint64_t(1) << 61)) >> 62;
  constexpr double kUnit = 0x1.921fb54442d18p-62;  // pi / 2 of them
  return {float(double(int64_t(turns - (nearest << 62))) * kUnit), uint32_t(nearest)};
}

// Cody and Waite's method: pi / 2 in three parts.
AJ_HD inline Turned turned(float x) {
  constexpr float kNear = 1e5f;  // n times the first part is exact
  if (!(std::fabs(x) <= kNear)) {
    if (std::isinf(x) || std::isnan(x)) return {x - x, 0};
    Turned t = turned_far(std::fabs(x));
    return x < 0 ? Turned{-t.rest, 0 - t.quadrant} : t;
  }
  float n = std::rint(x * 0.636619772f);  // 2 / pi
  if (n == 0) return {x, 0};              // -0 stays
  float rest = std::fma(-n, 0x1.921fb6p0f, x);
  rest = std::fma(-n, -0x1.777a5cp-25f, rest);
  rest = std::fma(-n, -0x1.ee59dap-50f, rest);
  return {rest, uint32_t(int32_t(n))};
}

// Up to pi / 4 polynomials of the least relative error: 3.6e-9 and 1.2e-10.
AJ_HD inline float sine(float r) {
  float z = r * r;
  float p = std::fma(std::fma(-0.000195172985939f, z, 0.00833217814236f), z, -0.166666549436f);
  return std::copysign(std::fma(p * z, r, r), r);  // of -0, too
}
AJ_HD inline float cosine(float r) {
  float z = r * r;
  float p = std::fma(std::fma(2.44331135299e-5f, z, -0.00138873158058f), z, 0.0416666456717f);
  return std::fma(z * z, p, std::fma(-0.5f, z, 1.0f));
}

AJ_HD inline float quarter(Turned t) {
  float y = t.quadrant & 1 ? cosine(t.rest) : sine(t.rest);
  return t.quadrant & 2 ? -y : y;
}
AJ_HD inline float sin(float x) { return quarter(turned(x)); }
AJ_HD inline float cos(float x) {
  Turned t = turned(x);
  return quarter({t.rest, t.quadrant + 1});
}
AJ_HD inline float tan(float x) {
  Turned t = turned(x);
  float s = sine(t.rest), c = cosine(t.rest);
  return t.quadrant & 1 ? -c / s : s / c;
}

#define AJ_TRIG_(Name, fn, Plain)             \
  struct Name {                               \
    template <class T>                        \
    AJ_HD T operator()(T x) const {           \
      if constexpr (std::is_same_v<T, float>) \
        return fn(x);                         \
      else                                    \
        return scalar::Plain()(x);            \
    }                                         \
  };
AJ_TRIG_(Sine, sin, Sin)
AJ_TRIG_(Cosine, cos, Cos)
AJ_TRIG_(Tangent, tan, Tan)
#undef AJ_TRIG_
struct SineOverPi {  // sin(pi x) / (pi x)
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (std::is_same_v<T, float>) {
      if (x == 0) return 1;
      float y = x * 3.14159265358979323846f;
      return sin(y) / y;
    } else {
      return scalar::Sinc()(x);
    }
  }
};

// The function that a row runs for the kit's function F.
template <class F>
struct Ours {
  using type = F;
};
template <>
struct Ours<scalar::Sin> {
  using type = Sine;
};
template <>
struct Ours<scalar::Cos> {
  using type = Cosine;
};
template <>
struct Ours<scalar::Tan> {
  using type = Tangent;
};
template <>
struct Ours<scalar::Sinc> {
  using type = SineOverPi;
};

}  // namespace trig

// A row of one operand, as `one`.
template <class F, class Set>
inline constexpr Spec turning = one<typename trig::Ours<F>::type, Set>;

}  // namespace adjoin::gpu
#endif
