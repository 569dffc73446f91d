// adjoin/kit/fits.hpp: numbers that elements of a dtype can hold.
#ifndef ADJOIN_KIT_FITS_HPP
#define ADJOIN_KIT_FITS_HPP
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin {
namespace AJ_HIDDEN ops {

// As fill_ takes them: -1 of uint8 is 255, a fraction is cut off, what is too large for a float is
// infinite.
inline void want_fits(const Scalar& x, std::string_view name, DLDataType d) {
  const bool sign = d.code == kDLInt, whole = sign || d.code == kDLUInt;
  const std::complex<double> z = x.to_complex();
  bool fits = d.code == kDLComplex || z.imag() == 0;
  if (whole && !(x.is_integer() && d.bits == 64)) {
    const double high = std::ldexp(1, d.bits - sign), n = std::trunc(z.real());
    fits &= n < high && n >= (sign ? -high : x.is_integer() ? 1 - high : 0);
  }
  want(fits, name, " does not fit into ", d, "; give a number that does, or a tensor");
}

// A factor of whole numbers is cut and taken modulo 2^n; NaN, infinity and what 64 bits do not hold
// have nothing to be cut to.
inline void want_whole(const Scalar& factor, std::string_view name, DLDataType d) {
  if ((d.code == kDLInt || d.code == kDLUInt) && !factor.is_integer())
    want(std::abs(factor.to_double()) < 0x1p63, name, " is ", factor.to_double(),
         ", which no whole number of 64 bits is, and the tensors are ", d,
         "; give a number that does fit, or cast them");
}

// In t's dtype, to be written into it at places. No imaginary part is lost on the way.
inline Tensor fitting(const Tensor& values, const Tensor& t) {
  want(!values.is_complex() || t.is_complex(), "values are ", values.dtype(),
       ", which does not fit into ", t.dtype(), "; give their real part");
  return values.dtype() == t.dtype() ? values : to(values, t.dtype());
}

}  // namespace ops
}  // namespace adjoin
#endif
