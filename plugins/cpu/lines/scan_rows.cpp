// plugins/cpu/lines/scan_rows.cpp: running sums in vector code.
#include "scan_rows.hpp"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lines/scan_rows.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Doubles out of T, and back.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const double* x) {
  return hn::LoadU(d, x);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), x));
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, double* y) {
  hn::StoreU(v, d, y);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, float* y) {
  const hn::Rebind<float, D> df;
  hn::StoreU(hn::DemoteTo(df, v), df, y);
}

template <class T>
double sum(const T* x, int64_t n) {
  const hn::ScalableTag<double> d;
  constexpr int64_t L = HWY_LANES(double);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    s0 = hn::Add(s0, load(d, x + i));
    s1 = hn::Add(s1, load(d, x + i + L));
    s2 = hn::Add(s2, load(d, x + i + 2 * L));
    s3 = hn::Add(s3, load(d, x + i + 3 * L));
  }
  double total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) total += double(x[i]);
  return total;
}

// Lane i of the result is lane i - by, or zero.
template <class D>
struct Shift {
  Shift(D d, int64_t by) {
    constexpr int64_t L = HWY_LANES(double);
    HWY_ALIGN int64_t from[L];
    HWY_ALIGN double kept[L];
    for (int64_t i = 0; i < L; ++i) from[i] = i < by ? 0 : i - by, kept[i] = i < by ? 0 : 1;
    index = hn::SetTableIndices(d, from);
    mask = hn::Ne(hn::Load(d, kept), hn::Zero(d));
  }
  HWY_INLINE hn::Vec<D> operator()(D, hn::Vec<D> v) const {
    return hn::IfThenElseZero(mask, hn::TableLookupLanes(v, index));
  }
  decltype(hn::SetTableIndices(D(), static_cast<const int64_t*>(nullptr))) index;
  hn::Mask<D> mask;
};

// Within a vector by doubling distances; the carry waits for one addition only.
template <class T>
void scan(const T* x, T* y, int64_t n, double carry) {
  const hn::ScalableTag<double> d;
  using D = decltype(d);
  constexpr int64_t L = HWY_LANES(double);
  const Shift<std::remove_const_t<D>> one(d, 1), two(d, 2), four(d, 4);
  HWY_ALIGN int64_t ends[L];
  std::fill_n(ends, L, L - 1);
  auto last = hn::SetTableIndices(d, ends);
  auto before = hn::Set(d, carry);
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    auto v = load(d, x + i);
    v = hn::Add(v, one(d, v));
    if (L > 2) v = hn::Add(v, two(d, v));
    if (L > 4) v = hn::Add(v, four(d, v));
    store(d, hn::Add(v, before), y + i);
    before = hn::Add(before, hn::TableLookupLanes(v, last));
  }
  carry = hn::GetLane(before);
  for (; i < n; ++i) y[i] = T(carry += double(x[i]));
}

template <class T>
void columns(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t n, int64_t width) {
  const hn::ScalableTag<double> d;
  constexpr int64_t L = HWY_LANES(double);
  HWY_ALIGN double carry[kScanColumns] = {};
  for (int64_t k = 0; k < n; ++k, x += x_step, y += y_step) {
    int64_t j = 0;
    for (; j + L <= width; j += L) {
      auto v = hn::Add(hn::Load(d, carry + j), load(d, x + j));
      hn::Store(v, d, carry + j);
      store(d, v, y + j);
    }
    for (; j < width; ++j) y[j] = T(carry[j] += double(x[j]));
  }
}

template <class T>
constexpr ScanRows<T> kRows = {&sum<T>, &scan<T>, &columns<T>};

}  // namespace

AJ_CODE(ScanRows, scan_rows, kRows)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

AJ_CHOSEN_CODE(ScanRows, scan_rows)

}  // namespace adjoin::cpu
#endif
