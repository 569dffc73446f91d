// plugins/cpu/math_pow-inl.hpp: powers of vectors. float: 2 ULP, as C's pow in all special cases.
#if defined(ADJOIN_PLUGINS_CPU_MATH_POW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_CPU_MATH_POW_INL_HPP
#undef ADJOIN_PLUGINS_CPU_MATH_POW_INL_HPP
#else
#define ADJOIN_PLUGINS_CPU_MATH_POW_INL_HPP
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

template <class D>
HWY_INLINE Vec<D> pow(D d, Vec<D> x, Vec<D> y) {
  if constexpr (!kFused || !kSingle<Scalar<D>>) {
    return lanes(d, x, y, kit::scalar::Pow());
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
