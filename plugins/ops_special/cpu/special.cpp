// plugins/ops_special/cpu/special.cpp: special functions that the kit has as scalar code and no
// vector file has, an element after the other.
#include <adjoin/kit/scalar_special.hpp>

#include "vector/stored.hpp"

namespace adjoin::cpu {
AJ_KERNELS(special_function_kernels) = {
    {"special::zeta", binary<scalar::Zeta, floating>},
    {"special::chebyshev_polynomial_t", binary<scalar::ChebyshevT, floating>},
    {"special::chebyshev_polynomial_u", binary<scalar::ChebyshevU, floating>},
    {"special::chebyshev_polynomial_v", binary<scalar::ChebyshevV, floating>},
    {"special::chebyshev_polynomial_w", binary<scalar::ChebyshevW, floating>},
    {"special::hermite_polynomial_h", binary<scalar::HermiteH, floating>},
    {"special::hermite_polynomial_he", binary<scalar::HermiteHe, floating>},
    {"special::laguerre_polynomial_l", binary<scalar::LaguerreL, floating>},
    {"special::legendre_polynomial_p", binary<scalar::LegendreP, floating>},
    {"gcd", binary<scalar::Gcd, integral>},
    {"lcm", binary<scalar::Lcm, integral>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
