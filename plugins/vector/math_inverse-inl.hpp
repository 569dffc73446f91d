// plugins/vector/math_inverse-inl.hpp: inverse and hyperbolic functions, and hypot, of vectors.
// float: 1 ULP, through double; double: libm's, lane by lane; where nothing else is said.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_INVERSE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_INVERSE_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_INVERSE_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_INVERSE_INL_HPP
#endif
#include "math_log-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

inline constexpr double kPi = 3.14159265358979323846;

// Floats through double by G, of one vector or two; doubles, and processors without fused products,
// through the scalar functor.
template <class Functor, class G, class D>
HWY_INLINE Vec<D> by_double(D d, Vec<D> x) {
  if constexpr (!kFused || !kSingle<Scalar<D>>)
    return lanes(d, x, Functor());
  else
    return through_double(d, x, G());
}
template <class Functor, class G, class D>
HWY_INLINE Vec<D> by_double(D d, Vec<D> x, Vec<D> y) {
  if constexpr (!kFused || !kSingle<Scalar<D>>) {
    return lanes(d, x, y, Functor());
  } else {
    const hn::Half<D> half;
    const hn::Repartition<double, D> wide;
    auto low = G()(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)),
                   hn::PromoteTo(wide, hn::LowerHalf(half, y)));
    auto high = G()(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)),
                    hn::PromoteTo(wide, hn::UpperHalf(half, y)));
    return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
  }
}

// atan of 0 <= a <= 1; what is above tan(pi / 8) is turned by pi / 4. 2^-45
template <class D>
HWY_INLINE Vec<D> atan_to_one(D d, Vec<D> a) {
  static constexpr double kAtan[] = {
      0.9999999999999732,   -0.33333333330803444, 0.19999999604891977,
      -0.14285690423839284, 0.11110385046147976,  -0.09078392072943008,
      0.07563703551912593,  -0.05874505621299197, 0.03066244037030629};
  Vec<D> one = hn::Set(d, 1.0);
  auto turned = hn::Gt(a, hn::Set(d, 0.41421356237309503));
  Vec<D> z = hn::IfThenElse(turned, (a - one) / (a + one), a);
  Vec<D> y = z * polynomial(d, z * z, kAtan);
  return y + hn::IfThenElseZero(turned, hn::Set(d, kPi / 4));
}
struct Atan2Core {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V y, V x) const {
    V a = hn::Abs(y), b = hn::Abs(x), large = hn::Max(a, b), one = hn::Set(d, 1.0);
    V ratio = hn::Min(a, b) / large;
    ratio = hn::IfThenElseZero(hn::Gt(large, hn::Zero(d)), ratio);
    ratio = hn::IfThenElse(hn::And(hn::Eq(a, b), hn::Eq(a, hn::Set(d, HUGE_VAL))), one, ratio);
    V angle = atan_to_one(d, ratio);
    angle = hn::IfThenElse(hn::Gt(a, b), hn::Set(d, kPi / 2) - angle, angle);
    auto left = hn::Lt(hn::CopySign(one, x), hn::Zero(d));
    angle = hn::CopySign(hn::IfThenElse(left, hn::Set(d, kPi) - angle, angle), y);
    return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Set(d, NAN), angle);
  }
};

// base + step + rest, what the first sum loses kept; |base| is the larger of the first two, or 0.
template <class D>
HWY_INLINE Vec<D> sum_of_three(D, Vec<D> base, Vec<D> step, Vec<D> rest) {
  Vec<D> sum = base + step;
  return sum + ((step - (sum - base)) + rest);
}
inline constexpr float kHalfPi[] = {1.57079637f, -4.37113883e-08f};

// Above 1 by pi / 2 - atan(1 / a), with what the quotient loses. 1.1 ULP
template <class D>
HWY_INLINE Vec<D> atan_of_float(D d, Vec<D> x) {
  // (atan(z) / z - 1) / z^2, |z| <= 1: 2^-28
  static constexpr float kAtan[] = {-0.333332986f,  0.199985489f,  -0.142642424f,
                                    0.109521858f,   -0.084034503f, 0.0579575934f,
                                    -0.0311778467f, 0.010914606f,  -0.00179362181f};
  Vec<D> one = hn::Set(d, 1.0f), a = hn::Min(hn::Set(d, 1e10f), hn::Abs(x)), r = one / a;
  auto far = hn::Gt(a, one);
  Vec<D> z = hn::IfThenElse(far, hn::Neg(r), a), square = z * z;
  Vec<D> lost = r * hn::MulSub(r, a, one) * hn::NegMulAdd(square, hn::Set(d, 0.5f), one);
  lost = hn::IfThenElseZero(far, lost + hn::Set(d, kHalfPi[1]));
  Vec<D> rest = hn::MulAdd(z * square, polynomial(d, square, kAtan), lost);
  Vec<D> base = hn::IfThenElseZero(far, hn::Set(d, kHalfPi[0]));
  return hn::CopySign(sum_of_three(d, base, z, rest), x);
}

// Near 1 by the half angle: asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)). 0.8 ULP
template <bool Cos, class D>
HWY_INLINE Vec<D> arc_of_float(D d, Vec<D> x) {
  // (asin(z) / z - 1) / z^2, |z| <= 1/2: 2^-31
  static constexpr float kAsin[] = {0.166666597f,  0.0750050545f, 0.0445167087f,
                                    0.0318099111f, 0.0144298365f, 0.0375293829f};
  Vec<D> a = hn::Abs(x), half = hn::Set(d, 0.5f), zero = hn::Zero(d);
  auto steep = hn::Gt(a, half);
  Vec<D> square = hn::IfThenElse(steep, hn::NegMulAdd(a, half, half), a * a);
  Vec<D> z = hn::IfThenElse(steep, hn::Sqrt(square), a);
  // What the root loses, over 2 z.
  Vec<D> inverse = hn::ApproximateReciprocal(hn::Max(hn::Set(d, 1e-30f), z + z));
  Vec<D> lost = hn::IfThenElseZero(steep, hn::NegMulAdd(z, z, square) * inverse);
  Vec<D> rest = hn::MulAdd(z * square, polynomial(d, square, kAsin), lost);  // asin(z) = z + rest
  Vec<D> right = hn::Set(d, kHalfPi[0]), right_low = hn::Set(d, kHalfPi[1]);
  Vec<D> twice = z + z, twice_rest = rest + rest;
  if constexpr (!Cos) {
    Vec<D> y = hn::IfThenElse(steep, sum_of_three(d, right, hn::Neg(twice), right_low - twice_rest),
                              z + rest);
    return hn::CopySign(y, x);
  }
  auto left = hn::Lt(x, zero);
  Vec<D> turn = hn::IfThenElseZero(left, right + right), turn_low = right_low + right_low;
  turn_low = hn::IfThenElse(left, turn_low - twice_rest, twice_rest);
  Vec<D> far = sum_of_three(d, turn, hn::IfThenElse(left, hn::Neg(twice), twice), turn_low);
  Vec<D> near = sum_of_three(d, right, hn::Neg(x), right_low - hn::CopySign(rest, x));
  return hn::IfThenElse(steep, far, near);
}

struct SinhCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V e = expm1(d, clamped(d, hn::Abs(x), 0.0, 100.0)), one = hn::Set(d, 1.0);
    V y = hn::Set(d, 0.5) * (e + e / (e + one));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
  }
};
struct CoshCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V e = exp(d, clamped(d, hn::Abs(x), 0.0, 100.0)), half = hn::Set(d, 0.5);
    return hn::IfThenElse(hn::IsNaN(x), x, half * e + half / e);
  }
};
struct AsinhCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V a = hn::Abs(x), one = hn::Set(d, 1.0), b = hn::Min(a, hn::Set(d, 1e39)), z = b * b;
    V y = log1p(d, b + z / (one + hn::Sqrt(z + one)));
    return hn::IfThenElse(hn::Lt(a, hn::Set(d, HUGE_VAL)), hn::CopySign(y, x), x);
  }
};
struct AcoshCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V t = x - hn::Set(d, 1.0);
    V y = log1p(d, t + hn::Sqrt(t * (t + hn::Set(d, 2.0))));
    return hn::IfThenElse(hn::Ge(t, hn::Zero(d)), y, hn::Set(d, NAN));
  }
};
// Half of log(2^e (1 + s) / (1 - s)), 2^e from the exponent of (1 + a) / (1 - a), 0 <= s <= 1/3 and
// a little. Where e is 0, s is a itself. 1.5 ULP
template <class D>
HWY_INLINE Vec<D> atanh_of_float(D d, Vec<D> x) {
  static constexpr float kAtanh[] = {0.33333334f, 0.2f,         0.14285742f, 0.11109647f,
                                     0.09127802f, 0.072218373f, 0.09536625f};
  const hn::RebindToSigned<D> di;
  Vec<D> a = hn::Abs(x), one = hn::Set(d, 1.0f), below = one - a;
  auto bits = hn::BitCast(di, hn::Max(one, (one + a) * hn::ApproximateReciprocal(below)));
  Vec<D> e = hn::ConvertTo(d, hn::ShiftRight<23>(bits) - hn::Set(di, 127));
  Vec<D> power = hn::BitCast(d, hn::And(bits, hn::Set(di, 0x7f800000)));
  // Below 1/2 the power is 2, and 1 - a is not exact.
  Vec<D> little = hn::MulAdd(a, hn::Set(d, 3.0f), hn::Set(d, -1.0f));
  Vec<D> much = one + hn::NegMulAdd(power, below, a);
  Vec<D> s = hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.5f)), little, much);
  s = s / (one + hn::MulAdd(power, below, a));
  s = hn::IfThenElse(hn::Eq(power, one), a, s);
  Vec<D> z = s * s;
  Vec<D> y = hn::MulAdd(z * s, polynomial(d, z, kAtanh), e * hn::Set(d, 0.00013804341f));
  y = hn::MulAdd(e, hn::Set(d, 0.34643555f), s + y);
  y = hn::IfThenElse(hn::Eq(a, one), hn::Set(d, HUGE_VALF), y);
  return hn::CopySign(hn::IfThenElse(hn::Le(a, one), y, hn::Set(d, NAN)), x);
}

// erfinv(x) / x of w = -log(1 - x^2) up to 17.6: near the middle a polynomial of w, in the tails of
// its root (M. Giles, GPU Computing Gems, 2012; the polynomials are our own fits: 2^-32).
struct ErfinvTables {
  static constexpr double kMiddle[] = {
      1.5014093511310715,      0.24664027674226108,    -0.004177318042577984,
      -0.0012527078778639964,  0.00021825108169559604, -4.996157075471125e-06,
      -3.417409529545238e-06,  4.788011623887603e-07,  1.3782110932063975e-08,
      -1.0897168612749559e-08, 8.198350501988551e-10,  1.2861572056971832e-10,
      -2.051841006368324e-11,  -2.7960377162746014e-13};
  static constexpr double kTail[] = {
      2.8329767984568277,    1.0016752728308351,      0.009445549632459483,
      -0.007643680992712879, 0.005684696083306689,    -0.0035598680674442077,
      0.0014870701882079564, -0.00014541601253255287, -0.000294061018098415,
      0.0002018832620730555, -2.8787270397618356e-05, -2.5292471921966147e-05,
      9.63312762927749e-06};
};
// What is summed from the second coefficient on.
template <class D, size_t N>
HWY_INLINE Vec<D> erfinv_rest(D d, Vec<D> x, const double (&c)[N]) {
  Vec<D> y = hn::Set(d, Scalar<D>(c[N - 1]));
#pragma GCC unroll 32
  for (size_t i = N - 1; i-- > 1;) y = hn::MulAdd(y, x, hn::Set(d, Scalar<D>(c[i])));
  return y;
}
template <class D>
HWY_INLINE Vec<D> erfinv_ratio(D d, Vec<D> w) {
  using T = ErfinvTables;
  Vec<D> middle = polynomial(d, w - hn::Set(d, 2.5), T::kMiddle);
  auto far = hn::Gt(w, hn::Set(d, 5.0));
  if (HWY_LIKELY(hn::AllFalse(d, far))) return middle;
  Vec<D> root = hn::Min(hn::Set(d, 4.2), hn::Sqrt(w));
  return hn::IfThenElse(far, polynomial(d, root - hn::Set(d, 3.0), T::kTail), middle);
}
// The ratio as two numbers, and its product with x: 1.5 ULP.
template <class D>
HWY_INLINE Vec<D> erfinv_of_float(D d, Vec<D> x) {
  using T = ErfinvTables;
  Vec<D> one = hn::Set(d, 1.0f), a = hn::Abs(x), w = hn::Neg(log(d, hn::NegMulAdd(a, a, one)));
  Vec<D> at = w - hn::Set(d, 2.5f), slope = erfinv_rest(d, at, T::kMiddle);
  Vec<D> first = hn::Set(d, float(T::kMiddle[0]));
  Vec<D> rest = hn::Set(d, float(T::kMiddle[0] - double(float(T::kMiddle[0]))));
  auto far = hn::Gt(w, hn::Set(d, 5.0f));
  if (HWY_UNLIKELY(!hn::AllFalse(d, far))) {
    Vec<D> root = hn::Min(hn::Set(d, 4.2f), hn::Sqrt(w)) - hn::Set(d, 3.0f);
    at = hn::IfThenElse(far, root, at);
    slope = hn::IfThenElse(far, erfinv_rest(d, root, T::kTail), slope);
    first = hn::IfThenElse(far, hn::Set(d, float(T::kTail[0])), first);
    rest = hn::IfThenElse(far, hn::Set(d, float(T::kTail[0] - double(float(T::kTail[0])))), rest);
  }
  Vec<D> more = at * slope, ratio = first + more;
  rest = rest + ((first - ratio) + more) + hn::MulSub(at, slope, more);
  Vec<D> y = x * ratio;
  y = y + hn::MulAdd(x, rest, hn::MulSub(x, ratio, y));
  y = hn::IfThenElse(hn::Eq(a, one), hn::Set(d, HUGE_VALF), y);
  return hn::CopySign(hn::IfThenElse(hn::Le(a, one), y, hn::Set(d, NAN)), x);
}

struct HypotCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    V inf = hn::Set(d, HUGE_VAL), y = hn::Sqrt(hn::MulAdd(a, a, b * b));
    return hn::IfThenElse(hn::Or(hn::Eq(hn::Abs(a), inf), hn::Eq(hn::Abs(b), inf)), inf, y);
  }
};

#define AJ_BY_DOUBLE(name, Functor, Core)               \
  template <class D>                                    \
  HWY_INLINE Vec<D> name(D d, Vec<D> x) {               \
    return by_double<kit::scalar::Functor, Core>(d, x); \
  }
AJ_BY_DOUBLE(sinh, Sinh, SinhCore)
AJ_BY_DOUBLE(cosh, Cosh, CoshCore)
AJ_BY_DOUBLE(asinh, Asinh, AsinhCore)
AJ_BY_DOUBLE(acosh, Acosh, AcoshCore)
#undef AJ_BY_DOUBLE
#define AJ_OF_FLOAT(name, Functor, ...)           \
  template <class D>                              \
  HWY_INLINE Vec<D> name(D d, Vec<D> x) {         \
    if constexpr (kFused && kSingle<Scalar<D>>)   \
      return __VA_ARGS__(d, x);                   \
    else                                          \
      return lanes(d, x, kit::scalar::Functor()); \
  }
AJ_OF_FLOAT(atan, Atan, atan_of_float)
AJ_OF_FLOAT(asin, Asin, arc_of_float<false>)
AJ_OF_FLOAT(acos, Acos, arc_of_float<true>)
AJ_OF_FLOAT(atanh, Atanh, atanh_of_float)
AJ_OF_FLOAT(erfinv, Erfinv, erfinv_of_float)
#undef AJ_OF_FLOAT
template <class D>
HWY_INLINE Vec<D> atan2(D d, Vec<D> y, Vec<D> x) {
  return by_double<kit::scalar::Atan2, Atan2Core>(d, y, x);
}
template <class D>
HWY_INLINE Vec<D> hypot(D d, Vec<D> x, Vec<D> y) {
  return by_double<kit::scalar::Hypot, HypotCore>(d, x, y);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
