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

// The logarithm of subnormal numbers, zero, infinity, and what has none.
template <class D, class Core>
HWY_NOINLINE Vec<D> log_of_any(D d, Vec<D> x, Core core) {
  using T = Scalar<D>;
  using F = Format<T>;
  Vec<D> zero = hn::Zero(d), inf = hn::Set(d, T(HUGE_VALF));
  auto small = hn::Lt(x, hn::Set(d, F::kLeastNormal));
  constexpr T up = T(typename F::Bits(1) << F::kMantissa);
  Vec<D> safe = hn::IfThenElse(small, x * hn::Set(d, up), x);
  const Vec<D> more = hn::IfThenElseZero(small, hn::Set(d, T(-F::kMantissa)));
  Vec<D> y = core(d, safe, &more);
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Ge(x, zero), y, hn::Set(d, T(NAN)));
}
// Positive normal numbers all.
template <class D>
HWY_INLINE bool plain(D d, Vec<D> x) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(x.raw) == 64) {  // one instruction that names all other kinds
    if constexpr (kSingle<Scalar<D>>) return _mm512_fpclass_ps_mask(x.raw, 0xff) == 0;
    if constexpr (!kSingle<Scalar<D>>) return _mm512_fpclass_pd_mask(x.raw, 0xff) == 0;
  }
#endif
  Vec<D> least = hn::Set(d, Format<Scalar<D>>::kLeastNormal);
  return hn::AllTrue(d, hn::And(hn::Ge(x, least), hn::Lt(x, hn::Set(d, Scalar<D>(HUGE_VALF)))));
}
template <class D, class Core>
HWY_INLINE Vec<D> with_specials(D d, Vec<D> x, Core core) {
  if (HWY_LIKELY(plain(d, x))) return core(d, x);
  return log_of_any(d, x, core);
}

// The logarithm of a float: x = 2^e m, 0.703 <= m < 1.406; of 16 parts of that range each has a
// number near 1 / m, 1 where m is near 1, so that f = m / number - 1 is at most 1/32. The
// logarithm is then e log 2 + high, without an error, and below 0.05 besides.
enum class LogBase { e, two, ten };
struct LogTable {
  alignas(64) float high[16];
  alignas(64) float low[16];
  float log2[2], slope[2];  // log 2 and 1 / log(base), each in two numbers
  float tail[4];            // (log(1 + f) - slope f) / f^2: 2^-30
};
alignas(64) static constexpr float kNearInverse[16] = {
    1.390625f,    1.33398438f,  1.27929688f, 1.23046875f, 1.18554688f, 1.14257812f,
    1.10351562f,  1.06640625f,  1.03320312f, 1.0f,        0.94140625f, 0.888671875f,
    0.841796875f, 0.799804688f, 0.76171875f, 0.727539062f};
template <LogBase>
inline constexpr LogTable kLogTable = {
    {-0.329750061f, -0.288169861f, -0.246307373f, -0.207397461f, -0.170204163f, -0.133285522f,
     -0.0985031128f, -0.0642929077f, -0.032661438f, 0.0f, 0.0603790283f, 0.118026733f, 0.172218323f,
     0.223388672f, 0.27217865f, 0.318084717f},
    {-3.22533742e-06f, -3.73691449e-07f, -3.23754898e-06f, 2.26659154e-06f, -3.42233419e-09f,
     -1.69973146e-06f, 2.00668615e-06f, -1.44299054e-06f, -2.36883056e-06f, 0.0f, 1.48266861e-06f,
     4.72690118e-07f, -1.78781818e-06f, -9.50128594e-07f, -7.6398652e-07f, 2.87042303e-06f},
    {0x1.62e4000000000p-1f, 1.42860677e-06f},
    {1.0f, 0.0f},
    {-0.49999997f, 0.333333641f, -0.250150889f, 0.19943957f}};
template <>
inline constexpr LogTable kLogTable<LogBase::two> = {
    {-0.475738525f, -0.415740967f, -0.35534668f, -0.299209595f, -0.245559692f, -0.19229126f,
     -0.142105103f, -0.0927581787f, -0.0471191406f, 0.0f, 0.0871124268f, 0.170272827f, 0.248458862f,
     0.322280884f, 0.392669678f, 0.458908081f},
    {5.09442407e-06f, -8.01493229e-07f, -4.41673728e-06f, 1.57633929e-06f, 6.98612712e-06f,
     -1.55470514e-06f, -1.95476355e-06f, 1.03779109e-06f, -4.77148888e-06f, 0.0f, -1.76298772e-06f,
     4.43776571e-06f, -2.92139384e-06f, -5.25430096e-07f, 8.51601456e-09f, -4.69640418e-06f},
    {0x1.0000000000000p+0f, 0.0f},
    {1.44269502f, 1.92596303e-08f},
    {-0.721347511f, 0.480898768f, -0.360891432f, 0.287730485f}};
template <>
inline constexpr LogTable kLogTable<LogBase::ten> = {
    {-0.143211365f, -0.125152588f, -0.106971741f, -0.0900688171f, -0.0739173889f, -0.0578842163f,
     -0.0427780151f, -0.027923584f, -0.0141868591f, 0.0f, 0.026222229f, 0.0512580872f,
     0.0747909546f, 0.0970153809f, 0.118206024f, 0.138145447f},
    {1.33208505e-06f, 1.8451849e-06f, 4.017067e-07f, -1.77133904e-06f, -1.34118341e-06f,
     -1.68879774e-06f, -4.71706898e-07f, 9.02255465e-07f, 1.14807153e-06f, 0.0f, 6.93733057e-07f,
     4.7716054e-07f, 1.73622527e-06f, 6.74020043e-07f, -6.70220572e-07f, -1.76288586e-06f},
    {0x1.3441000000000p-2f, 7.90341687e-07f},
    {0.434294492f, -1.010305e-08f},
    {-0.217147231f, 0.14476496f, -0.108639143f, 0.0866155103f}};

template <LogBase Base>
struct LookupLogCore {
  // more: what is added to e, in special lanes alone
  template <class D>
  HWY_INLINE Vec<D> operator()(D d, Vec<D> x, const Vec<D>* more = nullptr) const {
    constexpr const LogTable& t = kLogTable<Base>;
    constexpr int kStart = 0x3f340000;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(di, x), above = bits - hn::Set(di, kStart);
    const auto part = hn::ShiftRight<19>(above), whole = hn::And(above, hn::Set(di, -1 << 23));
    Vec<D> m = hn::BitCast(d, bits - whole), e = hn::ConvertTo(d, whole);  // 2^23 times it
    if (more) e = hn::MulAdd(*more, hn::Set(d, 0x1p23f), e);
    // f, f slope and their sum with the rest, each with what its rounding lost: near 1 the terms
    // cancel.
    const Vec<D> inverse = lookup(d, kNearInverse, part), near = m * inverse;
    Vec<D> one = hn::Set(d, 1.0f), f = near - one, lost = hn::MulSub(m, inverse, near);
    Vec<D> low = lookup(d, t.low, part), y = f, slope = hn::Set(d, t.slope[0]);
    if constexpr (t.log2[1] != 0) low = hn::MulAdd(e, hn::Set(d, t.log2[1] * 0x1p-23f), low);
    if constexpr (t.slope[0] != 1) {
      y = f * slope;
      low = hn::MulAdd(lost, slope, low);
      lost = hn::MulAdd(f, hn::Set(d, t.slope[1]), hn::MulSub(f, slope, y));
    }
    low = low + lost;
    Vec<D> high = hn::MulAdd(e, hn::Set(d, t.log2[0] * 0x1p-23f), lookup(d, t.high, part));
    Vec<D> sum = high + y;
    f = hn::MulSub(m, inverse, one);
    low = hn::MulAdd(f * f, polynomial(d, f, t.tail), low);
    return sum + (low + (y - (sum - high)));
  }
};

// Without those look-ups, and of doubles. To another base: e + log(m) / log(base), or both scaled.
template <LogBase Base>
struct PlainLogCore {
  template <class D>
  HWY_INLINE Vec<D> operator()(D d, Vec<D> x, const Vec<D>* more = nullptr) const {
    using T = Scalar<D>;
    constexpr bool ten = Base == LogBase::ten;
    Vec<D> e, m;
    split(d, x, &e, &m);
    if (more) e = e + *more;
    Vec<D> f = m - hn::Set(d, T(1));
    if constexpr (Base == LogBase::e) return log_of_parts(d, e, f);
    if constexpr (kSingle<T>) {
      // log(1 + f), the factor and their product, each in two numbers: half a unit and a little.
      Vec<D> z = f * f, half = f * hn::Set(d, T(-0.5));
      Vec<D> l = hn::MulAdd(half, f, f), l_rest = hn::MulAdd(half, f, f - l);
      l_rest = hn::MulAdd(z * f, log_tail(d, f), l_rest);
      const Vec<D> to = hn::Set(d, ten ? T(0.4342945) : T(1.442695));
      const Vec<D> to_rest = hn::Set(d, ten ? T(-1.010305e-08) : T(1.925963e-08));
      Vec<D> y = l * to,
             rest = hn::MulAdd(l_rest, to, hn::MulAdd(l, to_rest, hn::MulSub(l, to, y)));
      if constexpr (ten) {  // log10(2) in two numbers, e times the first of which is exact
        rest = hn::MulAdd(e, hn::Set(d, T(7.903417e-07)), rest);
        e = e * hn::Set(d, T(0.3010292));
      }
      Vec<D> sum = e + y;
      return sum + ((y - (sum - e)) + rest);
    } else {
      Vec<D> l = log_of_parts(d, hn::Zero(d), f);
      // 1 / log(2) or 1 / log(10) in two numbers, and log10(2) in two
      Vec<D> to = hn::Set(d, ten ? T(0.43429448190325182) : T(1.4426950408889634));
      Vec<D> rest = l * hn::Set(d, ten ? T(1.0983196502167651e-17) : T(2.0355273740931033e-17));
      if constexpr (!ten) return e + hn::MulAdd(l, to, rest);
      rest = hn::MulAdd(e, hn::Set(d, T(-2.8037281277851704e-18)), rest);
      return hn::MulAdd(e, hn::Set(d, T(0.3010299956639812)), hn::MulAdd(l, to, rest));
    }
  }
};
template <LogBase Base, class D>
HWY_INLINE Vec<D> log_to(D d, Vec<D> x) {
  if constexpr (kLookups && kSingle<Scalar<D>>)
    return with_specials(d, x, LookupLogCore<Base>());
  else
    return with_specials(d, x, PlainLogCore<Base>());
}
template <class D>
HWY_INLINE Vec<D> log(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log());
  return log_to<LogBase::e>(d, x);
}
template <class D>
HWY_INLINE Vec<D> log2(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log2());
  return log_to<LogBase::two>(d, x);
}
template <class D>
HWY_INLINE Vec<D> log10(D d, Vec<D> x) {
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Log10());
  return log_to<LogBase::ten>(d, x);
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
