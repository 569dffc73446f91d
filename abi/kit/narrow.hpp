// adjoin/kit/narrow.hpp: the dtypes that are only stored: five floats of 8 bits and complex32.
// Numbers in them are computed in float32 and complex64.
//
// float8_e4m3fn and float8_e5m2 are those of Micikevicius et al., "FP8 formats for deep learning"
// (2022); the two with "fnuz" have one NaN in the place of -0 and an exponent that is one lower
// (Noune et al., 2022); e8m0fnu is the scale of the Open Compute Project's microscaling formats
// (2023): a power of 2 without sign.
#ifndef ADJOIN_KIT_NARROW_HPP
#define ADJOIN_KIT_NARROW_HPP
#include <adjoin/kit/convert.hpp>
#include <algorithm>
#include <cmath>

namespace adjoin {
namespace AJ_HIDDEN kit {

struct Float8 {
  int mantissa, bias;  // bits of the mantissa; what the exponent is stored with
  uint8_t most;        // the largest finite number
  uint8_t above;       // what is beyond it: infinity, NaN, or the largest again
  uint8_t nan;
  bool signs_zero;  // false: the bits of -0 are NaN
};
inline constexpr Float8 kE4M3FN{3, 7, 0x7e, 0x7e, 0x7f, true};
inline constexpr Float8 kE5M2{2, 15, 0x7b, 0x7c, 0x7f, true};
inline constexpr Float8 kE4M3FNUZ{3, 8, 0x7f, 0x80, 0x80, false};
inline constexpr Float8 kE5M2FNUZ{2, 16, 0x7f, 0x80, 0x80, false};

// The format of a dtype that is stored with sign and mantissa; NULL: it is none.
inline const Float8* float8_of(DLDataType d) {
  if (d.bits != 8) return nullptr;
  switch (d.code) {
    case kDLFloat8_e4m3fn:
      return &kE4M3FN;
    case kDLFloat8_e5m2:
      return &kE5M2;
    case kDLFloat8_e4m3fnuz:
      return &kE4M3FNUZ;
    case kDLFloat8_e5m2fnuz:
      return &kE5M2FNUZ;
    default:
      return nullptr;
  }
}
// Everything that can be copied: what is computed in, and what is only stored.
inline constexpr uint64_t kMoved =
    stored::mask | 0x1full << AJ_DT_FLOAT8_E4M3FN | 1ull << AJ_DT_COMPLEX32;

inline bool is_complex32(DLDataType d) { return d.code == kDLComplex && d.bits == 32; }
inline bool is_power_of_two(DLDataType d) { return d.code == kDLFloat8_e8m0fnu && d.bits == 8; }
inline bool is_narrow(DLDataType d) {
  return float8_of(d) || is_complex32(d) || is_power_of_two(d);
}

inline float from_float8(const Float8& f, uint8_t bits) {
  const uint8_t size = bits & 0x7f;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (f.signs_zero ? size > f.above : bits == f.nan) return NAN;
  if (f.signs_zero && size > f.most) return sign * INFINITY;
  const int exponent = size >> f.mantissa, fraction = size & ((1 << f.mantissa) - 1);
  const int whole = exponent ? fraction | 1 << f.mantissa : fraction;
  return sign * std::ldexp(float(whole), std::max(exponent, 1) - f.bias - f.mantissa);
}

// To nearest, ties to even.
inline uint8_t to_float8(const Float8& f, float x) {
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return f.signs_zero ? uint8_t(f.nan | sign) : f.nan;
  const float size = std::fabs(x);
  const int least = 1 - f.bias;  // the exponent of the smallest normal number
  int exponent = size > 0 && size < INFINITY ? std::max(std::ilogb(size), least) : least;
  uint32_t bits = f.above;
  if (size < INFINITY) {
    const auto steps = uint32_t(std::nearbyint(std::ldexp(size, f.mantissa - exponent)));
    // A mantissa that was rounded up to the next power of 2 carries into the exponent.
    bits = (uint32_t(exponent - least) << f.mantissa) + steps;
    if (bits > f.most) bits = f.above;
  }
  if (!f.signs_zero && (bits == 0 || bits == f.nan)) return uint8_t(bits);
  return uint8_t(bits | sign);
}

inline float from_power_of_two(uint8_t bits) {
  return bits == 0xff ? NAN : std::ldexp(1.0f, int(bits) - 127);
}
// To nearest, ties up, whatever the sign.
inline uint8_t to_power_of_two(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x), fraction = u & 0x7fffffu;
  const uint32_t exponent = u >> 23 & 0xffu;
  if (exponent == 0xff) return 0xff;
  return uint8_t(exponent + (exponent ? fraction >= 0x400000u : fraction > 0x400000u));
}

// One element of a narrow dtype.
inline Complex64 from_narrow(DLDataType d, const char* p) {
  const auto bits = uint8_t(*p);
  if (const Float8* f = float8_of(d)) return {from_float8(*f, bits), 0};
  if (is_power_of_two(d)) return {from_power_of_two(bits), 0};
  Half parts[2];
  std::memcpy(parts, p, sizeof parts);
  return {float(parts[0]), float(parts[1])};
}
inline void to_narrow(char* p, DLDataType d, Complex64 x) {
  if (const Float8* f = float8_of(d)) {
    *p = char(to_float8(*f, x.re));
  } else if (is_power_of_two(d)) {
    *p = char(to_power_of_two(x.re));
  } else {
    const Half parts[2] = {x.re, x.im};
    std::memcpy(p, parts, sizeof parts);
  }
}

// A row where one end or both are narrow. Strides in bytes. A template, so that a library may say
// after this where Convert is.
template <class Number = Complex64>
void convert_narrow(char* to, DLDataType to_type, int64_t to_step, const char* from,
                    DLDataType from_type, int64_t from_step, int64_t n) {
  constexpr int64_t kRow = 256;
  Number row[kRow];
  for (; n > 0; n -= kRow, to += kRow * to_step, from += kRow * from_step) {
    const int64_t m = std::min(n, kRow);
    if (is_narrow(from_type))
      for (int64_t i = 0; i < m; ++i) row[i] = from_narrow(from_type, from + i * from_step);
    else
      Convert<Number>::load(row, from, from_type, from_step, m);
    if (is_narrow(to_type))
      for (int64_t i = 0; i < m; ++i) to_narrow(to + i * to_step, to_type, row[i]);
    else
      Convert<Number>::store(to, to_type, to_step, row, m);
  }
}

}  // namespace kit
}  // namespace adjoin
#endif
