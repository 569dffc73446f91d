// plugins/vector/math_erf-inl.hpp: the error function of vectors, and activations made of it.
// float: erf 2 ULP, erfc 1, gelu 6, gelu_tanh 3; double: erf 2, erfc, gelu and gelu_tanh 3.
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
// Of floats: y e^(-a^2) to 0.6 ULP; Half: y e^(-a^2 / 2) to 1.5 ULP, where nothing is given for the
// low digits of y.
template <bool Half, class D>
HWY_INLINE Vec<D> times_gaussian(D d, const Pair<D>& y, Vec<D> a) {
  // Half: n and r are those of the square, the exponential's argument is r / 2.
  using E = ExpTable<float>;
  constexpr float s = Half ? 0.5f : 1.0f, s2 = s * s, s3 = s2 * s;
  constexpr float ln2 = Format<float>::kLn2[0] / s, ln2_low = Format<float>::kLn2[1] / s;
  static constexpr float kTail[] = {E::kTail[0] * s2, E::kTail[1] * s3, E::kTail[2] * s2 * s2,
                                    E::kTail[3] * s3 * s2, E::kTail[4] * s3 * s3};
  Vec<D> square = a * a, lost = hn::MulSub(a, a, square), magic = hn::Set(d, Format<float>::kMagic);
  Vec<D> n = hn::NegMulAdd(square, hn::Set(d, E::kLog2e * s), magic) - magic;
  Vec<D> first = hn::NegMulSub(n, hn::Set(d, ln2), square);  // no rounding here
  Vec<D> rest = hn::MulAdd(n, hn::Set(d, ln2_low), lost), r = first - rest;
  Vec<D> q = polynomial(d, r, kTail);
  if constexpr (Half) {
    Vec<D> less = r * hn::MulAdd(r, q, hn::Set(d, s));  // e^(r / 2) - 1
    return scale(d, hn::MulAdd(y.high, less, y.high), n);
  }
  Vec<D> tail = hn::MulAdd(r * r, q, (first - r) - rest);  // e^r - 1 - r, and what r has lost
  Vec<D> sum = hn::MulAdd(y.high, r, y.high), low = hn::MulAdd(y.high, r, y.high - sum);
  return scale(d, sum + (low + hn::MulAdd(y.high, tail, y.low)), n);
}

// erfc(a) e^(a^2), a <= 11.25: 2^-26.6
static constexpr Parts6 kErfcParts = {
    {1.49967766f, 1.99968076f, 2.49931502f, 2.99931908f, 3.74929905f, 4.74871778f, 5.74858952f,
     6.74871683f, 8.24751282f, 10.2475147f, 0.0624888539f, 0.187461078f, 0.374914765f, 0.624946892f,
     0.874825776f, 1.12465858f},
    {{0.321638167f, 0.255429775f, 0.210857302f, 0.179038182f, 0.14561528f, 0.116332851f,
      0.0967218354f, 0.0827104524f, 0.0679151043f, 0.05479775f, 0.933217525f, 0.819213271f,
      0.685909569f, 0.556836843f, 0.464366615f, 0.395779371f},
     {-0.163672045f, -0.106823161f, -0.0743815228f, -0.0543938987f, -0.0364687182f, -0.0235154089f,
      -0.0163509101f, -0.0120003233f, -0.00811778288f, -0.00529766828f, -1.01174784f, -0.821237981f,
      -0.614063919f, -0.432392269f, -0.315899402f, -0.238145828f},
     {0.0761828944f, 0.0418175645f, 0.0249544475f, 0.0158935245f, 0.00888318941f, 0.00466482155f,
      0.00272717327f, 0.00172367098f, 0.000963607745f, 0.000509821752f, 0.8699947f, 0.665263116f,
      0.45568797f, 0.286614627f, 0.188009709f, 0.12794663f},
     {-0.0329458714f, -0.0154669499f, -0.00800812896f, -0.00448269164f, -0.00210835552f,
      -0.000908929855f, -0.000448991224f, -0.000245165487f, -0.000113591188f, -4.88381193e-05f,
      -0.638254285f, -0.46435079f, -0.295475245f, -0.168846935f, -0.100948252f, -0.0628326386f},
     {0.0133850072f, 0.00544343283f, 0.00246949238f, 0.0012241553f, 0.000488553545f,
      0.000174129353f, 7.30023021e-05f, 3.45418848e-05f, 1.33040521e-05f, 4.65800485e-06f,
      0.414982438f, 0.289110959f, 0.172449276f, 0.090549089f, 0.0498446114f, 0.0286380313f},
     {-0.00522267632f, -0.00185316219f, -0.000740941323f, -0.000326774694f, -0.000113048096f,
      -3.33144853e-05f, -1.18570151e-05f, -4.86205545e-06f, -1.58474722e-06f, -4.49295612e-07f,
      -0.245390847f, -0.164351016f, -0.0929185972f, -0.045154728f, -0.0230479594f, -0.0123013807f},
     {0.00191054796f, 0.000599250605f, 0.000213008942f, 8.3918123e-05f, 2.50236299e-05f,
      6.17254364e-06f, 1.88624324e-06f, 6.7157788e-07f, 1.82811704e-07f, 4.24224744e-08f,
      0.144072652f, 0.0857253373f, 0.0463042632f, 0.0208072346f, 0.0100956783f, 0.0050555733f}}};
template <class D>
HWY_INLINE Vec<D> erfc_of_float(D d, Vec<D> x) {
  Vec<D> a = hn::Min(hn::Set(d, 11.0f), hn::Abs(x));
  Vec<D> y = times_gaussian<false>(d, by_parts(d, a, 0.75f, kErfcParts), a);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, 2.0f) - y, y);
}
template <class D>
HWY_INLINE Vec<D> erfc(D d, Vec<D> x) {
  if constexpr (!kFused)
    return lanes(d, x, kit::scalar::Erfc());
  else if constexpr (kSingle<Scalar<D>>)
    return erfc_of_float(d, x);
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

// a Phi(-a) e^(a^2 / 2), a < 15: 2^-23
static constexpr Parts5 kGeluParts = {
    {1.24966443f, 1.74968874f, 2.24942613f, 2.74939704f, 3.49935794f, 4.49885988f, 5.49862909f,
     6.49866581f, 7.99857855f, 9.99739742f, 11.9973907f, 13.9973736f, 0.0f, 0.37491402f,
     0.624825537f, 0.874834597f},
    {{0.288419306f, 0.324138492f, 0.345697403f, 0.359479606f, 0.372199833f, 0.381607473f,
      0.386879295f, 0.390098482f, 0.39297834f, 0.39506498f, 0.396226496f, 0.396936506f, 0.0f,
      0.142327294f, 0.202062652f, 0.24477528f},
     {0.0926807895f, 0.0543716736f, 0.0339120403f, 0.022249965f, 0.012780915f, 0.00683625229f,
      0.0040293606f, 0.00255460292f, 0.00142799318f, 0.000753852713f, 0.000443724683f,
      0.000282344292f, 0.49999997f, 0.283418089f, 0.200375214f, 0.144925609f},
     {-0.0526115336f, -0.0272365734f, -0.0151033364f, -0.00887560006f, -0.00437954674f,
      -0.00195698324f, -0.00098501984f, -0.000543092436f, -0.000253003469f, -0.000108940592f,
      -5.40229885e-05f, -2.96666785e-05f, -0.398934275f, -0.203485548f, -0.134279475f,
      -0.0907738656f},
     {0.0244228244f, 0.0112955375f, 0.00563302729f, 0.00299072778f, 0.00128160347f, 0.000483728072f,
      0.000208960366f, 0.000100517929f, 3.9289389e-05f, 1.39297435e-05f, 5.8039227e-06f,
      2.79655319e-06f, 0.249741077f, 0.116241813f, 0.072190918f, 0.0459482446f},
     {-0.0100034717f, -0.00416951347f, -0.00188026845f, -0.000908018206f, -0.000344965694f,
      -0.000110243687f, -4.11803958e-05f, -1.7388571e-05f, -5.79460038e-06f, -1.66683469e-06f,
      -5.88678233e-07f, -2.40768173e-07f, -0.13001363f, -0.057123404f, -0.0335827246f,
      -0.0202573575f},
     {0.00367060234f, 0.00144637423f, 0.00054764474f, 0.000252108555f, 8.38645283e-05f,
      2.16805583e-05f, 8.30402769e-06f, 3.74523734e-06f, 8.32644162e-07f, 1.41666362e-07f,
      6.09207333e-08f, -1.12268648e-08f, 0.0482285023f, 0.0267602317f, 0.0154068219f,
      0.0102155851f}}};

// x Phi(x) = max(x, 0) - |x| Phi(-|x|): the tail is computed as such and keeps its digits.
template <class D>
HWY_INLINE Vec<D> gelu(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Gelu());
  Vec<D> a = hn::Min(hn::Set(d, kSingle<T> ? T(14.9) : T(39)), hn::Abs(x)), tail;
  if constexpr (kLookups && kSingle<T>) {
    tail = times_gaussian<true>(d, by_parts(d, a, 1.0f, kGeluParts), a);
  } else if constexpr (kSingle<T>) {
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
  return hn::Max(hn::Zero(d), x) - tail;  // the tail of a NaN is one
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
