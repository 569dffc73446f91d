// plugins/vector/lanes.hpp: per instruction set: parts of vectors, and sums of float lanes in the
// fixed tree. Included again for each set, after simd.hpp; so no ordinary guard.
#if AJ_VECTORS
#if defined(ADJOIN_PLUGINS_VECTOR_LANES_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef ADJOIN_PLUGINS_VECTOR_LANES_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_LANES_HPP
#endif
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first n lanes from p, the others zero; nothing behind them is read.
template <class D>
HWY_INLINE hn::Vec<D> load_n(D d, const hn::TFromD<D>* p, size_t n) {
  if (n >= hn::Lanes(d)) return hn::LoadU(d, p);
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN hn::TFromD<D> part[hn::MaxLanes(d)] = {};
  for (size_t i = 0; i < n; ++i) part[i] = p[i];
  return hn::Load(d, part);
#endif
}

template <class D>
HWY_INLINE void store_n(hn::Vec<D> v, D d, hn::TFromD<D>* p, size_t n) {
  if (n >= hn::Lanes(d)) return hn::StoreU(v, d, p);
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN hn::TFromD<D> part[hn::MaxLanes(d)];
  hn::Store(v, d, part);
  for (size_t i = 0; i < n; ++i) p[i] = part[i];
#endif
}

// Sum of f(i, count): a vector of the values from element i on, zeros from `count` on. Leaves of
// 4096 elements in 64 lanes, joined in double.
template <class D, class F>
HWY_INLINE double sum_of(D d, size_t n, F f) {
  constexpr size_t lanes = hn::MaxLanes(d), rows = 64 / lanes;
  double total = 0;
  for (size_t at = 0; at < n; at += 4096) {
    size_t end = HWY_MIN(n, at + 4096), i = at;
    hn::Vec<D> sum[rows];
    for (size_t k = 0; k < rows; ++k) sum[k] = hn::Zero(d);
    for (; i + 64 <= end; i += 64)
      for (size_t k = 0; k < rows; ++k) sum[k] = hn::Add(sum[k], f(i + k * lanes, lanes));
    for (size_t k = 0; i < end; i += lanes, ++k)
      sum[k] = hn::Add(sum[k], f(i, HWY_MIN(lanes, end - i)));
    for (size_t half = rows / 2; half; half /= 2)
      for (size_t k = 0; k < half; ++k) sum[k] = hn::Add(sum[k], sum[k + half]);
    total += double(hn::GetLane(hn::SumOfLanes(d, sum[0])));
  }
  return total;
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
