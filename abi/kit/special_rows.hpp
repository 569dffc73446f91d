// adjoin/kit/special_rows.hpp: the rows of special functions whose kernels are a scalar function of
// the kit and nothing else, for every backend that goes element by element.
//
// A macro, because `one` and `two` are a backend's own templates <functor, dtypes> of constants,
// and its rows must be constants as well: nvcc and the loader read them where they lie.
#ifndef ADJOIN_KIT_SPECIAL_ROWS_HPP
#define ADJOIN_KIT_SPECIAL_ROWS_HPP
#include <adjoin/kit/scalar_masked.hpp>
#include <adjoin/kit/scalar_special.hpp>

// clang-format off
#define AJ_SPECIAL_ROWS(one, two)                                          \
  {"i0", one<scalar::I0, floating>},                                       \
  {"special::i0e", one<scalar::I0e, floating>},                            \
  {"special::i1", one<scalar::I1, floating>},                              \
  {"special::i1e", one<scalar::I1e, floating>},                            \
  {"special::erfcx", one<scalar::Erfcx, floating>},                        \
  {"special::log_ndtr", one<scalar::LogNdtr, floating>},                   \
  {"special::ndtri", one<scalar::Ndtri, floating>},                        \
  {"special::bessel_j0", one<scalar::J0, floating>},                       \
  {"special::bessel_j1", one<scalar::J1, floating>},                       \
  {"special::bessel_y0", one<scalar::Y0, floating>},                       \
  {"special::bessel_y1", one<scalar::Y1, floating>},                       \
  {"special::modified_bessel_k0", one<scalar::K0, floating>},              \
  {"special::modified_bessel_k1", one<scalar::K1, floating>},              \
  {"special::scaled_modified_bessel_k0", one<scalar::ScaledK0, floating>}, \
  {"special::scaled_modified_bessel_k1", one<scalar::ScaledK1, floating>}, \
  {"_::polygamma", one<PolygammaChooser, floating>},                       \
  {"sinc", one<scalar::Sinc, floating_complex>},                           \
  {"special::zeta", two<scalar::Zeta, floating>},                          \
  {"igamma", two<scalar::IGamma, floating>},                               \
  {"igammac", two<scalar::IGammaC, floating>},                             \
  {"copysign", two<scalar::CopySign, floating>},                           \
  {"logaddexp2", two<scalar::LogAddExp2, floating>},                       \
  {"special::entr", one<scalar::Entr, floating>},                          \
  {"xlogy", two<scalar::XLogY, floating>},                                 \
  {"special::xlog1py", two<scalar::XLog1pY, floating>},                    \
  {"fmax", two<scalar::FMax, reals_bool>},                                 \
  {"fmin", two<scalar::FMin, reals_bool>},                                 \
  {"_::unit_step", two<scalar::Heaviside, reals_bool>},                    \
  {"_::angle_of_real", one<scalar::AngleOfReal, floating>},                \
  {"_::mantissa", one<scalar::Mantissa, floating>},                        \
  {"_::exponent", one<scalar::Exponent, floating>},                        \
  {"special::chebyshev_polynomial_t", two<scalar::ChebyshevT, floating>},  \
  {"special::chebyshev_polynomial_u", two<scalar::ChebyshevU, floating>},  \
  {"special::chebyshev_polynomial_v", two<scalar::ChebyshevV, floating>},  \
  {"special::chebyshev_polynomial_w", two<scalar::ChebyshevW, floating>},  \
  {"special::hermite_polynomial_h", two<scalar::HermiteH, floating>},      \
  {"special::hermite_polynomial_he", two<scalar::HermiteHe, floating>},    \
  {"special::laguerre_polynomial_l", two<scalar::LaguerreL, floating>},    \
  {"special::legendre_polynomial_p", two<scalar::LegendreP, floating>}
// clang-format on
#endif
