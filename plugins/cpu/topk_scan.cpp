// plugins/cpu/topk_scan.cpp: many elements compared at once with the worst of the best so far.
#include "topk_scan.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "topk_scan.cpp"
#include "simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <bool Above, class T>
int64_t scan(const T* HWY_RESTRICT x, int64_t i, int64_t n, T bound) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  auto b = hn::Set(d, bound);
  auto inside = [=](auto v) HWY_ATTR { return Above ? hn::Le(v, b) : hn::Ge(v, b); };
  for (; i + 4 * L <= n; i += 4 * L) {
    auto two = hn::And(inside(hn::LoadU(d, x + i)), inside(hn::LoadU(d, x + i + L)));
    auto more = hn::And(inside(hn::LoadU(d, x + i + 2 * L)), inside(hn::LoadU(d, x + i + 3 * L)));
    if (!hn::AllTrue(d, hn::And(two, more))) break;
  }
  for (; i + L <= n; i += L) {
    intptr_t at = hn::FindFirstTrue(d, hn::Not(inside(hn::LoadU(d, x + i))));
    if (at >= 0) return i + at;
  }
  while (i < n && (Above ? x[i] <= bound : x[i] >= bound)) ++i;
  return i;
}

}  // namespace

int64_t scan_f32(const float* x, int64_t i, int64_t n, float bound, bool above) {
  return above ? scan<true>(x, i, n, bound) : scan<false>(x, i, n, bound);
}
int64_t scan_f64(const double* x, int64_t i, int64_t n, double bound, bool above) {
  return above ? scan<true>(x, i, n, bound) : scan<false>(x, i, n, bound);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

int64_t find_beyond(const float* x, int64_t from, int64_t n, float bound, bool above) {
  return AJ_SIMD(scan_f32)(x, from, n, bound, above);
}
int64_t find_beyond(const double* x, int64_t from, int64_t n, double bound, bool above) {
  return AJ_SIMD(scan_f64)(x, from, n, bound, above);
}

}  // namespace adjoin::cpu
#endif
