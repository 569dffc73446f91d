// adjoin/kit/scalar_math.hpp: exponentials, trigonometry, special functions and activations of one
// element.
#ifndef ADJOIN_KIT_SCALAR_MATH_HPP
#define ADJOIN_KIT_SCALAR_MATH_HPP
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/scalar_complex.hpp>
#include <adjoin/kit/scalar_float.hpp>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define AJ_DEVICE_COMPLEX  // functions of complex numbers are the kit's
#endif

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar {

template <class T>
inline std::complex<T> standard(Complex<T> z) {
  return {z.re, z.im};
}
template <class T>
inline Complex<T> ours(std::complex<T> z) {
  return {z.real(), z.imag()};
}
// A function of complex numbers: the library's, or where there is none on a device, the kit's.
#ifdef AJ_DEVICE_COMPLEX
#define AJ_COMPLEX_(T, fn, x) Complex<Real<T>>(scalar_complex::fn(Complex128(x)))
#else
#define AJ_COMPLEX_(T, fn, x) ours(std::fn(standard(x)))
#endif

// libm's float functions are as exact as frontends/docs/accuracy.md promises; complex ones are the
// library's.
#define AJ_MATH_(Name, fn)            \
  struct Name {                       \
    template <class T>                \
    AJ_HD T operator()(T x) const {   \
      if constexpr (is_complex<T>)    \
        return AJ_COMPLEX_(T, fn, x); \
      else                            \
        return std::fn(x);            \
    }                                 \
  };
AJ_MATH_(Log10, log10)
AJ_MATH_(Sqrt, sqrt)
AJ_MATH_(Sin, sin)
AJ_MATH_(Cos, cos)
AJ_MATH_(Tan, tan)
AJ_MATH_(Asin, asin)
AJ_MATH_(Acos, acos)
AJ_MATH_(Atan, atan)
AJ_MATH_(Sinh, sinh)
AJ_MATH_(Cosh, cosh)
AJ_MATH_(Asinh, asinh)
AJ_MATH_(Acosh, acosh)
AJ_MATH_(Atanh, atanh)
#undef AJ_MATH_
// float32 has vector code of its own.
#define AJ_MATH_(Name, fn)                         \
  struct Name {                                    \
    template <class T>                             \
    AJ_HD T operator()(T x) const {                \
      if constexpr (is_complex<T>)                 \
        return AJ_COMPLEX_(T, fn, x);              \
      else if constexpr (std::is_same_v<T, float>) \
        return float(scalar_float::fn(double(x))); \
      else                                         \
        return std::fn(x);                         \
    }                                              \
  };
AJ_MATH_(Exp, exp)
AJ_MATH_(Log, log)
AJ_MATH_(Tanh, tanh)
#undef AJ_MATH_
#define AJ_MATH_(Name, fn)          \
  struct Name {                     \
    template <class T>              \
    AJ_HD T operator()(T x) const { \
      return std::fn(x);            \
    }                               \
  };
AJ_MATH_(Erf, erf)
AJ_MATH_(Erfc, erfc)
#undef AJ_MATH_

// Part by part: a complex factor would make NaN of an infinite part and a zero.
template <class T>
AJ_HD T scaled(T x, double factor) {
  return {x.re * Real<T>(factor), x.im * Real<T>(factor)};
}

struct Exp2 {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (is_complex<T>)
      return Exp{}(scaled(x, 0.69314718055994530942));
    else
      return std::exp2(x);
  }
};
struct Log2 {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (is_complex<T>)
      return scaled(Log{}(x), 1.44269504088896340736);
    else
      return std::log2(x);
  }
};
struct Expm1 {  // exp(a+ib) - 1 = expm1(a) cos b - 2 sin^2(b/2) + i exp(a) sin b
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (is_complex<T>) {
      auto half = std::sin(x.im / 2);
      return {std::expm1(x.re) * std::cos(x.im) - 2 * half * half, std::exp(x.re) * std::sin(x.im)};
    } else {
      return std::expm1(x);
    }
  }
};
struct Log1p {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (is_complex<T>) {
      auto re = std::hypot(x.re, x.im) < Real<T>(0.5)
                    ? std::log1p(x.re * (2 + x.re) + x.im * x.im) / 2
                    : std::log(std::hypot(1 + x.re, x.im));
      return {re, std::atan2(x.im, 1 + x.re)};
    } else {
      return std::log1p(x);
    }
  }
};
struct Rsqrt {
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(1) / Sqrt{}(x);
  }
};
struct Sigmoid {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (std::is_same_v<T, float>)
      return float(scalar_float::sigmoid(double(x)));
    else if constexpr (is_complex<T>)
      return T(1) / (T(1) + Exp{}(-x));
    else
      return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  }
};

struct Lgamma {
  template <class T>
  AJ_HD T operator()(T x) const {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    return T(::lgamma(double(x)));
#else
    int sign;
    return T(::lgamma_r(double(x), &sign));  // not lgamma(): that writes a global
#endif
  }
};

// Coefficients as functions, which vector code and devices can ask for too.
template <int N>
struct Coefficients {
  double c[N];
};
template <int N>
AJ_HD inline double horner(const Coefficients<N>& p, double x) {
  double y = p.c[N - 1];
  for (int k = N - 1; k-- > 0;) y = y * x + p.c[k];
  return y;
}
// digamma(x) / (x - its root) on [1, 2], of x - 1.5.
AJ_HD constexpr Coefficients<22> digamma_near() {
  return {{0.951055876031833,      -0.4236274212814605,     0.2405424842407742,
           -0.14840492305390884,   0.09498872445494122,     -0.061922133273064534,
           0.04076083381242074,    -0.02697579675613825,    0.0179072524394512,
           -0.011908218001568644,  0.007926944646403797,    -0.005279964873257405,
           0.003519006401502276,   -0.002345267632540769,   0.0015566317474486838,
           -0.0010376374098418604, 0.0007233266279287554,   -0.0004821990530566789,
           0.0002272331660987376,  -0.00015148586836773365, 0.00025968482126430747,
           -0.00017312261802727394}};
}
// (log(x) - 0.5 / x - digamma(x)) x^2 from 3 on, of 1 / x^2 - 1 / 18.
AJ_HD constexpr Coefficients<13> digamma_far() {
  return {{0.08288196653982234, -0.007926605239340034, 0.003386508340120805, -0.0029421925090076548,
           0.004034899820936782, -0.00767171850840875, 0.0186810454007169, -0.055294885607627346,
           0.19140662663503583, -0.7272001678758669, 3.145215803420894, -21.854551150345742,
           119.19157811856279}};
}
constexpr double kDigammaRoot = 1.4616321449683622, kDigammaRootRest = 9.549995429965697e-17;

AJ_HD inline double digamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  constexpr auto near = digamma_near();
  constexpr auto far = digamma_far();
  if (x == 0) return std::copysign(INFINITY, -x);
  double shift = 0;
  if (x < 0) {
    double whole, part = std::modf(x, &whole);
    if (part == 0) return NAN;
    // Of the fraction alone: pi x has lost digits for large |x|.
    shift = -pi / std::tan(pi * part);
    x = 1 - x;
  }
  if (x >= 3) {
    double y = 1 / (x * x);
    return shift + (std::isinf(x) ? x : std::log(x) - (0.5 / x + y * horner(far, y - 1.0 / 18)));
  }
  if (x < 1) shift -= 1 / x, x += 1;
  if (x > 2) x -= 1, shift += 1 / x;
  return shift + ((x - kDigammaRoot) - kDigammaRootRest) * horner(near, x - 1.5);
}
struct Digamma {
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(digamma(double(x)));
  }
};

// A closed guess (error 2e-3), then Halley's step on erf, or on erfc in the tails where erf has no
// digits left.
AJ_HD inline double erfinv(double y) {
  double a = std::fabs(y);
  if (!(a <= 1)) return NAN;
  if (a == 1) return std::copysign(INFINITY, y);
  double tail = 1 - a, l = std::log(tail * (1 + a)),
         b = 2 / (3.14159265358979323846 * 0.147) + l / 2;
  double x = std::sqrt(std::sqrt(b * b - l / 0.147) - b);
  for (int i = 0; i < 3 && a > 0; ++i) {
    double error = a < 0.5 ? std::erf(x) - a : tail - std::erfc(x);
    double u = error / (1.12837916709551257390 * std::exp(-x * x));
    x -= u / (1 + x * u);
  }
  return std::copysign(x, y);
}
struct Erfinv {
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(erfinv(double(x)));
  }
};

struct Atan2 {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return std::atan2(a, b);
  }
};
struct Hypot {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return std::hypot(a, b);
  }
};
// Factoring out the larger operand keeps exp() from overflowing. The equal case is apart because
// (-inf) - (-inf) is NaN.
struct LogAddExp {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if (a == b) return a + T(0.69314718055994530942);
    T larger = a > b ? a : b;
    return larger + std::log1p(std::exp(-std::fabs(a - b)));
  }
};
struct Pow {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? T(b % 2 == 0 ? 1 : -1) : T(0);
      Wide<T> result = 1, power = Wide<T>(a);
      for (auto e = uint64_t(b); e; e >>= 1, power *= power)
        if (e & 1) result *= power;
      return T(result);
    } else if constexpr (is_complex<T>) {
      if (b == T(0)) return T(1);
      if (a == T(0)) return b.re > 0 ? T(0) : T(Real<T>(NAN), Real<T>(NAN));
#ifdef AJ_DEVICE_COMPLEX
      return T(scalar_complex::pow(Complex128(a), Complex128(b)));
#else
      return ours(std::pow(standard(a), standard(b)));
#endif
    } else {
      return std::pow(a, b);
    }
  }
};
struct Cube {
  template <class T>
  AJ_HD T operator()(T x) const {
    return Mul{}(Mul{}(x, x), x);
  }
};

struct Gelu {  // erfc: 1 + erf(x) would lose the digits of the left tail
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(0.5) * x * std::erfc(x * T(-0.70710678118654752440));
  }
};
struct GeluTanh {
  template <class T>
  AJ_HD T operator()(T x) const {
    return T(0.5) * x * (1 + Tanh{}(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
};
struct Silu {
  template <class T>
  AJ_HD T operator()(T x) const {
    if constexpr (std::is_same_v<T, float>)
      return float(double(x) * scalar_float::sigmoid(double(x)));
    else
      return x / (T(1) + Exp{}(-x));
  }
};
template <class T>
struct Elu {
  T alpha;
  AJ_HD T operator()(T x) const { return x > 0 ? x : alpha * std::expm1(x); }
};
template <class T>
struct LeakyRelu {
  T slope;
  AJ_HD T operator()(T x) const { return x > 0 ? x : x * slope; }
};
template <class T>
struct Softplus {
  T beta, threshold;
  AJ_HD T operator()(T x) const {
    T y = x * beta;  // log(1 + e^y) = max(y, 0) + log1p(e^-|y|), which does not overflow
    return y > threshold ? x : ((y > 0 ? y : 0) + std::log1p(std::exp(-std::fabs(y)))) / beta;
  }
};
template <class T>
struct Hardtanh {
  T lo, hi;
  AJ_HD T operator()(T x) const { return x < lo ? lo : x > hi ? hi : x; }
};

}  // namespace scalar
}  // namespace kit
}  // namespace adjoin
#endif
