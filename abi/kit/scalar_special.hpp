// adjoin/kit/scalar_special.hpp: special functions of one element: Bessel functions, incomplete
// gamma functions, zeta, tails of the normal distribution, orthogonal polynomials; computed in
// double.
#ifndef ADJOIN_KIT_SCALAR_SPECIAL_HPP
#define ADJOIN_KIT_SCALAR_SPECIAL_HPP
#include <adjoin/kit/choosers.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar {
namespace special {

// Coefficients as functions, which vector code and devices can ask for too.
template <int N>
struct Series {
  double c[N];
};

// A sum of Chebyshev polynomials at t in [-1, 1], by Clenshaw's recurrence.
template <int N>
AJ_HD inline double chebyshev(const Series<N>& s, double t) {
  double a = 0, b = 0;
  for (int k = N - 1; k > 0; --k) {
    double next = 2 * t * a - b + s.c[k];
    b = a;
    a = next;
  }
  return t * a - b + s.c[0];
}

// Their power series, of x^2 / 4: up to 10 all of its terms count alike, and none is negative.
template <int Order>
AJ_HD constexpr Coefficients<28> bessel_i_near() {
  Coefficients<28> p{};
  double c = 1;
  for (int k = 0; k < 28; ++k) {
    p.c[k] = c;
    c /= double(k + 1) * double(k + 1 + Order);
  }
  return p;
}
AJ_HD constexpr Series<23> i0e_far() {
  return {{0.4015515111840504231,     0.002649796489847452243,   0.00004181574629336313404,
           1.311501697169271571e-6,   6.590371077944385858e-8,   4.899126539776210884e-9,
           5.227677835134496208e-10,  7.558186594854892002e-11,  1.243083869139488647e-11,
           1.555906417337798314e-12,  -1.392224447331120621e-13, -1.795438726596329922e-13,
           -6.008393682164407902e-14, -6.032086368419264445e-15, 3.678306345899402759e-15,
           1.735054972419214491e-15,  9.433276417310473462e-17,  -1.690552819047939107e-16,
           -4.936515118372642896e-17, 1.044192816665757476e-17,  8.081941838807072635e-18,
           -8.79658007271355703e-20,  -1.100045599395457915e-18}};
}
AJ_HD inline double bessel_i0(double x, bool scaled) {
  constexpr auto near = bessel_i_near<0>();
  constexpr auto far = i0e_far();
  x = std::fabs(x);
  if (x > 10) return chebyshev(far, 20 / x - 1) / std::sqrt(x) * (scaled ? 1 : std::exp(x));
  return horner(near, x * x / 4) * (scaled ? std::exp(-x) : 1);
}
AJ_HD inline double i0e(double x) { return bessel_i0(x, true); }
AJ_HD inline double i0(double x) { return bessel_i0(x, false); }
AJ_HD constexpr Series<23> i1e_far() {
  return {{0.3912720804232682451,     -0.007736219337137269397,  -0.00006772347425703534705,
           -1.780831025936569563e-6,  -8.196474732868446582e-8,  -5.770209506562669497e-9,
           -5.929963074709415443e-10, -8.37057373883749362e-11,  -1.364799903236958392e-11,
           -1.739720071732204341e-12, 1.265831304742111917e-13,  1.864788341842449347e-13,
           6.381536400800916039e-14,  6.85730398397677399e-15,   -3.720018585909761524e-15,
           -1.824096013279881906e-15, -1.155222863407672945e-16, 1.727723989059865411e-16,
           5.251962146488259545e-17,  -1.020583332408572398e-17, -8.410124322486572219e-18,
           5.623977109276671556e-21,  1.130086825417581697e-18}};
}
AJ_HD inline double bessel_i1(double x, bool scaled) {
  constexpr auto near = bessel_i_near<1>();
  constexpr auto far = i1e_far();
  double y = std::fabs(x);
  if (y <= 10) return x / 2 * horner(near, y * y / 4) * (scaled ? std::exp(-y) : 1);
  return std::copysign(chebyshev(far, 20 / y - 1) / std::sqrt(y) * (scaled ? 1 : std::exp(y)), x);
}
AJ_HD inline double i1e(double x) { return bessel_i1(x, true); }
AJ_HD inline double i1(double x) { return bessel_i1(x, false); }

// exp(x) K_n(x), n 0 or 1: beyond 2 a series in 4 / x - 1 over sqrt(x); before it one in
// x^2 / 2 - 1 and the logarithm, which I_n carries.
AJ_HD constexpr Series<11> k0_near() {
  return {{-0.2676636966169513844, 0.3442898999246284869, 0.03597993651536150163,
           0.001264615411446925923, 0.00002286212103119451786, 2.534791079026149457e-7,
           1.904516377220208859e-9, 1.034969525763362459e-11, 4.259816142791082611e-14,
           1.374465435880747632e-16, 3.570896528508489581e-19}};
}
AJ_HD constexpr Series<26> k0_far() {
  return {{1.220151541032977727,      -0.03144810131196450054,   0.001569883885730053375,
           -0.0001284954958162780264, 0.00001394981371887649936, -1.831755522719119485e-6,
           2.766813639445015076e-7,   -4.660489897687947666e-8,  8.574034017414226086e-9,
           -1.697534509389061516e-9,  3.577397281400328447e-10,  -7.957489244477397038e-11,
           1.855949114954926555e-11,  -4.514597883374519175e-12, 1.140340588207344235e-12,
           -2.980096923148178353e-13, 8.032890775068374365e-14,  -2.227513326746296374e-14,
           6.340076476276646213e-15,  -1.84859337792090628e-15,  5.512055999404331285e-16,
           -1.678231125754897142e-16, 5.210391777643588007e-17,  -1.647580593984219969e-17,
           5.30043377117696999e-18,   -1.733171200582471555e-18}};
}
AJ_HD constexpr Series<11> k1_near() {
  return {{0.7626501136694738853, -0.3531559607765448757, -0.1226111808226571482,
           -0.00697572385963986435, -0.0001730288957513052063, -2.433406141565968235e-6,
           -2.213387630734725856e-8, -1.411488392633527761e-10, -6.666901694199329012e-13,
           -2.427449850519365301e-15, -7.023863479386352866e-18}};
}
AJ_HD constexpr Series<26> k1_far() {
  return {{1.360313095242221335,      0.1039237365768172384,     -0.002857816859622779387,
           0.0001952155184713516311,  -0.0000193619797416608296, 2.406484947837217117e-6,
           -3.501960603087812542e-7,  5.741084125450049292e-8,   -1.034576246567809703e-8,
           2.015049755197034616e-9,   -4.190354759341925584e-10, 9.218315187605314126e-11,
           -2.129967838427791022e-11, 5.13963967348234354e-12,   -1.289173960949822935e-12,
           3.348419666052243122e-13,  -8.976705182010146082e-14, 2.477154424219598674e-14,
           -7.019837089214768661e-15, 2.038703166239861803e-15,  -6.057047270643019882e-16,
           1.838093575243049346e-16,  -5.689462849193620883e-17, 1.794051047886406382e-17,
           -5.756744482073636348e-18, 1.877865190161938249e-18}};
}
AJ_HD inline double scaled_k(int n, double x) {
  constexpr auto near0 = k0_near();
  constexpr auto far0 = k0_far();
  constexpr auto near1 = k1_near();
  constexpr auto far1 = k1_far();
  if (!(x > 0)) return x == 0 ? INFINITY : NAN;
  if (x > 2) {
    double t = 4 / x - 1;
    return (n ? chebyshev(far1, t) : chebyshev(far0, t)) / std::sqrt(x);
  }
  double t = x * x / 2 - 1, l = std::log(x) - 0.69314718055994530942;
  double k = n ? chebyshev(near1, t) / x + l * i1(x) : chebyshev(near0, t) - l * i0(x);
  return k * std::exp(x);
}

// Of (1 + 2 x) erfcx(x) at x >= 0, in (x - 3.75) / (x + 3.75).
AJ_HD constexpr Series<27> erfcx_series() {
  return {{1.177578934567401754,      -0.004590054580646477331,  -0.08424913336651791558,
           0.0592099399981918905,     -0.02665866843530575228,   0.009074997670705265094,
           -0.002413163540417608191,  0.0004907758365258086323,  -0.00006916973302501206367,
           4.139027986073010168e-6,   7.740383066198490669e-7,   -2.188640104923439566e-7,
           1.076499946567091038e-8,   4.521959811218286898e-9,   -7.754400208831351106e-10,
           -6.318088340886684494e-11, 2.868795010930669898e-11,  1.945586854577734731e-13,
           -9.654696748433438898e-13, 3.252548148148739922e-14,  3.347811948286805468e-14,
           -1.864562880419312308e-15, -1.25079505306886392e-15,  7.418235256624121897e-17,
           5.068148904796189276e-17,  -2.237056659435224951e-18, -2.187342944302248154e-18}};
}
AJ_HD inline double scaled_erfcx(double x) {
  constexpr auto sum = erfcx_series();
  return chebyshev(sum, (x - 3.75) / (x + 3.75)) / (1 + 2 * x);
}
AJ_HD inline double erfcx(double x) {
  if (x < -26.7) return INFINITY;
  if (x < 0) return 2 * std::exp(x * x) - scaled_erfcx(-x);
  return std::isinf(x) ? 0 : scaled_erfcx(x);
}
AJ_HD inline double log_ndtr(double x) {
  constexpr double root = 0.70710678118654752440;
  if (x < -1) return std::log(erfcx(-x * root) / 2) - x * x / 2;
  return std::log1p(-std::erfc(x * root) / 2);
}
// Near the middle through erfinv; in the tails by Newton's method on the logarithm.
AJ_HD inline double ndtri(double p) {
  constexpr double root = 0.70710678118654752440;
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p ? INFINITY : -INFINITY;
  if (std::fabs(p - 0.5) < 0.4) return erfinv(2 * p - 1) / root;
  if (p > 0.5) return -ndtri(1 - p);
  double target = std::log(p), t = std::sqrt(-2 * target);
  double x = (std::log(t) + 0.91893853320467274178) / t - t;
  for (int k = 0; k < 8; ++k) {
    double tail = erfcx(-x * root) / 2;
    double change = (std::log(tail) - x * x / 2 - target) * tail * 2.50662827463100050242;
    x -= change;
    if (std::fabs(change) < 1e-16 * std::fabs(x)) break;
  }
  return x;
}

// B(2k) / (2k)!
AJ_HD constexpr Series<9> zeta_series() {
  return {{1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
           -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3617.0 / 10670622842880000.0,
           43867.0 / 5109094217170944000.0}};
}
// Hurwitz's zeta function by the formula of Euler and Maclaurin.
AJ_HD inline double zeta(double s, double q) {
  constexpr auto bernoulli = zeta_series();
  if (s == 1) return INFINITY;
  if (!(s > 1) || q != q) return NAN;
  if (q == INFINITY) return 0;
  if (q <= 0) {
    if (q == std::floor(q)) return INFINITY;
    if (s != std::floor(s)) return NAN;
  }
  double sum = 0;
  int k = 0;
  for (; (k < 9 || q <= 9) && k < 100000; ++k, q += 1) {
    double term = std::pow(q, -s);
    sum += term;
    if (q > 0 && term < 1e-18 * sum) return sum;
  }
  double last = std::pow(q, -s), factor = s * last / q;
  sum += last * q / (s - 1) + last / 2;
  for (int j = 0; j < 9; ++j) {
    double term = bernoulli.c[j] * factor;
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
  }
  return sum;
}

AJ_HD inline double log_gamma(double x) { return Lgamma{}(x); }

// 1 / gamma(x + 1) on [0, 1], of x - 0.5.
AJ_HD constexpr Coefficients<16> inverse_gamma() {
  return {{1.1283791670955126, -0.0411745264452831, -0.5266544355255447, 0.1751020260439345,
           0.050966860247723254, -0.042155169368530074, 0.006612897826273515, 0.002120731442396242,
           -0.001110730245918119, 0.00015235762354157663, 2.5355130539175535e-05,
           -1.3896829354060864e-05, 2.1565577829270528e-06, 5.80540732549556e-08,
           -9.002261834603835e-08, 1.6830710938973937e-08}};
}
// x^a e^-x / gamma(a + 1); for large a from Stirling's series, so that nothing large cancels.
AJ_HD inline double gamma_density(double a, double x) {
  double mu = (x - a) / a;
  if (a < 20) {  // by the power and the product themselves: logarithms would lose digits
    double product = 1, b = a, half = std::exp(-x / 2);  // a + 1 would have lost a bit of a
    for (; b > 1; b -= 1) product *= b;
    constexpr auto inverse = inverse_gamma();
    return std::pow(x < 1600 ? x : 1600, a) * half / product * horner(inverse, b - 0.5) * half;
  }
  if (std::fabs(mu) > 0.4) return std::exp(a * std::log(x) - x - log_gamma(a + 1));
  double z = 1 / (a * a), tail = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
  return std::exp(a * (std::log1p(mu) - mu) - tail) / std::sqrt(6.28318530717958647693 * a);
}
// The lower function by its power series, for x up to about a.
AJ_HD inline double lower_gamma(double a, double x) {
  double term = 1, sum = 1;
  for (double k = a + 1; term > 1e-17 * sum; k += 1) {
    term *= x / k;
    sum += term;
  }
  return gamma_density(a, x) * sum;
}
// The upper one by its continued fraction, evaluated by Lentz's method.
AJ_HD inline double upper_gamma(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 100000; ++k) {
    double n = -k * (k - a);
    b += 2;
    d = 1 / (n * d + b);
    c = b + n / c;
    h *= c * d;
    if (std::fabs(c * d - 1) < 1e-16) break;
  }
  return gamma_density(a, x) * a * h;
}
// For small a and x: what is left of 1, without the subtraction.
AJ_HD inline double small_upper_gamma(double a, double x) {
  double shift = a < 1e-4 ? a * (0.82246703342411321824 * a - 0.57721566490153286061)
                          : log_gamma(a + 1);  // which has lost the digits of a small a
  double power = a * std::log(x) - shift, term = 1, sum = 0;
  for (int k = 1; k < 60; ++k) {
    term *= -x / k;
    sum += term / (a + k);
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) break;
  }
  return -std::expm1(power) - std::exp(power) * a * sum;
}
// For very large a, Temme's uniform expansion (1979): a normal tail and a correction.
AJ_HD inline double temme(double a, double x, bool upper) {
  double mu = (x - a) / a, eta = std::copysign(std::sqrt(2 * (mu - std::log1p(mu))), mu);
  double first = std::fabs(eta) > 0.01
                     ? 1 / mu - 1 / eta
                     : -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta / 864));
  double rest = std::exp(-a * eta * eta / 2) / std::sqrt(6.28318530717958647693 * a) *
                (first - 1 / (540 * a));
  double tail = std::erfc((upper ? eta : -eta) * std::sqrt(a / 2)) / 2;
  return upper ? tail + rest : tail - rest;
}
AJ_HD inline double igamma(double a, double x, bool upper) {
  if (!(a >= 0) || !(x >= 0)) return NAN;
  if (a == 0) return x == 0 ? NAN : upper ? 0 : 1;
  if (x == 0) return upper;
  if (std::isinf(a)) return std::isinf(x) ? NAN : double(upper);
  if (std::isinf(x)) return !upper;
  if (a > 1e5 && std::fabs(x - a) < 0.3 * a) return temme(a, x, upper);
  if (x <= 1.1 && a < 1) return upper ? small_upper_gamma(a, x) : lower_gamma(a, x);
  bool by_series = x < a + 1;
  double part = by_series ? lower_gamma(a, x) : upper_gamma(a, x);
  return by_series == upper ? 1 - part : part;
}

AJ_HD inline double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  double size = std::exp(log_gamma(double(n) + 1)) * zeta(double(n) + 1, x);
  return n % 2 ? size : -size;
}

// Polynomials by their recurrences p(k+1) = (a x + b) p(k) - c p(k-1); those of Chebyshev's kinds
// inside of [-1, 1] by their cosines.
enum Family { kT, kU, kV, kW, kHermite, kHermiteE, kLaguerre, kLegendre };
template <Family F>
AJ_HD inline double polynomial(double x, double order) {
  if (x != x || order != order) return NAN;
  if (order <= -1) return 0;  // what is left of an order without its fraction counts
  if (F <= kW && order > 6 && std::fabs(x) < 1) {
    double angle = std::acos(x), n = std::trunc(order);
    if (F == kT) return std::cos(n * angle);
    if (F == kU) return std::sin((n + 1) * angle) / std::sin(angle);
    if (F == kV) return std::cos((n + 0.5) * angle) / std::cos(angle / 2);
    return std::sin((n + 0.5) * angle) / std::sin(angle / 2);
  }
  double before = 1, p = F == kT || F == kHermiteE || F == kLegendre ? x
                         : F == kV                                   ? 2 * x - 1
                         : F == kW                                   ? 2 * x + 1
                         : F == kLaguerre                            ? 1 - x
                                                                     : 2 * x;
  if (order < 1) return 1;
  if (order > 1e6) return NAN;  // the recurrence would not end in a reasonable time
  for (double k = 1; k + 1 <= order && std::isfinite(p); k += 1) {
    double next = F == kHermite    ? 2 * x * p - 2 * k * before
                  : F == kHermiteE ? x * p - k * before
                  : F == kLaguerre ? ((2 * k + 1 - x) * p - k * before) / (k + 1)
                  : F == kLegendre ? ((2 * k + 1) * x * p - k * before) / (k + 1)
                                   : 2 * x * p - before;
    before = p;
    p = next;
  }
  return p;
}

}  // namespace special

#define AJ_SPECIAL_(Name, expression) \
  struct Name {                       \
    template <class T>                \
    AJ_HD T operator()(T t) const {   \
      double x = double(t);           \
      return T(expression);           \
    }                                 \
  };
AJ_SPECIAL_(I0, special::i0(x))
AJ_SPECIAL_(I0e, special::i0e(x))
AJ_SPECIAL_(I1, special::i1(x))
AJ_SPECIAL_(I1e, special::i1e(x))
AJ_SPECIAL_(ScaledK0, special::scaled_k(0, x))
AJ_SPECIAL_(ScaledK1, special::scaled_k(1, x))
AJ_SPECIAL_(K0, special::scaled_k(0, x) * std::exp(-x))
AJ_SPECIAL_(K1, special::scaled_k(1, x) * std::exp(-x))
AJ_SPECIAL_(J0, ::j0(x))
AJ_SPECIAL_(J1, ::j1(x))
AJ_SPECIAL_(Y0, ::y0(x))
AJ_SPECIAL_(Y1, ::y1(x))
AJ_SPECIAL_(Erfcx, special::erfcx(x))
AJ_SPECIAL_(LogNdtr, special::log_ndtr(x))
AJ_SPECIAL_(Ndtri, special::ndtri(x))
#undef AJ_SPECIAL_
#define AJ_SPECIAL_(Name, expression)      \
  struct Name {                            \
    template <class T>                     \
    AJ_HD T operator()(T s, T t) const {   \
      double a = double(s), x = double(t); \
      return T(expression);                \
    }                                      \
  };
AJ_SPECIAL_(Zeta, special::zeta(a, x))
AJ_SPECIAL_(IGamma, special::igamma(a, x, false))
AJ_SPECIAL_(IGammaC, special::igamma(a, x, true))
AJ_SPECIAL_(ChebyshevT, special::polynomial<special::kT>(a, x))
AJ_SPECIAL_(ChebyshevU, special::polynomial<special::kU>(a, x))
AJ_SPECIAL_(ChebyshevV, special::polynomial<special::kV>(a, x))
AJ_SPECIAL_(ChebyshevW, special::polynomial<special::kW>(a, x))
AJ_SPECIAL_(HermiteH, special::polynomial<special::kHermite>(a, x))
AJ_SPECIAL_(HermiteHe, special::polynomial<special::kHermiteE>(a, x))
AJ_SPECIAL_(LaguerreL, special::polynomial<special::kLaguerre>(a, x))
AJ_SPECIAL_(LegendreP, special::polynomial<special::kLegendre>(a, x))
#undef AJ_SPECIAL_
struct Polygamma {
  int64_t n;
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(special::polygamma(n, double(x)));
  }
};

struct CopySign {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};
struct LogAddExp2 {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if (a == b) return a + T(1);
    T larger = a > b ? a : b;
    return larger + std::log1p(std::exp2(-std::fabs(a - b))) * T(1.44269504088896340736);
  }
};
struct Sinc {  // of pi x
  template <class T>
  AJ_HD T operator()(T x) const {
    if (x == T(0)) return T(1);
    T y = x * T(Real<T>(3.14159265358979323846));
    return Sin{}(y) / y;
  }
};
struct Gcd {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    while (b != T(0)) {
      T rest = std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
      a = b;
      b = rest;
    }
    return Abs{}(a);
  }
};
struct Lcm {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    T common = Gcd{}(a, b);
    return common == T(0) ? T(0) : Abs{}(Mul{}(T(a / common), b));
  }
};
struct NextAfter {  // of the dtype itself, halves too: numbers of one sign are ordered as their
                    // bits
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
    using Value = std::conditional_t<is_half<T>, float, T>;
    const Value x = Value(a), y = Value(b);
    const Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1)), bits = std::bit_cast<Bits>(a);
    Bits to = Bits((y > x) == (x > 0) ? bits + 1 : bits - 1);
    to = x == 0 ? Bits(y > 0 ? 1 : sign | 1) : to;
    to = x == y ? std::bit_cast<Bits>(b) : to;
    return x != x || y != y ? T(x + y) : std::bit_cast<T>(to);
  }
};

}  // namespace scalar

struct PolygammaChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    int64_t n = number<int64_t>(call->args[1]);
    if (n < 0) raise(AJ_INVALID_ARGUMENT, "n must not be negative: ", n);
    go(scalar::Polygamma{n});
  }
};

}  // namespace kit
}  // namespace adjoin

// Their rows for a backend that goes element by element; `one` and `two` as in scalar_rows.hpp.
// clang-format off
#define AJ_SPECIAL_FUNCTION_ROWS(one, two)                                      \
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
  {"special::chebyshev_polynomial_t", two<scalar::ChebyshevT, floating>},  \
  {"special::chebyshev_polynomial_u", two<scalar::ChebyshevU, floating>},  \
  {"special::chebyshev_polynomial_v", two<scalar::ChebyshevV, floating>},  \
  {"special::chebyshev_polynomial_w", two<scalar::ChebyshevW, floating>},  \
  {"special::hermite_polynomial_h", two<scalar::HermiteH, floating>},      \
  {"special::hermite_polynomial_he", two<scalar::HermiteHe, floating>},    \
  {"special::laguerre_polynomial_l", two<scalar::LaguerreL, floating>},    \
  {"special::legendre_polynomial_p", two<scalar::LegendreP, floating>},    \
  {"gcd", two<scalar::Gcd, integral>},                                     \
  {"lcm", two<scalar::Lcm, integral>}
// clang-format on
#endif
