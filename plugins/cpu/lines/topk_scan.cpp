// plugins/cpu/lines/topk_scan.cpp: many elements compared at once, with the worst of the best so
// far or with another of a short line.
#include "topk_scan.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lines/topk_scan.cpp"
#include "vector/simd.hpp"

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

void rank(const uint64_t* a, uint64_t* sorted, int64_t n) {
  const hn::ScalableTag<int64_t> d;
  constexpr int64_t L = HWY_LANES(int64_t);
  constexpr uint64_t top = uint64_t(1) << 63;  // vectors compare signed numbers
  HWY_ALIGN int64_t key[kRanked + L], place[kRanked + L];
  for (int64_t i = 0; i < n; ++i) key[i] = int64_t(a[i] ^ top);
  for (int64_t i = n; i < n + L; ++i) key[i] = 0;
  for (int64_t i = 0; i < n; i += L) {
    auto v = hn::Load(d, key + i), before = hn::Zero(d);
    for (int64_t j = 0; j < n; ++j)
      before = hn::Sub(before, hn::VecFromMask(d, hn::Lt(hn::Set(d, key[j]), v)));
    hn::Store(before, d, place + i);
  }
  for (int64_t i = 0; i < n; ++i) sorted[place[i]] = a[i];
}

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

void rank_words(const uint64_t* a, uint64_t* sorted, int64_t n) { AJ_SIMD(rank)(a, sorted, n); }

}  // namespace adjoin::cpu
#endif
