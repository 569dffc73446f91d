// adjoin/kit/scalar_airy.hpp: Airy's function.
#ifndef ADJOIN_KIT_SCALAR_AIRY_HPP
#define ADJOIN_KIT_SCALAR_AIRY_HPP
#include <adjoin/kit/scalar.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar {
namespace special {

// Ai(x) for |x| > 10: terms of the asymptotic series fall until they are below a double's digits.
AJ_HD inline double airy_far(double x) {
  const double size = std::fabs(x), zeta = size * std::sqrt(size) * (2.0 / 3);
  if (!(zeta < 1e300)) return x != x ? x : 0;
  double term = 1, even = 1, odd = 0, sign = 1;
  for (int k = 1; k <= 20; ++k) {
    term *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1) * zeta);
    if (k % 2) {
      odd += sign * term;
    } else {
      sign = x > 0 ? sign : -sign;
      even += sign * term;
    }
  }
  constexpr double root_pi = 1.77245385090551602730, quarter_pi = 0.78539816339744830962;
  const double scale = 1 / (root_pi * std::sqrt(std::sqrt(size)));
  if (x > 0) return scale / 2 * std::exp(-zeta) * (even - odd);
  return scale * (std::sin(zeta + quarter_pi) * even - std::cos(zeta + quarter_pi) * odd);
}

// From the nearest half on, whose value and slope are known, by Taylor's series: the equation
// y'' = x y gives each term.
AJ_HD inline double airy(double x) {
  constexpr double known[] = {
      // Ai and Ai' at -10, -9.5 ... 10
      0.04024123848644319,    0.99626504413279,        0.3191032477191282,
      -0.10809531881187123,   -0.022133721547341403,   -0.9756639809263316,
      -0.33029023763020887,   -0.03231334828463914,    -0.0527050503563862,
      0.9355609381983065,     0.3217757163806479,      0.3188095066985546,
      0.18428083525050565,    -0.7710081684101265,     -0.2380203019971158,
      -0.6749524925132022,    -0.3291451736298231,     0.3459354872813429,
      0.017781541276574976,   0.8641972177713984,      0.35076100902411433,
      0.32719281855444315,    0.2921527810559595,      -0.5233625323157477,
      -0.07026553294928951,   -0.7906285753685813,     -0.37553382314043193,
      -0.34344343345404815,   -0.37881429367765806,    0.3145837692165988,
      -0.11232506769296609,   0.6788527342647943,      0.22740742820168558,
      0.618259020741691,      0.4642565777488694,      0.3091869672024104,
      0.5355608832923521,     -0.01016056711664521,    0.4757280916105396,
      -0.20408167033954738,   0.3550280538878172,      -0.2588194037928068,
      0.23169360648083348,    -0.2249105326646839,     0.13529241631288141,
      -0.1591474412967932,    0.07174949700810541,     -0.09738201284230132,
      0.03492413042327438,    -0.05309038443365363,    0.01572592338047049,
      -0.026250881035903232,  0.006591139357460719,    -0.011912976705951319,
      0.002584098786989635,   -0.005004413967952583,   0.0009515638512048018,
      -0.001958640950204179,  0.00033025032351430896,  -0.0007178665675575089,
      0.00010834442813607442, -0.0002474138908684625,  3.368531190859981e-05,
      -8.046339130556515e-05, 9.947694360252889e-06,   -2.4765200397034955e-05,
      2.7958823432049136e-06, -7.231931466601793e-06,  7.492128863997167e-07,
      -2.008150894738792e-06, 1.9172560675134309e-07,  -5.312713959720545e-07,
      4.6922076160992316e-08, -1.3414392979067865e-07, 1.0997009755195506e-08,
      -3.237725440447602e-08, 2.47116843087249e-09,    -7.480641389658946e-09,
      5.330263704617492e-10,  -1.6566394593740667e-09, 1.1047532552898686e-10,
      -3.5206336767389237e-10};
  if (!(std::fabs(x) <= 10)) return airy_far(x);
  const int at = int(std::floor(2 * x + 0.5));
  const double from = at * 0.5, h = x - from;
  double before = 0, now = known[2 * (at + 20)], next = known[2 * (at + 20) + 1];
  double sum = now, power = h;
  for (int k = 0; k < 18; ++k) {
    sum += next * power;
    power *= h;
    const double then = (from * now + before) / ((k + 1) * (k + 2));
    before = now, now = next, next = then;
  }
  return sum;
}

}  // namespace special

struct AiryAi {
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(special::airy(double(x)));
  }
};

}  // namespace scalar
}  // namespace kit
}  // namespace adjoin

// clang-format off
#define AJ_AIRY_ROWS(one, two) {"special::airy_ai", one<scalar::AiryAi, floating>}
// clang-format on
#endif
