// plugins/vector/row_math-inl.hpp: sums over a contiguous row, and rows written once, in vector
// code. Include it, after "simd.hpp", from a file of vector code; f(d, i) is the vector at element
// i.
#if defined(ADJOIN_PLUGINS_VECTOR_ROW_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_ROW_MATH_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_ROW_MATH_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_ROW_MATH_INL_HPP
#endif
#include <hwy/cache_control.h>

HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::rows {
namespace hn = hwy::HWY_NAMESPACE;

// Sum of f over n elements: blocks in T, their sums in double. The order depends on n alone.
template <class T, class F>
HWY_INLINE double total(int64_t n, F f) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T), block = 2048;
  double sum = 0;
  int64_t i = 0;
  while (i + L <= n) {
    int64_t end = std::min(n, i + block);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (; i + 4 * L <= end; i += 4 * L) {
      s0 = hn::Add(s0, f(d, i));
      s1 = hn::Add(s1, f(d, i + L));
      s2 = hn::Add(s2, f(d, i + 2 * L));
      s3 = hn::Add(s3, f(d, i + 3 * L));
    }
    for (; i + L <= end; i += L) s0 = hn::Add(s0, f(d, i));
    sum += double(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))));
  }
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i) sum += double(hn::GetLane(f(one, i)));
  return sum;
}

// Mean of n elements and 1 / sqrt(variance + eps), in two passes.
template <class T>
static void statistics(const T* HWY_RESTRICT x, int64_t n, double eps, T* mean, T* rstd) {
  T m = T(total<T>(n, [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); }) / double(n));
  double squares = total<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    auto c = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m));
    return hn::Mul(c, c);
  });
  *mean = m, *rstd = T(1 / std::sqrt(squares / double(n) + eps));
}

// The largest of n elements; what a NaN does is not said.
template <class T>
HWY_INLINE T largest(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  T top = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  if (n >= L) {
    auto s0 = hn::LoadU(d, x), s1 = s0, s2 = s0, s3 = s0;
    for (; i + 4 * L <= n; i += 4 * L) {
      s0 = hn::Max(s0, hn::LoadU(d, x + i));
      s1 = hn::Max(s1, hn::LoadU(d, x + i + L));
      s2 = hn::Max(s2, hn::LoadU(d, x + i + 2 * L));
      s3 = hn::Max(s3, hn::LoadU(d, x + i + 3 * L));
    }
    for (; i + L <= n; i += L) s0 = hn::Max(s0, hn::LoadU(d, x + i));
    top = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(s0, s1), hn::Max(s2, s3))));
  }
  for (; i < n; ++i) top = std::max(top, x[i]);
  return top;
}

// y[i] = f(i). past_cache: y is large and not read soon, so its lines are not fetched; whoever asks
// for that ends with end_streaming().
template <class T, class F>
HWY_INLINE void write(T* HWY_RESTRICT y, int64_t n, bool past_cache, F f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t L = HWY_LANES(T);
  int64_t i = 0;
  if (past_cache) {
    for (; i < n && reinterpret_cast<uintptr_t>(y + i) % (L * sizeof(T)); ++i)
      hn::Store(f(one, i), one, y + i);
    for (; i + L <= n; i += L) hn::Stream(f(d, i), d, y + i);
  } else {
    for (; i + L <= n; i += L) hn::StoreU(f(d, i), d, y + i);
  }
  for (; i < n; ++i) hn::Store(f(one, i), one, y + i);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::rows
HWY_AFTER_NAMESPACE();
#endif
