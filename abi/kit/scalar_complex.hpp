// adjoin/kit/scalar_complex.hpp: functions of one complex number for devices, where there is no
// std::complex. In double and not inlined: they are long and seldom used.
//
// The inverse functions and the square root are those of W. Kahan, "Branch cuts for complex
// elementary functions", 1987: exact on the cuts, signs of zeros included.
#ifndef ADJOIN_KIT_SCALAR_COMPLEX_HPP
#define ADJOIN_KIT_SCALAR_COMPLEX_HPP
#include <adjoin/kit/dtype.hpp>
#include <cmath>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar_complex {

#define AJ_COMPLEX_FUNCTION_ [[gnu::noinline]] AJ_HD inline Complex128
using Z = Complex128;

AJ_HD inline Z times_i(Z z) { return {-z.im, z.re}; }
AJ_HD inline Z over_i(Z z) { return {z.im, -z.re}; }
AJ_HD inline bool is_real(double im) { return im == 0; }  // its product with infinity is to be 0

AJ_COMPLEX_FUNCTION_ exp(Z z) {
  double e = std::exp(z.re);
  if (is_real(z.im)) return {e, z.im};
  if (e == 0 && !std::isfinite(z.im)) return {0, 0};
  if (std::isinf(e) && !std::isfinite(z.im)) return {e, NAN};
  return {e * std::cos(z.im), e * std::sin(z.im)};
}

// Near the unit circle hypot() - 1 has lost the digits that its logarithm is made of.
AJ_COMPLEX_FUNCTION_ log(Z z) {
  double x = std::fabs(z.re), y = std::fabs(z.im), r = std::hypot(x, y);
  double most = x > y ? x : y, least = x > y ? y : x;
  double re =
      r > 0.7 && r < 1.5 ? std::log1p((most - 1) * (most + 1) + least * least) / 2 : std::log(r);
  return {re, std::atan2(z.im, z.re)};
}
AJ_COMPLEX_FUNCTION_ log10(Z z) {
  Z l = log(z);
  return {l.re * 0.43429448190325182765, l.im * 0.43429448190325182765};
}
AJ_HD inline Z pow(Z a, Z b) { return exp(b * log(a)); }

AJ_COMPLEX_FUNCTION_ sqrt(Z z) {
  if (std::isinf(z.im)) return {INFINITY, z.im};
  if (std::isinf(z.re) && !std::isnan(z.im))
    return z.re > 0 ? Z(z.re, std::copysign(0.0, z.im)) : Z(0, std::copysign(z.re, z.im));
  if (z.re == 0 && z.im == 0) return {0, z.im};
  // Scaled by a power of four, so that neither a square nor a sum leaves the range.
  double most = std::fmax(std::fabs(z.re), std::fabs(z.im));
  bool small = most < 1e-290;
  bool large = most > 1e290;
  double by = small ? 0x1p200 : large ? 0x1p-200 : 1, back = small ? 0x1p-100 : large ? 0x1p100 : 1;
  double x = z.re * by, y = z.im * by;
  double root = std::sqrt((std::hypot(x, y) + std::fabs(x)) / 2), other = std::fabs(y) / (2 * root);
  double re = x < 0 ? other : root, im = x < 0 ? root : other;
  return {re * back, std::copysign(im * back, z.im)};
}

AJ_COMPLEX_FUNCTION_ sinh(Z z) {
  if (is_real(z.im)) return {std::sinh(z.re), z.im};
  if ((z.re == 0 || std::isinf(z.re)) && !std::isfinite(z.im)) return {z.re, NAN};
  return {std::sinh(z.re) * std::cos(z.im), std::cosh(z.re) * std::sin(z.im)};
}
AJ_COMPLEX_FUNCTION_ cosh(Z z) {
  if (is_real(z.im)) return {std::cosh(z.re), z.im * std::copysign(1.0, z.re)};
  if (z.re == 0 && !std::isfinite(z.im)) return {NAN, z.re};
  if (std::isinf(z.re) && !std::isfinite(z.im)) return {INFINITY, NAN};
  return {std::cosh(z.re) * std::cos(z.im), std::sinh(z.re) * std::sin(z.im)};
}
AJ_COMPLEX_FUNCTION_ tanh(Z z) {
  if (is_real(z.im)) return {std::tanh(z.re), z.im};
  if (z.re == 0) return {z.re, std::tan(z.im)};
  if (std::fabs(z.re) > 22) {  // 4 e^-2|x| is below the last digit of 1
    double tail = std::isinf(z.re) ? 0 : 4 * std::exp(-2 * std::fabs(z.re));
    double turn = std::isfinite(z.im) ? std::sin(z.im) * std::cos(z.im) : 0;
    return {std::copysign(1.0, z.re), tail * turn};
  }
  double t = std::tan(z.im), s = std::sinh(z.re), b = 1 + t * t, r = std::sqrt(1 + s * s);
  double d = 1 + b * s * s;
  return {b * r * s / d, t / d};
}
AJ_HD inline Z sin(Z z) { return over_i(sinh(times_i(z))); }
AJ_HD inline Z cos(Z z) { return cosh(times_i(z)); }
AJ_HD inline Z tan(Z z) { return over_i(tanh(times_i(z))); }

// The angle of a number with an infinite part.
AJ_HD inline double far_angle(double re, double im) {
  return std::atan2(std::isinf(im) ? std::copysign(1.0, im) : std::copysign(0.0, im),
                    std::isinf(re) ? std::copysign(1.0, re) : 0.0);
}
AJ_HD inline bool is_far(Z z) {
  return (std::isinf(z.re) && !std::isnan(z.im)) || (std::isinf(z.im) && !std::isnan(z.re));
}

// Products of roots of 1 - z and 1 + z keep the digits that 1 - z^2 would lose.
AJ_COMPLEX_FUNCTION_ asin(Z z) {
  if (is_far(z))  // angles are measured from the other axis
    return {far_angle(std::fabs(z.im), z.re), std::copysign(INFINITY, z.im)};
  Z a = sqrt(Z(1 - z.re, -z.im)), b = sqrt(Z(1 + z.re, z.im));
  return {std::atan2(z.re, a.re * b.re - a.im * b.im), std::asinh(a.re * b.im - a.im * b.re)};
}
AJ_COMPLEX_FUNCTION_ acos(Z z) {
  if (is_far(z)) return {far_angle(z.re, std::fabs(z.im)), -std::copysign(INFINITY, z.im)};
  Z a = sqrt(Z(1 - z.re, -z.im)), b = sqrt(Z(1 + z.re, z.im));
  return {2 * std::atan2(a.re, b.re), std::asinh(b.re * a.im - b.im * a.re)};
}
AJ_COMPLEX_FUNCTION_ acosh(Z z) {
  if (is_far(z)) return {INFINITY, far_angle(z.re, z.im)};
  Z a = sqrt(Z(z.re - 1, z.im)), b = sqrt(Z(z.re + 1, z.im));
  return {std::asinh(a.re * b.re + a.im * b.im), 2 * std::atan2(a.im, b.re)};
}
AJ_HD inline Z asinh(Z z) { return over_i(asin(times_i(z))); }
AJ_COMPLEX_FUNCTION_ atanh(Z z) {
  double x = std::fabs(z.re), y = std::fabs(z.im), re, im;
  constexpr double kHuge = 1e150, kHalfTurn = 1.57079632679489661923;
  if (x > kHuge || y > kHuge) {  // 1 / z, and a quarter of a turn
    double r = std::hypot(x / kHuge, y / kHuge);
    re = std::isinf(r) ? 0 : x / kHuge / r / r / kHuge;
    im = kHalfTurn;
  } else {
    double apart = (1 - x) * (1 - x) + y * y;
    re = std::log1p(4 * x / apart) / 4;
    im = std::atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2;
    if (y == 0 && x > 1) im = kHalfTurn;
  }
  return {std::copysign(re, z.re), std::copysign(im, z.im)};
}
AJ_HD inline Z atan(Z z) { return over_i(atanh(times_i(z))); }
#undef AJ_COMPLEX_FUNCTION_

}  // namespace scalar_complex
}  // namespace kit
}  // namespace adjoin
#endif
