// plugins/cpu/image/window_sums.cpp: sums of windows along a line, one tap of many windows at once.
#include "window_sums.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/image/window_sums.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
template <int64_t kStep>
using Step = std::integral_constant<int64_t, kStep>;  // known: that makes vectors

template <class T, class S>
void sums_by(const T* HWY_RESTRICT x, int64_t n, int64_t taps, S step, T* HWY_RESTRICT to) {
  constexpr int64_t block = 512;  // stays in the first-level cache
  for (int64_t lo = 0; lo < n; lo += block) {
    const int64_t hi = std::min(n, lo + block);
    for (int64_t o = lo; o < hi; ++o) to[o] = T(0) + x[o * step];
    for (int64_t t = 1; t < taps; ++t)
      for (int64_t o = lo; o < hi; ++o) to[o] += x[o * step + t];
  }
}
template <class T>
void sums(const T* x, int64_t n, int64_t taps, int64_t step, T* to) {
  if (step == 1) return sums_by(x, n, taps, Step<1>(), to);
  if (step == 2) return sums_by(x, n, taps, Step<2>(), to);
  sums_by(x, n, taps, step, to);
}

// A tap's later windows reach it by an earlier tap of theirs: from the last tap on, windows come in
// order.
template <class T, class S>
void shares_by(const T* HWY_RESTRICT share, int64_t n, int64_t taps, S step, T* HWY_RESTRICT x) {
  for (int64_t t = taps; t-- > 0;)
    for (int64_t o = 0; o < n; ++o) x[o * step + t] += share[o];
}
template <class T>
void shares(const T* share, int64_t n, int64_t taps, int64_t step, T* x) {
  if (step == 1) return shares_by(share, n, taps, Step<1>(), x);
  if (step == 2) return shares_by(share, n, taps, Step<2>(), x);
  shares_by(share, n, taps, step, x);
}

template <class T>
void add_to(T* x, int64_t n, T share) {
  for (int64_t i = 0; i < n; ++i) x[i] += share;
}
template <class T>
void set_to(T* x, int64_t n, T value) {
  for (int64_t i = 0; i < n; ++i) x[i] = value;
}

template <class T>
void divide(const T* x, const T* n, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = x[i] / n[i];
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

constexpr int64_t kFew = 8;  // fewer windows that are alike are not worth a loop

template <class T>
void sum_each(const LineWindows& w, const T* x, T* to) {
  for (int64_t o = 0; o < int64_t(w.all.size()); ++o) {
    if (o == w.begin) o = w.end;
    if (o == int64_t(w.all.size())) break;
    T sum = 0;
    for (int64_t i = w.all[size_t(o)].lo; i < w.all[size_t(o)].hi; ++i) sum += x[i];
    to[o] = sum;
  }
  if (w.end > w.begin) AJ_SIMD(sums<T>)
  (x + w.all[size_t(w.begin)].lo, w.end - w.begin, w.taps, w.step, to + w.begin);
}

template <class T>
void add_each(const LineWindows& w, const T* share, T* x) {
  auto singly = [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t i = w.all[size_t(o)].lo; i < w.all[size_t(o)].hi; ++i) x[i] += share[o];
  };
  singly(0, w.begin);
  if (w.end > w.begin) AJ_SIMD(shares<T>)
  (share + w.begin, w.end - w.begin, w.taps, w.step, x + w.all[size_t(w.begin)].lo);
  singly(w.end, int64_t(w.all.size()));
}

// Windows come in order, so what no earlier one reached begins at one place.
template <class T>
void lay_each(const LineWindows& w, const T* share, T* x, int64_t width) {
  int64_t at = 0;
  for (size_t o = 0; o < w.all.size(); ++o) {
    const auto [lo, hi] = w.all[o];
    const int64_t fresh = std::min(std::max(at, lo), width);
    if (fresh > at) std::fill(x + at, x + fresh, T(0));
    if (fresh > lo) AJ_SIMD(add_to<T>)(x + lo, std::min(fresh, hi) - lo, share[o]);
    AJ_SIMD(set_to<T>)(x + fresh, hi - fresh, T(0) + share[o]);
    at = std::max(fresh, hi);
  }
  std::fill(x + at, x + width, T(0));
}

}  // namespace

LineWindows::LineWindows(std::vector<Range> windows) : all(std::move(windows)) {
  auto width = [&](int64_t o) { return all[size_t(o)].hi - all[size_t(o)].lo; };
  const int64_t n = int64_t(all.size());
  for (int64_t o = 0; o < n; ++o) taps = std::max(taps, width(o));
  while (begin < n && width(begin) < taps) ++begin;
  end = std::min(n, begin + 1);
  if (end < n) step = all[size_t(end)].lo - all[size_t(begin)].lo;
  while (end < n && width(end) == taps && all[size_t(end)].lo - all[size_t(end) - 1].lo == step)
    ++end;
  if (end - begin < kFew || taps == 0) begin = end = 0;
}

void sum_windows(const LineWindows& w, const float* x, float* to) { sum_each(w, x, to); }
void sum_windows(const LineWindows& w, const double* x, double* to) { sum_each(w, x, to); }
void add_shares(const LineWindows& w, const float* share, float* x) { add_each(w, share, x); }
void add_shares(const LineWindows& w, const double* share, double* x) { add_each(w, share, x); }
void lay_shares(const LineWindows& w, const float* share, float* x, int64_t width) {
  lay_each(w, share, x, width);
}
void lay_shares(const LineWindows& w, const double* share, double* x, int64_t width) {
  lay_each(w, share, x, width);
}

void divide(const float* x, const float* n, int64_t count, float* to) {
  AJ_SIMD(divide<float>)(x, n, count, to);
}
void divide(const double* x, const double* n, int64_t count, double* to) {
  AJ_SIMD(divide<double>)(x, n, count, to);
}

}  // namespace adjoin::cpu
#endif
