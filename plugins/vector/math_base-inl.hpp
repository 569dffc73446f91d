// plugins/vector/math_base-inl.hpp: what the vector functions of math-inl.hpp are made of:
// polynomials, powers of two, results of exceptional lanes.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_BASE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_BASE_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_BASE_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_BASE_INL_HPP
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {
namespace hn = hwy::HWY_NAMESPACE;

// Where there is no fused multiply-add the reductions of arguments below would lose their digits:
// such a processor computes lane by lane.
inline constexpr bool kFused = HWY_NATIVE_FMA;

template <class T>
inline constexpr bool kSingle = sizeof(T) == 4;

template <class D>
using Scalar = hn::TFromD<D>;
template <class D>
using Vec = hn::Vec<D>;

// f of each lane.
template <class D, class F>
HWY_NOINLINE Vec<D> lanes(D d, Vec<D> x, F f) {
  HWY_ALIGN Scalar<D> values[hn::MaxLanes(d)];
  hn::Store(x, d, values);
  for (auto& v : values) v = f(v);
  return hn::Load(d, values);
}
template <class D, class F>
HWY_NOINLINE Vec<D> lanes(D d, Vec<D> x, Vec<D> y, F f) {
  HWY_ALIGN Scalar<D> a[hn::MaxLanes(d)];
  HWY_ALIGN Scalar<D> b[hn::MaxLanes(d)];
  hn::Store(x, d, a);
  hn::Store(y, d, b);
  for (size_t i = 0; i < hn::MaxLanes(d); ++i) a[i] = f(a[i], b[i]);
  return hn::Load(d, a);
}

// c[0] + c[1] x + ...
template <class D, size_t N>
HWY_INLINE Vec<D> polynomial(D d, Vec<D> x, const Scalar<D> (&c)[N]) {
  Vec<D> y = hn::Set(d, c[N - 1]);
#pragma GCC unroll 32
  for (size_t i = N - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

// Whether a look-up in 16 floats is one instruction: else other ways are the faster ones.
inline constexpr bool kLookups = HWY_TARGET == HWY_AVX3;

// Element i mod 16 of a table that is aligned as a vector.
template <class D, class I>
HWY_INLINE Vec<D> lookup(D d, const float (&table)[16], I i) {
  [[maybe_unused]] constexpr size_t kBytes = sizeof(float) * hn::MaxLanes(D());
#if HWY_TARGET == HWY_AVX3
  if constexpr (kBytes == 64) return Vec<D>{_mm512_permutexvar_ps(i.raw, _mm512_load_ps(table))};
  if constexpr (kBytes == 32)
    return Vec<D>{_mm256_permutex2var_ps(_mm256_load_ps(table), i.raw, _mm256_load_ps(table + 8))};
#elif HWY_TARGET == HWY_AVX2
  if constexpr (kBytes == 32) {
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), i.raw);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), i.raw);
    return Vec<D>{_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(i.raw, 28)))};
  }
#endif
  const hn::RebindToSigned<D> di;
  return hn::GatherIndex(d, table, hn::And(i, hn::Set(di, 15)));
}

// A number and what its rounding lost.
template <class D>
struct Pair {
  Vec<D> high, low;
};

// A function of a float a >= 0 in 16 parts, which the first bits of a + shift tell: a polynomial of
// the distance from the part's middle, where its value is a float but for 2^-33 of it.
struct Parts6 {
  alignas(64) float middle[16];
  alignas(64) float c[7][16];
};
struct Parts5 {
  alignas(64) float middle[16];
  alignas(64) float c[6][16];
};
// c[0] + u (c[1] + ...) and, if asked, what the last rounding lost.
template <class D, class Parts>
HWY_INLINE Pair<D> by_parts(D d, Vec<D> a, float shift, const Parts& t) {
  constexpr size_t kDegree = sizeof t.c / sizeof t.c[0] - 1;
  const hn::RebindToSigned<D> di;
  const auto part = hn::ShiftRight<21>(hn::BitCast(di, a + hn::Set(d, shift)));
  Vec<D> u = a - lookup(d, t.middle, part), q = lookup(d, t.c[kDegree], part);
#pragma GCC unroll 8
  for (size_t i = kDegree; i-- > 1;) q = hn::MulAdd(u, q, lookup(d, t.c[i], part));
  Vec<D> first = lookup(d, t.c[0], part), y = hn::MulAdd(u, q, first);
  return {y, hn::MulAdd(u, q, first - y)};
}

// A float computed through double: g(tag, vector of doubles) of both halves.
template <class D, class G>
HWY_INLINE Vec<D> through_double(D d, Vec<D> x, G g) {
  const hn::Half<D> half;
  const hn::Repartition<double, D> wide;
  auto low = g(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)));
  auto high = g(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kMagic = 0x1.8p23f;  // adding it leaves an integer in the low bits
  static constexpr float kLeastNormal = 0x1p-126f;
  static constexpr float kLn2[2] = {0.693147182f, -1.90465421e-09f};
  static constexpr Bits kRootHalf = 0x3f3504f3u, kTwoToMantissa = 0x4b000000u;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kMagic = 0x1.8p52;
  static constexpr double kLeastNormal = 0x1p-1022;
  static constexpr double kLn2[2] = {0.69314718055994529, 2.3190468138462996e-17};
  static constexpr Bits kRootHalf = 0x3fe6a09e667f3bcdu, kTwoToMantissa = 0x4330000000000000u;
};

// 2^n for whole n of a normal result.
template <class D>
HWY_INLINE Vec<D> power_of_two(D d, Vec<D> n) {
  using F = Format<Scalar<D>>;
  const hn::RebindToUnsigned<D> du;
  Vec<D> shifted = n + hn::Set(d, F::kMagic + Scalar<D>(F::kBias));
  return hn::BitCast(d, hn::ShiftLeft<F::kMantissa>(hn::BitCast(du, shifted)));
}

// y 2^n for any whole n, rounded once also where the result is subnormal.
template <class D>
HWY_INLINE Vec<D> scale(D d, Vec<D> y, Vec<D> n) {
#if HWY_TARGET == HWY_AVX3
  constexpr size_t kBytes = sizeof(Scalar<D>) * hn::MaxLanes(d);
  if constexpr (kSingle<Scalar<D>>) {
    if constexpr (kBytes == 64) return Vec<D>{_mm512_scalef_ps(y.raw, n.raw)};
    if constexpr (kBytes == 32) return Vec<D>{_mm256_scalef_ps(y.raw, n.raw)};
    if constexpr (kBytes <= 16) return Vec<D>{_mm_scalef_ps(y.raw, n.raw)};
  } else {
    if constexpr (kBytes == 64) return Vec<D>{_mm512_scalef_pd(y.raw, n.raw)};
    if constexpr (kBytes == 32) return Vec<D>{_mm256_scalef_pd(y.raw, n.raw)};
    if constexpr (kBytes <= 16) return Vec<D>{_mm_scalef_pd(y.raw, n.raw)};
  }
#else
  Vec<D> half = hn::Round(n * hn::Set(d, Scalar<D>(0.5)));
  return y * power_of_two(d, half) * power_of_two(d, n - half);
#endif
}

// x between low and high; a NaN stays one.
template <class D>
HWY_INLINE Vec<D> clamped(D d, Vec<D> x, Scalar<D> low, Scalar<D> high) {
  Vec<D> y = hn::Min(hn::Set(d, high), x);
  return hn::Max(hn::Set(d, low), y);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
