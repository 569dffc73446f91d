// plugins/vector/math_trig-inl.hpp: sin, cos and tan of vectors. float: 2 ULP; double: 2.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_TRIG_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_TRIG_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_TRIG_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_TRIG_INL_HPP
#endif
#include "math_base-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// |x| = n pi / 2 + r + rest. Cody and Waite's reduction: with a fused multiply-add the first
// difference is exact. It serves up to kLimit.
template <class T>
struct Quarter;
template <>
struct Quarter<float> {
  static constexpr float kInverse = 0.636619747f, kLimit = 8192.0f;
  static constexpr float kPart[] = {1.57079637f, -4.37113883e-08f, -1.71512451e-15f};
  // (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 as polynomials of r^2: 2^-37, 2^-33
  static constexpr float kSin[] = {-0.166666672f, 0.00833332911f, -0.000198393274f,
                                   2.71823706e-06f};
  static constexpr float kCos[] = {0.0416666456f, -0.00138873619f, 2.44377297e-05f};
};
template <>
struct Quarter<double> {
  static constexpr double kInverse = 0.63661977236758138, kLimit = 1e9;
  static constexpr double kPart[] = {1.5707963267948966, 6.123233995736766e-17,
                                     -1.4973849048591698e-33};
  // 2^-68, 2^-64
  static constexpr double kSin[] = {-0.16666666666666666,    0.0083333333333333228,
                                    -0.0001984126984125499,  2.7557319214148918e-06,
                                    -2.5052104900550916e-08, 1.605836519394139e-10,
                                    -7.5786254994950303e-13};
  static constexpr double kCos[] = {0.041666666666666602,   -0.001388888888887399,
                                    2.4801587289394903e-05, -2.7557314326020624e-07,
                                    2.0875719556899313e-09, -1.1359448566207305e-11};
};

template <class D>
struct Angle {
  Vec<D> sin, cos;                     // of r + rest
  hn::Vec<hn::RebindToUnsigned<D>> n;  // its low two bits are those of n
};
// Doubles with the rest, so that errors stay under 0.8 ULP.
template <class D>
HWY_INLINE Angle<D> reduced(D d, Vec<D> a) {
  using T = Scalar<D>;
  using Q = Quarter<T>;
  const hn::RebindToUnsigned<D> du;
  Vec<D> n = hn::Round(a * hn::Set(d, Q::kInverse));
  Vec<D> second = hn::Set(d, Q::kPart[1]), third = hn::Set(d, Q::kPart[2]);
  Vec<D> first = hn::NegMulAdd(n, hn::Set(d, Q::kPart[0]), a);
  Vec<D> r = hn::NegMulAdd(n, second, first), half = hn::Set(d, T(0.5)), one = hn::Set(d, T(1));
  Angle<D> out;
  out.n = hn::BitCast(du, n + hn::Set(d, Format<T>::kMagic));
  if constexpr (kSingle<T>) {
    r = hn::NegMulAdd(n, third, r);
    Vec<D> z = r * r;
    out.sin = hn::MulAdd(r * z, polynomial(d, z, Q::kSin), r);
    out.cos = hn::MulAdd(z * z, polynomial(d, z, Q::kCos), hn::NegMulAdd(z, half, one));
  } else {
    Vec<D> rest = hn::NegMulAdd(n, third, hn::NegMulAdd(n, second, first - r));
    Vec<D> z = r * r, h = hn::NegMulAdd(z, half, one);
    out.sin = r + hn::MulAdd(r * z, polynomial(d, z, Q::kSin), rest * h);
    Vec<D> lost = hn::NegMulAdd(z, half, one - h);  // by the rounding of 1 - z / 2
    out.cos = h + hn::MulAdd(z * z, polynomial(d, z, Q::kCos), hn::NegMulAdd(r, rest, lost));
  }
  return out;
}

template <bool Cos, class D>
HWY_INLINE Vec<D> sine_of_reduced(D d, Vec<D> x) {
  using T = Scalar<D>;
  const hn::RebindToUnsigned<D> du;
  using Bits = hn::TFromD<decltype(du)>;
  auto angle = reduced(d, hn::Abs(x));
  auto n = angle.n;
  if constexpr (Cos) n = n + hn::Set(du, Bits(1));
  auto odd = hn::RebindMask(d, hn::TestBit(n, hn::Set(du, Bits(1))));
  Vec<D> y = hn::IfThenElse(odd, angle.cos, angle.sin);
  auto sign = hn::ShiftLeft<sizeof(T) * 8 - 2>(hn::And(n, hn::Set(du, Bits(2))));
  if constexpr (!Cos)
    sign = hn::Xor(sign, hn::And(hn::BitCast(du, x), hn::BitCast(du, hn::SignBit(d))));
  return hn::BitCast(d, hn::Xor(hn::BitCast(du, y), sign));
}

// Arguments over kLimit: floats go through double up to its limit; what is left, to libm, which
// reduces with as many digits of pi as needed.
template <class D, class Function>
HWY_NOINLINE Vec<D> large_angle(D d, Vec<D> x, Vec<D> y, Function f) {
  using T = Scalar<D>;
  HWY_ALIGN T from[hn::MaxLanes(d)];
  HWY_ALIGN T to[hn::MaxLanes(d)];
  hn::Store(x, d, from);
  hn::Store(y, d, to);
  for (size_t i = 0; i < hn::MaxLanes(d); ++i)
    if (!(std::fabs(from[i]) <= Quarter<T>::kLimit)) to[i] = T(f(double(from[i])));
  return hn::Load(d, to);
}

template <bool Cos, class D>
HWY_INLINE Vec<D> sine(D d, Vec<D> x) {
  using T = Scalar<D>;
  Vec<D> y = sine_of_reduced<Cos>(d, x);
  auto fits = hn::Le(hn::Abs(x), hn::Set(d, Quarter<T>::kLimit));
  if (HWY_LIKELY(hn::AllTrue(d, fits))) return y;
  if constexpr (kSingle<T>)
    return hn::IfThenElse(fits, y, through_double(d, x, [](auto wide, auto v) HWY_ATTR {
                            return sine<Cos>(wide, v);
                          }));
  else
    return large_angle(d, x, y, [](double v) { return Cos ? std::cos(v) : std::sin(v); });
}
template <class D>
HWY_INLINE Vec<D> sin(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Sin());
  return sine<false>(d, x);
}
template <class D>
HWY_INLINE Vec<D> cos(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Cos());
  return sine<true>(d, x);
}

// Through double, for floats over kLimit.
template <class D>
HWY_NOINLINE Vec<D> tan_by_double(D d, Vec<D> x) {
  return through_double(d, x, [](auto wide, auto v) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(wide)> du;
    auto angle = reduced(wide, hn::Abs(v));
    auto odd = hn::RebindMask(wide, hn::TestBit(angle.n, hn::Set(du, uint64_t(1))));
    auto over = hn::IfThenElse(odd, hn::Neg(angle.cos), angle.sin);
    auto y = over / hn::IfThenElse(odd, angle.sin, angle.cos);
    y = hn::Xor(y, hn::And(v, hn::SignBit(wide)));
    if (HWY_LIKELY(hn::AllTrue(wide, hn::Le(hn::Abs(v), hn::Set(wide, Quarter<double>::kLimit)))))
      return y;
    return large_angle(wide, v, y, [](double x) { return std::tan(x); });
  });
}
// tan(r + rest) with what its sum loses, turned where n is odd. 0.9 ULP
template <class D>
HWY_INLINE Vec<D> tan_of_float(D d, Vec<D> x) {
  using Q = Quarter<float>;
  // (tan(r) / r - 1) / r^2, |r| <= pi / 4: 2^-33
  static constexpr float kTan[] = {0.333333313f,  0.133334115f,   0.0539544635f,    0.021985855f,
                                   0.0083268946f, 0.00500208372f, -0.000605889654f, 0.00204552221f};
  const hn::RebindToUnsigned<D> du;
  Vec<D> a = hn::Abs(x), one = hn::Set(d, 1.0f);
  auto fits = hn::Le(a, hn::Set(d, Q::kLimit));
  Vec<D> n = hn::Round(a * hn::Set(d, Q::kInverse)), second = hn::Set(d, Q::kPart[1]);
  // The first difference is exact. It may be as small as the second part: that sum keeps all
  // digits.
  Vec<D> first = hn::NegMulAdd(n, hn::Set(d, Q::kPart[0]), a), part = n * second;
  Vec<D> r = first - part, seen = r - first, rest = (first - (r - seen)) - (part + seen);
  rest = hn::NegMulAdd(n, hn::Set(d, Q::kPart[2]), rest - hn::MulSub(n, second, part));
  Vec<D> z = r * r;
  rest = hn::MulAdd(r * z, polynomial(d, z, kTan), hn::MulAdd(rest, z, rest));
  Vec<D> even = r + rest, lost = (r - even) + rest, odd = one / even;
  odd = hn::Neg(hn::MulAdd(odd, hn::NegMulAdd(odd, lost, hn::NegMulAdd(odd, even, one)), odd));
  auto turned =
      hn::TestBit(hn::BitCast(du, n + hn::Set(d, Format<float>::kMagic)), hn::Set(du, uint32_t(1)));
  Vec<D> y = hn::IfThenElse(hn::RebindMask(d, turned), odd, even);
  y = hn::Xor(y, hn::And(x, hn::SignBit(d)));
  if (HWY_LIKELY(hn::AllTrue(d, fits))) return y;
  return hn::IfThenElse(fits, y, tan_by_double(d, x));
}
template <class D>
HWY_INLINE Vec<D> tan(D d, Vec<D> x) {
  if constexpr (kFused && kSingle<Scalar<D>>)
    return tan_of_float(d, x);
  else
    return lanes(d, x, kit::scalar::Tan());
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
