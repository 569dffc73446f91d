// plugins/vector/math_erf-inl.hpp: the error function of vectors, and activations made of it.
// float: erf, erfc 2 ULP, gelu 8, gelu_tanh 3; double: erf 2, erfc, gelu and gelu_tanh 3.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_ERF_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_ERF_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_ERF_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_ERF_INL_HPP
#endif
#include "math_exp-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// erf(x) / x - 1 as a polynomial of x^2, |x| <= 1; for a result in float or in double.
template <bool Single, class D>
HWY_INLINE Vec<D> erf_excess(D d, Vec<D> z) {
  if constexpr (Single) {  // 2^-31 up to 0.93
    static constexpr Scalar<D> kErf[] = {0.128379226f,   -0.376126349f,  0.112836942f,
                                         -0.0268592704f, 0.00520063424f, -0.000813743798f,
                                         8.34522725e-05f};
    return polynomial(d, z, kErf);
  } else {  // 2^-62
    static constexpr double kErf[] = {
        0.12837916709551256,     -0.37612638903183748,    0.11283791670954885,
        -0.026866170645077871,   0.0052239776248283977,   -0.0008548326981423969,
        0.0001205533113290922,   -1.4925595771294532e-05, 1.6461008466971188e-06,
        -1.6350396140502884e-07, 1.4660328366071964e-08,  -1.1374955045830087e-09,
        5.9606852207421633e-11};
    return polynomial(d, z, kErf);
  }
}

// erfc(x) e^(x^2) for double x >= 0.45, as a polynomial of (x - 3) / (x + 3), over x + 3 (the
// variable is that of Shepherd and Laframboise, Math. Comp. 36, 1981): 2^-59
struct ScaledErfc {
  static constexpr double kErfc[] = {
      1.0740069070883398,      -0.88339445316988363,    0.59022835710410226,
      -0.31046726190056545,    0.1195277612872673,      -0.026827234624547548,
      -0.0012124166266628117,  0.0030340620021264047,   -0.00054830969867820814,
      -0.00027677785135469434, 0.00010756154072199204,  3.0398162077286165e-05,
      -1.7470842486457205e-05, -4.7490770101701827e-06, 2.7663230717538983e-06,
      9.9810764237192603e-07,  -4.1001155038734289e-07, -2.3147431703176862e-07,
      4.8876887212708656e-08,  4.7612190104114951e-08,  -3.2683209966300609e-09,
      -6.0155947152148481e-09};
};
template <class D>
HWY_INLINE Vec<D> scaled_erfc(D d, Vec<D> x) {
  Vec<D> r = hn::Set(d, 1.0) / (x + hn::Set(d, 3.0));
  Vec<D> t = hn::NegMulAdd(r, hn::Set(d, 6.0), hn::Set(d, 1.0));
  return r * polynomial(d, t, ScaledErfc::kErfc);
}

// A number and what its rounding lost.
template <class D>
struct Pair {
  Vec<D> high, low;
};
template <class D>
HWY_INLINE Pair<D> exact_sum(Vec<D> a, Vec<D> b) {  // Knuth
  Vec<D> s = a + b, seen = s - a;
  return {s, (a - (s - seen)) + (b - seen)};
}

// scaled_erfc(x) with the digits that its quotient, its variable and the last steps of the
// polynomial lose; how they act on the polynomial needs few digits of its slope.
template <class D>
HWY_INLINE Pair<D> scaled_erfc(D d, Pair<D> x) {
  const auto& c = ScaledErfc::kErfc;
  Vec<D> one = hn::Set(d, 1.0), six = hn::Set(d, 6.0);
  Pair<D> s = exact_sum<D>(x.high, hn::Set(d, 3.0));
  Vec<D> r = one / s.high;
  Vec<D> r_low = r * hn::NegMulAdd(r, s.low + x.low, hn::NegMulAdd(r, s.high, one));
  Vec<D> product = six * r, product_low = hn::MulSub(six, r, product);
  Pair<D> t = exact_sum<D>(one, hn::Neg(product));
  t.low = hn::NegMulAdd(six, r_low, t.low - product_low);
  constexpr size_t kRest = sizeof(c) / sizeof(double) - 2;
  Vec<D> q2 = hn::Set(d, c[kRest + 1]);
#pragma GCC unroll 32
  for (size_t i = kRest + 1; i-- > 2;) q2 = hn::MulAdd(q2, t.high, hn::Set(d, c[i]));
  Vec<D> c1 = hn::Set(d, c[1]), c0 = hn::Set(d, c[0]);
  Vec<D> q = hn::MulAdd(t.high, q2, c1), p = hn::MulAdd(t.high, q, c0);
  Vec<D> low = hn::MulAdd(t.high, q, c0 - p) + t.high * hn::MulAdd(t.high, q2, c1 - q);
  Vec<D> slope = hn::MulAdd(t.high, hn::Set(d, 4 * c[4]), hn::Set(d, 3 * c[3]));
  slope = hn::MulAdd(t.high, hn::MulAdd(t.high, slope, hn::Set(d, 2 * c[2])), c1);
  low = hn::MulAdd(t.low, slope, low);
  Vec<D> y = r * p;
  return {y, hn::MulSub(r, p, y) + hn::MulAdd(r, low, r_low * p)};
}

// y e^(-factor a^2), the square with the digits that its rounding loses; one rounding at the end.
template <class D>
HWY_INLINE Vec<D> times_gaussian(D d, Vec<D> y, Vec<D> a, Scalar<D> factor) {
  Vec<D> square = a * a, lost = hn::MulSub(a, a, square), f = hn::Set(d, -factor);
  auto p = exp_parts<true>(d, f * square);
  Vec<D> m = mantissa<true>(d, p);
  m = hn::MulAdd(f * lost, m, m);
  return scale(d, y * m, p.n);
}
template <class D>
HWY_INLINE Vec<D> times_gaussian(D d, Pair<D> y, Vec<D> a, Scalar<D> factor) {
  Vec<D> square = a * a, lost = hn::MulSub(a, a, square), f = hn::Set(d, -factor);
  Vec<D> one = hn::Set(d, Scalar<D>(1));
  auto p = exp_parts<true>(d, f * square);
  Vec<D> sum = one + p.r, rest = p.tail + (p.r - (sum - one)), m = sum + rest;
  Vec<D> low = hn::MulAdd(f * lost, m, rest - (m - sum));
  return scale(d, hn::MulAdd(y.high, m, hn::MulAdd(y.high, low, y.low * m)), p.n);
}

template <class D>
HWY_INLINE Vec<D> erfc_of_double(D d, Vec<D> x) {
  Vec<D> a = hn::Min(hn::Set(d, 28.0), hn::Abs(x)), one = hn::Set(d, 1.0);
  Vec<D> small = one - hn::MulAdd(x, erf_excess<false>(d, a * a), x);
  Vec<D> large = times_gaussian(d, scaled_erfc(d, Pair<D>{a, hn::Zero(d)}), a, 1.0);
  large = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, 2.0) - large, large);
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.46)), small, large);
}
// In doubles, as far as a float needs it: |x| <= 11.
template <class D>
HWY_INLINE Vec<D> erfc_of_float(D d, Vec<D> x) {
  // scaled_erfc(x) (x + 3): 2^-31 from 0.45 to 11; e^r, |r| <= ln 2 / 2: 2^-34
  static constexpr double kErfc[] = {
      1.0740069074260867,     -0.8833944523465238,    0.5902283085058249,     -0.3104673014821429,
      0.11952888506656682,    -0.026826529573734346,  -0.0012216969825737548, 0.0030282276985864973,
      -0.0005155286900858957, -0.0002550220117606831, 6.064473390106184e-05};
  static constexpr double kExp[] = {
      0.9999999999595618,   0.999999999995509,    0.5000000107729166,    0.16666666786308587,
      0.041666218319291945, 0.008333283538708528, 0.0013948578326459795, 0.00019907569310848288};
  Vec<D> a = hn::Abs(x), one = hn::Set(d, 1.0), z = a * a;
  Vec<D> r = one / (a + hn::Set(d, 3.0)), t = hn::NegMulAdd(r, hn::Set(d, 6.0), one);
  Vec<D> n = hn::Round(z * hn::Set(d, -ExpTable<double>::kLog2e));
  Vec<D> rest = hn::Neg(hn::MulAdd(n, hn::Set(d, Format<double>::kLn2[0]), z));
  Vec<D> power = polynomial(d, rest, kExp) * power_of_two(d, n);
  Vec<D> large = r * polynomial(d, t, kErfc) * power;
  large = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, 2.0) - large, large);
  Vec<D> small = one - hn::MulAdd(x, erf_excess<true>(d, z), x);
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.46)), small, large);
}
template <class D>
HWY_INLINE Vec<D> erfc(D d, Vec<D> x) {
  if constexpr (!kFused)
    return lanes(d, x, kit::scalar::Erfc());
  else if constexpr (kSingle<Scalar<D>>)
    return through_double(d, clamped(d, x, -5.0f, 11.0f),
                          [](auto wide, auto v) HWY_ATTR { return erfc_of_float(wide, v); });
  else
    return erfc_of_double(d, x);
}

template <class D>
HWY_INLINE Vec<D> erf(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Erf());
  Vec<D> one = hn::Set(d, T(1)), a = hn::Abs(x), large;
  if constexpr (kSingle<T>) {
    // 1 - e^q(a), q = log erfc on [0.92, 4]: 2^-31
    static constexpr float kLog[] = {0.000127837717f, -1.1292907f,     -0.633795559f,
                                     -0.107794784f,   0.0248135328f,   -0.00405895524f,
                                     0.000412399735f, -1.93020151e-05f};
    auto p = exp_parts(d, polynomial(d, hn::Min(hn::Set(d, T(4)), a), kLog));
    large = hn::NegMulAdd(mantissa(d, p), power_of_two(d, p.n), one);
  } else {
    Vec<D> b = hn::Min(hn::Set(d, T(6)), a);
    large = one - times_gaussian(d, scaled_erfc(d, b), b, T(1));
  }
  Vec<D> small = hn::MulAdd(a, erf_excess<kSingle<T>>(d, a * a), a);
  const T border = kSingle<T> ? T(0.925) : T(1);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, border)), small, large), x);
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|): the tail is computed as such and keeps its digits.
template <class D>
HWY_INLINE Vec<D> gelu(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Gelu());
  Vec<D> a = hn::Min(hn::Set(d, kSingle<T> ? T(15) : T(39)), hn::Abs(x)), tail;
  if constexpr (kSingle<T>) {
    // Phi(-a) e^(a^2 / 2) (a + 3) as a polynomial of (a - 3) / (a + 3): 2^-30
    static constexpr float kPhi[] = {0.729083717f,    -0.509332001f,   0.230017707f,
                                     -0.0472626872f,  -0.0104625206f,  0.00696930243f,
                                     0.00102478394f,  -0.00103252474f, -0.000244754832f,
                                     0.000131254666f, 5.44555805e-05f};
    Vec<D> r = hn::Set(d, T(1)) / (a + hn::Set(d, T(3)));
    Vec<D> t = hn::NegMulAdd(r, hn::Set(d, T(6)), hn::Set(d, T(1)));
    tail = times_gaussian(d, a * r * polynomial(d, t, kPhi), a, T(0.5));
  } else {
    Vec<D> half = hn::Set(d, 0.5), root = hn::Set(d, 0.70710678118654752440), z = a * root;
    Vec<D> z_low = hn::MulAdd(a, hn::Set(d, -4.833646656726457e-17), hn::MulSub(a, root, z));
    Vec<D> small = a * hn::NegMulAdd(half, hn::MulAdd(z, erf_excess<false>(d, z * z), z), half);
    Pair<D> y = scaled_erfc(d, Pair<D>{z, z_low});
    Vec<D> b = half * a, high = b * y.high;
    y = {high, hn::MulAdd(b, y.low, hn::MulSub(b, y.high, high))};
    tail = times_gaussian(d, y, a, 0.5);
    tail = hn::IfThenElse(hn::Lt(z, hn::Set(d, 0.46)), small, tail);
  }
  Vec<D> head = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // a NaN stays
  return head - tail;
}

// x / 2 (1 + tanh u) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
template <class D>
HWY_INLINE Vec<D> gelu_tanh(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::GeluTanh());
  // What the roundings of u lose counts as much as they are large in the exponent: each is kept.
  constexpr long double wide_a = 1.59576912160573071176L, wide_b = wide_a * 0.044715L;
  constexpr T a = T(wide_a), b = T(wide_b);
  const Vec<D> va = hn::Set(d, a), vb = hn::Set(d, b), bounded = clamped(d, x, T(-40), T(40));
  Vec<D> square = bounded * bounded, square_lost = hn::MulSub(bounded, bounded, square);
  Vec<D> cubic = vb * square, lost = hn::MulSub(vb, square, cubic);
  lost = lost + hn::MulAdd(vb, square_lost, hn::Set(d, T(wide_b - b)) * square);
  Vec<D> sum = hn::Max(va, cubic) + hn::Min(va, cubic);
  lost = lost + (hn::Min(va, cubic) - (sum - hn::Max(va, cubic))) + hn::Set(d, T(wide_a - a));
  Vec<D> u = bounded * sum;
  lost = hn::MulAdd(bounded, lost, hn::MulSub(bounded, sum, u));
  lost = hn::IfThenElse(hn::Gt(u, hn::Zero(d)), hn::Neg(lost), lost);
  auto p = exp_parts<true>(d, hn::Max(hn::Set(d, ExpTable<T>::kLowest), hn::Neg(hn::Abs(u))));
  Vec<D> m = mantissa<true>(d, p);
  m = hn::MulAdd(lost, m, m);
  Vec<D> above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), scale(d, bounded * m, p.n), x);
  return above / (hn::Set(d, T(1)) + scale(d, m, p.n));
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
