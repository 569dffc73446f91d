// plugins/vector/math_log-inl.hpp: logarithms of vectors, and of sums of exponentials. float: log,
// log1p, log2, log10 1 ULP; double: 2.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_LOG_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_LOG_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_LOG_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_LOG_INL_HPP
#endif
#include "math_exp-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// x = 2^e m for positive normal x, sqrt(1/2) <= m < sqrt(2). The exponent becomes a number without
// a conversion of integers, which AVX2 lacks for 64 bits.
template <class D>
HWY_INLINE void split(D d, Vec<D> x, Vec<D>* e, Vec<D>* m) {
  using F = Format<Scalar<D>>;
  using Bits = typename F::Bits;
  const hn::RebindToUnsigned<D> du;
  constexpr Bits one = Bits(F::kBias) << F::kMantissa,
                 fraction = (Bits(1) << F::kMantissa) - Bits(1);
  auto above = hn::BitCast(du, x) + hn::Set(du, Bits(one - F::kRootHalf));
  auto high = hn::Or(hn::ShiftRight<F::kMantissa>(above), hn::Set(du, F::kTwoToMantissa));
  const Scalar<D> offset = Scalar<D>(Bits(1) << F::kMantissa) + Scalar<D>(F::kBias);
  *e = hn::BitCast(d, high) - hn::Set(d, offset);
  *m = hn::BitCast(d, hn::And(above, hn::Set(du, fraction)) + hn::Set(du, F::kRootHalf));
}

// Of floats: (log(1 + f) - f + f^2 / 2) / f^3. 2^-30
template <class D>
HWY_INLINE Vec<D> log_tail(D d, Vec<D> f) {
  static constexpr float kTail[] = {0.333333135f,  -0.250000089f, 0.200021192f,
                                    -0.166679963f, 0.142195538f,  -0.124055885f,
                                    0.118881576f,  -0.116756499f, 0.0674663931f};
  return polynomial(d, f, kTail);
}

// log(2^e (1 + f))
template <class D>
HWY_INLINE Vec<D> log_of_parts(D d, Vec<D> e, Vec<D> f) {
  using T = Scalar<D>;
  Vec<D> ln2 = hn::Set(d, Format<T>::kLn2[0]), rest = hn::Set(d, Format<T>::kLn2[1]);
  if constexpr (kSingle<T>) {
    Vec<D> z = f * f;
    Vec<D> y = hn::MulAdd(z * f, log_tail(d, f), e * rest);
    y = f + hn::NegMulAdd(z, hn::Set(d, T(0.5)), y);
    return hn::MulAdd(e, ln2, y);
  } else {
    // log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R)), s = f / (2 + f), R an even function of s (P.
    // Tang, ACM TOMS 16, 1990).
    static constexpr T kTail[] = {0.66666666666666663, 0.40000000000006702, 0.28571428568940083,
                                  0.22222222668774516, 0.18181773905731433, 0.15387167744327784,
                                  0.13248381412153645, 0.13267127613841634};
    Vec<D> s = f / (hn::Set(d, T(2)) + f), z = s * s;
    Vec<D> half = f * f * hn::Set(d, T(0.5));
    Vec<D> y = s * hn::MulAdd(z, polynomial(d, z, kTail), half);
    return hn::MulAdd(e, ln2, f - (half - hn::MulAdd(e, rest, y)));
  }
}

// The logarithm, times `unit`, of subnormal numbers, zero, infinity, and what has none.
template <class D, class Core>
HWY_NOINLINE Vec<D> log_of_any(D d, Vec<D> x, Scalar<D> up_by, Core core) {
  using T = Scalar<D>;
  using F = Format<T>;
  Vec<D> zero = hn::Zero(d), inf = hn::Set(d, T(HUGE_VALF));
  auto small = hn::Lt(x, hn::Set(d, F::kLeastNormal));
  constexpr T up = T(typename F::Bits(1) << F::kMantissa);
  Vec<D> safe = hn::IfThenElse(small, x * hn::Set(d, up), x);
  Vec<D> y = core(d, safe, hn::IfThenElseZero(small, hn::Set(d, up_by)));
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Ge(x, zero), y, hn::Set(d, T(NAN)));
}
template <class D, class Core>
HWY_INLINE Vec<D> with_specials(D d, Vec<D> x, Core core) {
  using F = Format<Scalar<D>>;
  auto plain =
      hn::And(hn::Ge(x, hn::Set(d, F::kLeastNormal)), hn::Lt(x, hn::Set(d, Scalar<D>(HUGE_VALF))));
  if (HWY_LIKELY(hn::AllTrue(d, plain))) return core(d, x, hn::Zero(d));
  return log_of_any(d, x, -Scalar<D>(F::kMantissa), core);
}

struct LogCore {
  template <class D>
  HWY_INLINE Vec<D> operator()(D d, Vec<D> x, Vec<D> more) const {
    Vec<D> e, m;
    split(d, x, &e, &m);
    return log_of_parts(d, e + more, m - hn::Set(d, Scalar<D>(1)));
  }
};
template <class D>
HWY_INLINE Vec<D> log(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log());
  return with_specials(d, x, LogCore());
}

// A logarithm to another base: e + log(m) / log(base), or both scaled.
template <bool Ten>
struct OtherLogCore {
  template <class D>
  HWY_INLINE Vec<D> operator()(D d, Vec<D> x, Vec<D> more) const {
    using T = Scalar<D>;
    if constexpr (kSingle<T>) {
      // log(1 + f), the factor and their product, each in two numbers: half a unit and a little.
      Vec<D> e, m;
      split(d, x, &e, &m);
      e = e + more;
      Vec<D> f = m - hn::Set(d, T(1)), z = f * f, half = f * hn::Set(d, T(-0.5));
      Vec<D> l = hn::MulAdd(half, f, f), l_rest = hn::MulAdd(half, f, f - l);
      l_rest = hn::MulAdd(z * f, log_tail(d, f), l_rest);
      const Vec<D> to = hn::Set(d, Ten ? T(0.4342945) : T(1.442695));
      const Vec<D> to_rest = hn::Set(d, Ten ? T(-1.010305e-08) : T(1.925963e-08));
      Vec<D> y = l * to,
             rest = hn::MulAdd(l_rest, to, hn::MulAdd(l, to_rest, hn::MulSub(l, to, y)));
      if constexpr (Ten) {  // log10(2) in two numbers, e times the first of which is exact
        rest = hn::MulAdd(e, hn::Set(d, T(7.903417e-07)), rest);
        e = e * hn::Set(d, T(0.3010292));
      }
      Vec<D> sum = e + y;
      return sum + ((y - (sum - e)) + rest);
    } else {
      Vec<D> e, m;
      split(d, x, &e, &m);
      e = e + more;
      Vec<D> l = log_of_parts(d, hn::Zero(d), m - hn::Set(d, T(1)));
      // 1 / log(2) or 1 / log(10) in two numbers, and log10(2) in two
      Vec<D> to = hn::Set(d, Ten ? T(0.43429448190325182) : T(1.4426950408889634));
      Vec<D> rest = l * hn::Set(d, Ten ? T(1.0983196502167651e-17) : T(2.0355273740931033e-17));
      if constexpr (!Ten) return e + hn::MulAdd(l, to, rest);
      rest = hn::MulAdd(e, hn::Set(d, T(-2.8037281277851704e-18)), rest);
      return hn::MulAdd(e, hn::Set(d, T(0.3010299956639812)), hn::MulAdd(l, to, rest));
    }
  }
};
template <class D>
HWY_INLINE Vec<D> log2(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log2());
  return with_specials(d, x, OtherLogCore<false>());
}
template <class D>
HWY_INLINE Vec<D> log10(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log10());
  return with_specials(d, x, OtherLogCore<true>());
}

// 1 + x = 2^e (1 + f) with f = x 2^-e + (2^-e - 1): one rounding, where 1 + x alone would lose x.
template <class D>
HWY_INLINE Vec<D> log1p(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log1p());
  Vec<D> one = hn::Set(d, T(1)), inf = hn::Set(d, T(HUGE_VALF)), e, m;
  split(d, x + one, &e, &m);
  // Two factors: 2^-128 is no normal number.
  Vec<D> half = hn::Round(e * hn::Set(d, T(0.5)));
  Vec<D> down = power_of_two(d, half - e), more = power_of_two(d, hn::Neg(half));
  Vec<D> below = hn::MulSub(down, more, one), f = hn::MulAdd(x * down, more, below);
  Vec<D> y = log_of_parts(d, e, f);
  if constexpr (kSingle<T>) y = y + hn::MulAdd(x * down, more, below - f) / m;  // f's rounding
  auto plain = hn::And(hn::Gt(x, hn::Set(d, T(-1))), hn::Lt(x, inf));
  if (HWY_UNLIKELY(!hn::AllTrue(d, plain))) {
    y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
    y = hn::IfThenElse(hn::Eq(x, hn::Set(d, T(-1))), hn::Neg(inf), y);
    y = hn::IfThenElse(hn::Ge(x, hn::Set(d, T(-1))), y, hn::Set(d, T(NAN)));
  }
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, Format<T>::kLeastNormal)), x, y);
}

// log(1 + e), 0 <= e <= 1
template <class D>
HWY_INLINE Vec<D> log1p_to_one(D d, Vec<D> e) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, e, kit::scalar::Log1p());
  Vec<D> one = hn::Set(d, T(1));
  auto upper = hn::Gt(e, hn::Set(d, T(0.41421356237309503)));
  Vec<D> f = hn::IfThenElse(upper, (e - one) * hn::Set(d, T(0.5)), e);
  return log_of_parts(d, hn::IfThenElseZero(upper, one), f);
}
// 2 ULP of the larger of its terms.
template <class D>
HWY_INLINE Vec<D> logaddexp(D d, Vec<D> a, Vec<D> b) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, a, b, kit::scalar::LogAddExp());
  Vec<D> larger = hn::IfThenElse(hn::Gt(a, b), a, b);
  Vec<D> y = larger + log1p_to_one(d, exp(d, hn::Neg(hn::Abs(a - b))));
  y = hn::IfThenElse(hn::Eq(a, b), a + hn::Set(d, T(0.69314718055994530942)), y);
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), a + b, y);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
