// plugins/vector/reduce_leaf.cpp: leaves of the reduction tree in vector code.
#include "reduce_leaf.hpp"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/reduce_leaf.cpp"
#include "simd.hpp"
// the functions of each set
#include "lanes.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kLanes = 64, kStrip = 512;

// Each fold: what an element does to a lane, how lanes join.
template <class T>
struct Sum {
  template <class D, class V>
  HWY_INLINE V add(D, V s, V x) const {
    return hn::Add(s, x);
  }
  template <class D, class V>
  HWY_INLINE V join(D, V s, V o) const {
    return hn::Add(s, o);
  }
};
template <class T>
struct Squares : Sum<T> {
  T mean;
  template <class D, class V>
  HWY_INLINE V add(D d, V s, V x) const {
    V c = hn::Sub(x, hn::Set(d, mean));
    return hn::Add(s, hn::Mul(c, c));
  }
};
template <class T>
struct Absolutes : Sum<T> {
  template <class D, class V>
  HWY_INLINE V add(D, V s, V x) const {
    return hn::Add(s, hn::Abs(x));
  }
};
template <class T>
struct Product {
  template <class D, class V>
  HWY_INLINE V add(D, V s, V x) const {
    return hn::Mul(s, x);
  }
  template <class D, class V>
  HWY_INLINE V join(D, V s, V o) const {
    return hn::Mul(s, o);
  }
};
template <class T, bool Max>
struct Extreme {  // a NaN stays
  T none() const {
    return Max ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  }
  template <class D, class V>
  HWY_INLINE V add(D, V s, V x) const {
    return hn::IfThenElse(hn::Or(Max ? hn::Gt(x, s) : hn::Lt(x, s), hn::IsNaN(x)), x, s);
  }
  template <class D, class V>
  HWY_INLINE V join(D d, V s, V o) const {
    return add(d, s, o);
  }
};
template <class T>
constexpr T start(const Product<T>&) {
  return T(1);
}
template <class T>
constexpr T start(const Sum<T>&) {
  return T(0);
}
template <class T, bool Max>
constexpr T start(const Extreme<T, Max>& f) {
  return f.none();
}

// Lane j is joined with lane j + half, for halves down to 1.
template <class D, class F>
HWY_INLINE hn::TFromD<D> fold_lanes(D d, hn::Vec<D> v, F f) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return fold_lanes(half, f.join(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)), f);
  }
}

// Element j goes to lane j mod 64; lanes are folded 32, 16, ..., 1. Lanes that a short last row
// lacks stay. The processor's own fetching ahead does better than requests for it, by a tenth.
// Vectors of 32 bytes at most: wider ones cross a line of the cache at every step where rows begin
// in the middle of one.
// at(d, i, n): the elements from i on, n of them or as many as a vector has.
template <class T, class F, class At>
HWY_INLINE T fold_of(int64_t n, F f, At at) {
  constexpr int64_t L = std::min<int64_t>(HWY_LANES(T), 32 / sizeof(T)), V = kLanes / L;
  const hn::CappedTag<T, size_t(L)> d;
  hn::Vec<decltype(d)> s[V];
  for (int64_t j = 0; j < V; ++j) s[j] = hn::Set(d, start(f));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < V; ++j) s[j] = f.add(d, s[j], at(d, i + j * L, size_t(L)));
#pragma GCC unroll 32
  for (int64_t j = 0; j < V && i < n; ++j, i += L) {
    const size_t left = size_t(n - i);
    const auto next = f.add(d, s[j], at(d, i, left));
    s[j] = left < size_t(L) ? hn::IfThenElse(hn::FirstN(d, left), next, s[j]) : next;
  }
  for (int64_t half = V / 2; half; half /= 2)
    for (int64_t j = 0; j < half; ++j) s[j] = f.join(d, s[j], s[j + half]);
  return fold_lanes(d, s[0], f);
}

template <class T, class F>
T fold(const T* HWY_RESTRICT x, int64_t n, F f) {
  return fold_of<T>(
      n, f, [=](auto d, int64_t i, size_t left) HWY_ATTR { return load_n(d, x + i, left); });
}

template <class T>
T products(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int64_t n) {
  return fold_of<T>(n, Sum<T>(), [=](auto d, int64_t i, size_t left) HWY_ATTR {
    return hn::Mul(load_n(d, x + i, left), load_n(d, y + i, left));
  });
}
template <class T>
T sum(const T* x, int64_t n) {
  return fold(x, n, Sum<T>());
}
template <class T>
T squares(const T* x, int64_t n, T mean) {
  return fold(x, n, Squares<T>{{}, mean});
}
// Sums and squares at once, in half as many lanes, so that both fit into registers.
template <class T>
void moments(const T* HWY_RESTRICT x, int64_t n, T pivot, T* sum, T* squares) {
  constexpr int64_t kEach = 128 / sizeof(T), L = std::min<int64_t>(HWY_LANES(T), 32 / sizeof(T)),
                    V = kEach / L;
  const hn::CappedTag<T, size_t(L)> d;
  const auto p = hn::Set(d, pivot);
  hn::Vec<decltype(d)> s[V], q[V];
  for (int64_t j = 0; j < V; ++j) s[j] = q[j] = hn::Zero(d);
  int64_t i = 0;
  for (; i + kEach <= n; i += kEach)
    for (int64_t j = 0; j < V; ++j) {
      const auto c = hn::Sub(hn::LoadU(d, x + i + j * L), p);
      s[j] = hn::Add(s[j], c);
      q[j] = hn::Add(q[j], hn::Mul(c, c));
    }
#pragma GCC unroll 32
  for (int64_t j = 0; j < V && i < n; ++j, i += L) {
    const size_t left = size_t(n - i);
    auto c = hn::Sub(load_n(d, x + i, left), p);
    if (left < size_t(L)) c = hn::IfThenElseZero(hn::FirstN(d, left), c);
    s[j] = hn::Add(s[j], c);
    q[j] = hn::Add(q[j], hn::Mul(c, c));
  }
  for (int64_t half = V / 2; half; half /= 2)
    for (int64_t j = 0; j < half; ++j)
      s[j] = hn::Add(s[j], s[j + half]), q[j] = hn::Add(q[j], q[j + half]);
  *sum = fold_lanes(d, s[0], Sum<T>());
  *squares = fold_lanes(d, q[0], Sum<T>());
}
template <class T>
double wide_product(const T* HWY_RESTRICT x, int64_t n) {
  if constexpr (sizeof(T) == 8) {
    return fold(x, n, Product<T>());
  } else {
    constexpr int64_t L = std::min<int64_t>(HWY_LANES(double), 4), V = 32 / L;
    const hn::CappedTag<double, size_t(L)> d;
    const hn::Rebind<T, decltype(d)> narrow;
    hn::Vec<decltype(d)> s[V];
    for (int64_t j = 0; j < V; ++j) s[j] = hn::Set(d, 1.0);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
      for (int64_t j = 0; j < V; ++j)
        s[j] = hn::Mul(s[j], hn::PromoteTo(d, hn::LoadU(narrow, x + i + j * L)));
    double rest = 1;
    for (; i < n; ++i) rest *= double(x[i]);
    for (int64_t half = V / 2; half; half /= 2)
      for (int64_t j = 0; j < half; ++j) s[j] = hn::Mul(s[j], s[j + half]);
    return fold_lanes(d, s[0], Product<double>()) * rest;
  }
}
template <class T>
T absolutes(const T* x, int64_t n) {
  return fold(x, n, Absolutes<T>());
}
template <class T>
T product(const T* x, int64_t n) {
  return fold(x, n, Product<T>());
}

// The order does not matter here, so NaN are only noted, and the processor's own maximum serves.
template <bool Max, class T>
T extreme(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T), V = 4;
  T best = Extreme<T, Max>().none();
  bool nan = false;
  int64_t i = 0;
  if (n >= L) {
    auto s0 = hn::LoadU(d, x), s1 = s0, s2 = s0, s3 = s0;
    auto bad = hn::IsNaN(s0);
    auto pick = [](auto s, auto v) HWY_ATTR { return Max ? hn::Max(s, v) : hn::Min(s, v); };
    for (; i + V * L <= n; i += V * L) {
      auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + L), c = hn::LoadU(d, x + i + 2 * L),
           e = hn::LoadU(d, x + i + 3 * L);
      s0 = pick(s0, a), s1 = pick(s1, b), s2 = pick(s2, c), s3 = pick(s3, e);
      bad = hn::Or(bad,
                   hn::Or(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Or(hn::IsNaN(c), hn::IsNaN(e))));
    }
    for (; i + L <= n; i += L) {
      auto a = hn::LoadU(d, x + i);
      s0 = pick(s0, a);
      bad = hn::Or(bad, hn::IsNaN(a));
    }
    s0 = pick(pick(s0, s1), pick(s2, s3));
    if (!hn::AllFalse(d, bad)) return std::numeric_limits<T>::quiet_NaN();
    best = hn::GetLane(Max ? hn::MaxOfLanes(d, s0) : hn::MinOfLanes(d, s0));
  }
  for (; i < n; ++i) {
    nan |= x[i] != x[i];
    best = Max ? std::max(best, x[i]) : std::min(best, x[i]);
  }
  return nan ? std::numeric_limits<T>::quiet_NaN() : best;
}

template <class T, class Same, class SameOne>
int64_t find(const T* HWY_RESTRICT x, int64_t n, Same same, SameOne same_one) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    intptr_t at = hn::FindFirstTrue(d, same(hn::LoadU(d, x + i)));
    if (at >= 0) return i + at;
  }
  while (i < n && !same_one(x[i])) ++i;
  return i;
}

template <bool Max, class T>
int64_t first_extreme(const T* x, int64_t n, T* value) {
  const hn::ScalableTag<T> d;
  if (n > 0 && size_t(n) <= hn::Lanes(d)) {  // of one vector
    const T least = Max ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    const auto v =
        hn::IfThenElse(hn::FirstN(d, size_t(n)), load_n(d, x, size_t(n)), hn::Set(d, least));
    const auto none = hn::IsNaN(v);
    const auto all = Max ? hn::MaxOfLanes(d, v) : hn::MinOfLanes(d, v);
    const intptr_t at = hn::FindFirstTrue(d, hn::AllFalse(d, none) ? hn::Eq(v, all) : none);
    return *value = x[at], at;
  }
  T best = *value = extreme<Max>(x, n);
  if (best != best)
    return find(
        x, n, [](auto v) HWY_ATTR { return hn::IsNaN(v); }, [](T v) { return v != v; });
  auto all = hn::Set(d, best);
  return find(
      x, n, [=](auto v) HWY_ATTR { return hn::Eq(v, all); }, [=](T v) { return v == best; });
}

template <class T>
const T* row(const char* x, int64_t stride, int64_t r) {
  return reinterpret_cast<const T*>(x + r * stride);
}

// Four rows at a time pass through a register; the order of additions is that of the rows.
template <class D, class T, class F>
HWY_INLINE void fold_column(D d, T* s, const T* x0, const T* x1, const T* x2, const T* x3, F f) {
  auto v = f.add(d, hn::LoadU(d, s), hn::LoadU(d, x0));
  v = f.add(d, v, hn::LoadU(d, x1));
  v = f.add(d, v, hn::LoadU(d, x2));
  hn::StoreU(f.add(d, v, hn::LoadU(d, x3)), d, s);
}
template <class T, class F>
HWY_INLINE void fold_rows(T* HWY_RESTRICT s, const char* x, int64_t stride, int64_t rows,
                          int64_t width, F f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t L = HWY_LANES(T);
  std::fill_n(s, width, start(f));
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T *a = row<T>(x, stride, r), *b = row<T>(x, stride, r + 1), *c = row<T>(x, stride, r + 2),
            *e = row<T>(x, stride, r + 3);
    int64_t j = 0;
    for (; j + L <= width; j += L) fold_column(d, s + j, a + j, b + j, c + j, e + j, f);
    for (; j < width; ++j) fold_column(one, s + j, a + j, b + j, c + j, e + j, f);
  }
  for (; r < rows; ++r) {
    const T* a = row<T>(x, stride, r);
    int64_t j = 0;
    for (; j + L <= width; j += L)
      hn::StoreU(f.add(d, hn::LoadU(d, s + j), hn::LoadU(d, a + j)), d, s + j);
    for (; j < width; ++j)
      hn::StoreU(f.add(one, hn::LoadU(one, s + j), hn::LoadU(one, a + j)), one, s + j);
  }
}
template <class F, class T>
void rows_of(T* s, const char* x, int64_t stride, int64_t rows, int64_t width) {
  fold_rows(s, x, stride, rows, width, F{});
}

template <bool Max, class D, class T, class I>
HWY_INLINE void place_column(D d, T* s, I* at, const T* x, I row) {
  const hn::RebindToSigned<D> di;
  auto v = hn::LoadU(d, s), u = hn::LoadU(d, x);
  auto better =
      hn::Or(Max ? hn::Gt(u, v) : hn::Lt(u, v), hn::And(hn::IsNaN(u), hn::Not(hn::IsNaN(v))));
  hn::StoreU(hn::IfThenElse(better, u, v), d, s);
  hn::StoreU(hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, row), hn::LoadU(di, at)), di,
             at);
}
template <bool Max, class T>
void places(T* s, int64_t* place, const char* x, int64_t stride, int64_t rows, int64_t width) {
  using I = hwy::MakeSigned<T>;
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t L = HWY_LANES(T);
  I at[kStrip];
  for (int64_t from = 0; from < width; from += kStrip) {
    int64_t m = std::min(kStrip, width - from);
    std::copy_n(row<T>(x, stride, 0) + from, m, s + from);
    std::fill_n(at, m, I(0));
    for (int64_t r = 1; r < rows; ++r) {
      const T* a = row<T>(x, stride, r) + from;
      int64_t j = 0;
      for (; j + L <= m; j += L) place_column<Max>(d, s + from + j, at + j, a + j, I(r));
      for (; j < m; ++j) place_column<Max>(one, s + from + j, at + j, a + j, I(r));
    }
    for (int64_t j = 0; j < m; ++j) place[from + j] = at[j];
  }
}

template <class D, class T>
HWY_INLINE void moment_columns(D d, T* s, T* q, T* p, const char* x, int64_t stride, int64_t rows,
                               int64_t j) {
  auto pivot = hn::LoadU(d, row<T>(x, stride, 0) + j), sum = hn::Zero(d), square = sum;
  if (rows >= 4) {
    for (int64_t r = 1; r < 4; ++r) pivot = hn::Add(pivot, hn::LoadU(d, row<T>(x, stride, r) + j));
    pivot = hn::Mul(pivot, hn::Set(d, T(0.25)));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const auto c = hn::Sub(hn::LoadU(d, row<T>(x, stride, r) + j), pivot);
    sum = hn::Add(sum, c);
    square = hn::Add(square, hn::Mul(c, c));
  }
  hn::StoreU(sum, d, s + j);
  hn::StoreU(square, d, q + j);
  hn::StoreU(pivot, d, p + j);
}
template <class T>
void moment_rows(T* s, T* q, T* p, const char* x, int64_t stride, int64_t rows, int64_t width) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t L = HWY_LANES(T);
  int64_t j = 0;
  for (; j + L <= width; j += L) moment_columns(d, s, q, p, x, stride, rows, j);
  for (; j < width; ++j) moment_columns(one, s, q, p, x, stride, rows, j);
}

template <class T>
constexpr Leaves<T> kLeaves = {
    &sum<T>,
    &products<T>,
    &squares<T>,
    &moments<T>,
    &absolutes<T>,
    &product<T>,
    &wide_product<T>,
    &extreme<true, T>,
    &extreme<false, T>,
    &first_extreme<true, T>,
    &first_extreme<false, T>,
    &rows_of<Sum<T>, T>,
    &rows_of<Squares<T>, T>,
    &rows_of<Product<T>, T>,
    &rows_of<Extreme<T, true>, T>,
    &rows_of<Extreme<T, false>, T>,
    &places<true, T>,
    &places<false, T>,
    &moment_rows<T>,
};

int64_t whole_sum(const int64_t* x, int64_t n) {
  uint64_t s = 0;
  for (int64_t i = 0; i < n; ++i) s += uint64_t(x[i]);
  return int64_t(s);
}
int64_t whole_largest(const int64_t* x, int64_t n) {
  int64_t s = std::numeric_limits<int64_t>::min();
  for (int64_t i = 0; i < n; ++i) s = x[i] > s ? x[i] : s;
  return s;
}
int64_t whole_least(const int64_t* x, int64_t n) {
  int64_t s = std::numeric_limits<int64_t>::max();
  for (int64_t i = 0; i < n; ++i) s = x[i] < s ? x[i] : s;
  return s;
}
void add_rows(const float* x, int64_t step, int64_t rows, int64_t row_step, int64_t width,
              float* to, int64_t to_step, int64_t n) {
  for (; n-- > 0; x += step, to += to_step) {
    for (int64_t j = 0; j < width; ++j) to[j] = 0 + x[j];
    for (int64_t k = 1; k < rows; ++k)
      for (int64_t j = 0; j < width; ++j) to[j] += x[k * row_step + j];
  }
}

constexpr WholeLeaves kWholeLeaves = {&whole_sum, &whole_largest, &whole_least};

}  // namespace

AJ_CODE(Leaves, leaves, kLeaves)
static const WholeLeaves* whole_leaves() { return &kWholeLeaves; }
static auto add_few() { return &add_rows; }

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

AJ_CHOSEN_CODE(Leaves, leaves)
void add_few(const float* x, int64_t step, int64_t rows, int64_t row_step, int64_t width, float* to,
             int64_t to_step, int64_t n) {
  static const auto chosen = AJ_SIMD(add_few)();
  chosen(x, step, rows, row_step, width, to, to_step, n);
}
const WholeLeaves& whole_leaves() {
  static const WholeLeaves& chosen = *AJ_SIMD(whole_leaves)();
  return chosen;
}

}  // namespace adjoin::cpu
#endif
