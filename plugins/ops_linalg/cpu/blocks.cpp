// plugins/ops_linalg/cpu/blocks.cpp: triangles and panels that the first cache holds, as vector
// code.
#include "ops_linalg/cpu/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops_linalg/cpu/stacks.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_linalg/cpu/blocks.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
#include "ops_linalg/cpu/stacks-inl.hpp"
#include "vector/lanes.hpp"
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using lanes::kLanes;
using lanes::Tag;
using lanes::Vec;

// The first of the numbers whose size is largest; NaN is no size, but where it comes first.
template <class T>
HWY_INLINE int64_t largest(const T* x, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  auto most = hn::Zero(d);
  for (int64_t i = 0; i < n; i += L) {
    const auto size = hn::Abs(load_n(d, x + i, size_t(std::min(L, n - i))));
    most = hn::IfThenElse(hn::Gt(size, most), size, most);
  }
  const T top = hn::GetLane(hn::MaxOfLanes(d, most));
  if (!(std::fabs(x[0]) < top)) return 0;
  const auto wanted = hn::Set(d, top);
  for (int64_t i = 0; i < n; i += L) {
    const auto size = hn::Abs(load_n(d, x + i, size_t(std::min(L, n - i))));
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(size, wanted));
    if (at >= 0) return i + at;
  }
  return 0;
}

template <class T>
int32_t panel(T* a, int64_t ld, int64_t m, int64_t n, int32_t* pivots) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* l = a + j * ld;
    const int64_t best = j + largest(l + j, m - j);
    pivots[j] = int32_t(best);
    for (int64_t k = 0; best != j && k < n; ++k) std::swap(a[j + k * ld], a[best + k * ld]);
    const T pivot = l[j];
    if (pivot == T(0)) {
      if (!info) info = int32_t(j + 1);
      continue;
    }
    const T inverse = T(1) / pivot;
    if (std::isnormal(inverse) && std::isnormal(pivot))
      for (int64_t i = j + 1; i < m; i += L) {
        const size_t some = size_t(std::min(L, m - i));
        store_n(hn::Mul(load_n(d, l + i, some), hn::Set(d, inverse)), d, l + i, some);
      }
    else
      for (int64_t i = j + 1; i < m; ++i) l[i] /= pivot;
    int64_t k = j + 1;
    for (; k + 3 < n; k += 4) {
      T *p = a + k * ld, *q = p + ld, *r = q + ld, *s = r + ld;
      const auto u = hn::Set(d, p[j]), v = hn::Set(d, q[j]), w = hn::Set(d, r[j]),
                 z = hn::Set(d, s[j]);
      for (int64_t i = j + 1; i < m; i += L) {
        const size_t some = size_t(std::min(L, m - i));
        const auto x = load_n(d, l + i, some);
        store_n(hn::NegMulAdd(x, u, load_n(d, p + i, some)), d, p + i, some);
        store_n(hn::NegMulAdd(x, v, load_n(d, q + i, some)), d, q + i, some);
        store_n(hn::NegMulAdd(x, w, load_n(d, r + i, some)), d, r + i, some);
        store_n(hn::NegMulAdd(x, z, load_n(d, s + i, some)), d, s + i, some);
      }
    }
    for (; k < n; ++k) {
      T* p = a + k * ld;
      const auto u = hn::Set(d, p[j]);
      for (int64_t i = j + 1; i < m; i += L) {
        const size_t some = size_t(std::min(L, m - i));
        store_n(hn::NegMulAdd(load_n(d, l + i, some), u, load_n(d, p + i, some)), d, p + i, some);
      }
    }
  }
  return info;
}

// One divided by the diagonal's numbers; false: some quotient must be divided out.
template <class T>
HWY_INLINE bool inverses(const T* a, int64_t step, int64_t n, bool unit, T* to) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) {
    to[i] = unit ? T(1) : T(1) / a[i * step];
    good &= std::isnormal(to[i]) && (unit || std::isnormal(a[i * step]));
  }
  return good;
}

// The right sides of a group stand in lanes.
template <class T>
void left(const T* a, int64_t row, int64_t column, bool upper, bool unit, T* b, int64_t ld,
          int64_t n, int64_t m) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  HWY_ALIGN T w[blocks::kTriangle * kLanes<T>];
  T inverse[blocks::kTriangle];
  const bool multiply = inverses(a, row + column, n, unit, inverse);
  for (int64_t c = 0; c < m; c += L) {
    const lanes::Lying<const T> from{b, 1, 0, ld};
    lanes::read<T>(from, c, m, n, 1, w, 1);
    for (int64_t at = 0; at < n; at += 4) {  // four rows share what is behind them
      const int64_t count = std::min<int64_t>(4, n - at);
      auto place = [&](int64_t r) { return upper ? n - 1 - at - r : at + r; };
      Vec<T> x[4];
      for (int64_t r = 0; r < 4; ++r) x[r] = hn::Load(d, w + place(std::min(r, count - 1)) * L);
      for (int64_t k = 0; k < at; ++k) {
        const int64_t j = upper ? n - 1 - k : k;
        const auto y = hn::Load(d, w + j * L);
#pragma GCC unroll 4
        for (int64_t r = 0; r < 4; ++r)
          x[r] = hn::NegMulAdd(hn::Set(d, a[place(std::min(r, count - 1)) * row + j * column]), y,
                               x[r]);
      }
      for (int64_t r = 0; r < count; ++r) {
        const int64_t i = place(r);
        for (int64_t s = 0; s < r; ++s)
          x[r] = hn::NegMulAdd(hn::Set(d, a[i * row + place(s) * column]), x[s], x[r]);
        if (!unit)
          x[r] = multiply ? hn::Mul(x[r], hn::Set(d, inverse[i]))
                          : hn::Div(x[r], hn::Set(d, a[i * (row + column)]));
        hn::Store(x[r], d, w + i * L);
      }
    }
    lanes::write<T>({b, 1, 0, ld}, c, m, n, 1, w, 1);
  }
}

// Rows of B stand in lanes, four vectors of them at once.
template <int wide, class T>
HWY_INLINE void right_rows(const T* a, int64_t row, int64_t column, bool upper, bool unit,
                           bool multiply, const T* inverse, T* b, int64_t ld, size_t some,
                           int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  for (int64_t at = 0; at < n; ++at) {
    const int64_t j = upper ? at : n - 1 - at;
    Vec<T> x[wide];
#pragma GCC unroll 4
    for (int v = 0; v < wide; ++v) x[v] = load_n(d, b + j * ld + v * L, some);
    for (int64_t before = 0; before < at; ++before) {
      const int64_t k = upper ? before : n - 1 - before;
      const auto y = hn::Set(d, a[k * row + j * column]);
#pragma GCC unroll 4
      for (int v = 0; v < wide; ++v)
        x[v] = hn::NegMulAdd(load_n(d, b + k * ld + v * L, some), y, x[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < wide; ++v) {
      if (!unit)
        x[v] = multiply ? hn::Mul(x[v], hn::Set(d, inverse[j]))
                        : hn::Div(x[v], hn::Set(d, a[j * (row + column)]));
      store_n(x[v], d, b + j * ld + v * L, some);
    }
  }
}

template <class T>
void right(const T* a, int64_t row, int64_t column, bool upper, bool unit, T* b, int64_t ld,
           int64_t m, int64_t n) {
  constexpr int64_t L = kLanes<T>;
  T inverse[blocks::kTriangle];
  const bool multiply = inverses(a, row + column, n, unit, inverse);
  int64_t i = 0;
  for (; i + 4 * L <= m; i += 4 * L)
    right_rows<4>(a, row, column, upper, unit, multiply, inverse, b + i, ld, size_t(L), n);
  for (; i < m; i += L)
    right_rows<1>(a, row, column, upper, unit, multiply, inverse, b + i, ld,
                  size_t(std::min(L, m - i)), n);
}

template <class T>
constexpr blocks::Code<T> kCode = {&panel<T>, &left<T>, &right<T>};

}  // namespace

AJ_CODE(blocks::Code, code, kCode)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu::blocks {
AJ_CHOSEN_CODE(Code, code)
}  // namespace adjoin::cpu::blocks
#endif
