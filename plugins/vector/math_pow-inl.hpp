// plugins/vector/math_pow-inl.hpp: powers of vectors. float: 2 ULP, double: 1; as C's pow in all
// special cases.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_POW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_POW_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_POW_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_POW_INL_HPP
#endif
#include "math_log-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// 2^(y (e + log2 m)) in doubles, for halves of float vectors. What is no number or too large
// becomes 2^+-160, which is 0 or infinity as a float.
template <class W, class H>
HWY_INLINE hn::Vec<H> pow_half(W wide, H half, hn::Vec<H> e, hn::Vec<H> m, hn::Vec<H> y) {
  // log2((1 + s) / (1 - s)) / s as a polynomial of s^2: 2^-37
  static constexpr double kLog2[] = {2.8853900817907734, 0.96179667243117051, 0.57708376717179666,
                                     0.41166133369083191, 0.34094840748221955};
  // (2^f - 1) / f: 2^-34
  static constexpr double kExp2[] = {
      0.69314718054136881,   0.24022651080460161,    0.055504109637139344,  0.0096180361677248444,
      0.0013333429785263055, 0.00015467366069118696, 1.5315190117946432e-05};
  auto n = hn::PromoteTo(wide, m), one = hn::Set(wide, 1.0);
  auto s = (n - one) / (n + one);
  auto l = hn::MulAdd(s, polynomial(wide, s * s, kLog2), hn::PromoteTo(wide, e));
  auto t = clamped(wide, hn::PromoteTo(wide, y) * l, -160.0, 160.0);
  auto whole = hn::Round(t), f = t - whole;
  auto power = hn::MulAdd(f, polynomial(wide, f, kExp2), one) * power_of_two(wide, whole);
  return hn::DemoteTo(half, power);
}

// |x|^y for normal |x|, 2^more times that for its exponent.
template <class D>
HWY_INLINE Vec<D> pow_of_normal(D d, Vec<D> a, Vec<D> y, Vec<D> more) {
  const hn::Half<D> half;
  const hn::Repartition<double, D> wide;
  Vec<D> e, m;
  split(d, a, &e, &m);
  e = e + more;
  auto low =
      pow_half(wide, half, hn::LowerHalf(half, e), hn::LowerHalf(half, m), hn::LowerHalf(half, y));
  auto high =
      pow_half(wide, half, hn::UpperHalf(half, e), hn::UpperHalf(half, m), hn::UpperHalf(half, y));
  return hn::Combine(d, high, low);
}

// Zeros, infinities, subnormal and negative bases; exponents that are infinite or no numbers.
template <class D>
HWY_NOINLINE Vec<D> pow_of_any(D d, Vec<D> x, Vec<D> y) {
  Vec<D> a = hn::Abs(x), zero = hn::Zero(d), one = hn::Set(d, 1.0f), inf = hn::Set(d, HUGE_VALF);
  auto small = hn::Lt(a, hn::Set(d, Format<float>::kLeastNormal));
  Vec<D> r = pow_of_normal(d, hn::IfThenElse(small, a * hn::Set(d, 0x1p23f), a), y,
                           hn::IfThenElseZero(small, hn::Set(d, -23.0f)));
  Vec<D> up = hn::IfThenElse(hn::Lt(y, zero), zero, inf);    // of a large base
  Vec<D> down = hn::IfThenElse(hn::Lt(y, zero), inf, zero);  // of a small one
  r = hn::IfThenElse(hn::Eq(a, zero), down, r);
  r = hn::IfThenElse(hn::Eq(a, inf), up, r);
  r = hn::IfThenElse(hn::Eq(hn::Abs(y), inf), hn::IfThenElse(hn::Lt(a, one), down, up), r);
  // The base's sign: kept by odd exponents; with a fraction there is no result. From 2^24 on floats
  // are even.
  auto whole = hn::Eq(hn::Trunc(y), y);
  Vec<D> half = y * hn::Set(d, 0.5f);
  auto odd = hn::AndNot(hn::Eq(hn::Trunc(half), half), whole);
  odd = hn::And(odd, hn::Lt(hn::Abs(y), inf));
  r = hn::IfThenElse(odd, hn::CopySign(r, x), r);
  auto negative = hn::And(hn::Lt(x, zero), hn::Lt(a, inf));
  r = hn::IfThenElse(hn::AndNot(whole, negative), hn::Set(d, NAN), r);
  r = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), x + y, r);
  auto unit = hn::Or(hn::Eq(y, zero), hn::Eq(x, one));
  unit = hn::Or(unit, hn::And(hn::Eq(a, one), hn::Eq(hn::Abs(y), inf)));
  return hn::IfThenElse(unit, one, r);
}

// A sum of two doubles whose second is a rounding error of the first.
template <class D>
struct Twofold {
  Vec<D> high, low;
};
template <class D>
HWY_INLINE Twofold<D> ordered_sum(Vec<D> a, Vec<D> b) {  // |a| >= |b|
  Vec<D> s = a + b;
  return {s, b - (s - a)};
}

// log2(2^e m) of doubles, to 2^-64 of it: log(m) = 2 (s + s^3 / 3 + s^5 / 5 + ...) of
// s = (m - 1) / (m + 1), the first two terms twofold.
template <class D>
HWY_INLINE Twofold<D> log2_twofold(D d, Vec<D> e, Vec<D> m) {
  using T = Twofold<D>;
  static constexpr double kTail[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                     1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  const Vec<D> one = hn::Set(d, 1.0);
  Vec<D> n = m - one;  // exact
  T below = ordered_sum<D>(hn::Max(m, one), hn::Min(m, one));
  Vec<D> inverse = one / below.high, s = n * inverse;
  Vec<D> rest = hn::NegMulAdd(s, below.low, hn::NegMulAdd(s, below.high, n)) * inverse;
  Vec<D> z = s * s, z_low = hn::MulAdd(s + s, rest, hn::MulSub(s, s, z));
  // 1 / 3 + z (1 / 5 + ...), times z, times s
  T q = ordered_sum<D>(hn::Set(d, 1.0 / 3), z * polynomial(d, z, kTail));
  q.low = q.low + hn::Set(d, 1.850371707708594e-17);  // what 1 / 3 lacks
  Vec<D> r = q.high * z, r_low = hn::MulSub(q.high, z, r);
  r_low = hn::MulAdd(q.high, z_low, hn::MulAdd(q.low, z, r_low));
  Vec<D> u = r * s, u_low = hn::MulSub(r, s, u);
  u_low = hn::MulAdd(r, rest, hn::MulAdd(r_low, s, u_low));
  T sum = ordered_sum<D>(s, u);
  sum.low = sum.low + (rest + u_low);
  // times 2 / log(2), in two numbers
  const Vec<D> to = hn::Set(d, 2.8853900817779268), to_low = hn::Set(d, 4.0710547481862066e-17);
  Vec<D> l = sum.high * to, l_low = hn::MulSub(sum.high, to, l);
  l_low = hn::MulAdd(sum.high, to_low, hn::MulAdd(sum.low, to, l_low));
  T y = ordered_sum<D>(e, l);  // e is 0 or the larger
  y.low = y.low + l_low;
  return ordered_sum<D>(y.high, y.low);
}

// x^y of doubles for normal x and finite y: 1 ULP, 2 where the result is subnormal.
template <class D>
HWY_INLINE Vec<D> pow_twofold(D d, Vec<D> x, Vec<D> y) {
  // (2^f - 1) / f: the series of e^(f log 2)
  static constexpr double kExp2[] = {
      0.69314718055994531,    0.24022650695910072,    0.055504108664821580,
      0.0096181291076284772,  0.0013333558146428443,  0.00015403530393381610,
      1.5252733804059841e-05, 1.3215486790144309e-06, 1.0178086009239700e-07,
      7.0549116208011233e-09, 4.4455382718708115e-10, 2.5678435993488205e-11,
      1.3691488853904128e-12};
  Vec<D> e, m;
  split(d, x, &e, &m);
  Twofold<D> l = log2_twofold(d, e, m);
  Vec<D> t = y * l.high, t_low = hn::MulAdd(y, l.low, hn::MulSub(y, l.high, t));
  auto outside = hn::Gt(hn::Abs(t), hn::Set(d, 1100.0));  // 0 or infinity
  t = hn::IfThenElse(outside, hn::CopySign(hn::Set(d, 1100.0), t), t);
  t_low = hn::IfThenElse(outside, hn::Zero(d), t_low);
  Vec<D> whole = hn::Round(t), f = (t - whole) + t_low;
  Vec<D> lost = t_low - (f - (t - whole));
  Vec<D> p = polynomial(d, f, kExp2), one = hn::Set(d, 1.0);
  // 1 + f p, where f p is at most 0.42
  Vec<D> power = one + hn::MulAdd(f, p, lost * hn::Set(d, 0.69314718055994531));
  return scale(d, power, whole);
}

// x^0.5, of which pow says other things than sqrt at -0 and -infinity.
template <class D>
HWY_INLINE Vec<D> root_as_power(D d, Vec<D> x) {
  Vec<D> inf = hn::Set(d, Scalar<D>(HUGE_VAL)), y = hn::Sqrt(x + hn::Zero(d));
  return hn::IfThenElse(hn::Eq(x, hn::Neg(inf)), inf, y);
}

template <class D>
HWY_INLINE Vec<D> pow(D d, Vec<D> x, Vec<D> y) {
  if constexpr (!kFused) {
    return lanes(d, x, y, kit::scalar::Pow());
  } else if constexpr (!kSingle<Scalar<D>>) {
    constexpr double most = std::numeric_limits<double>::max();
    auto plain =
        hn::And(hn::Ge(x, hn::Set(d, Format<double>::kLeastNormal)), hn::Le(x, hn::Set(d, most)));
    plain = hn::And(plain, hn::Lt(hn::Abs(y), hn::Set(d, 1e280)));
    if (HWY_LIKELY(hn::AllTrue(d, plain))) return pow_twofold(d, x, y);
    const Vec<D> one = hn::Set(d, 1.0);
    Vec<D> z = pow_twofold(d, hn::IfThenElse(plain, x, one), hn::IfThenElse(plain, y, one));
    Vec<D> any =
        lanes(d, x, y, kit::scalar::Pow());  // the C library's, of a signaling NaN to 0, too
    any = hn::IfThenElse(hn::Eq(y, hn::Zero(d)), one, any);
    return hn::IfThenElse(plain, z, any);
  } else {
    Vec<D> inf = hn::Set(d, HUGE_VALF);
    auto plain = hn::And(hn::Ge(x, hn::Set(d, Format<float>::kLeastNormal)), hn::Lt(x, inf));
    plain = hn::And(plain, hn::Lt(hn::Abs(y), inf));
    if (HWY_LIKELY(hn::AllTrue(d, plain))) return pow_of_normal(d, x, y, hn::Zero(d));
    return pow_of_any(d, x, y);
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
