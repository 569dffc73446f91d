// plugins/cpu/image/max_pool_rows.cpp: maxima of windows: first of each column over the rows of a
// window, then over columns.
#include "max_pool_rows.hpp"

#include <adjoin/kit/scalar.hpp>
#include <limits>

#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/image/max_pool_rows.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
using Place = hwy::MakeSigned<T>;

// The maxima of each column over some rows, given by where they begin, and their places. Says if a
// NaN is among them.
template <class T>
bool max_of_columns(const T* x, size_t width, const int64_t* rows, size_t count, T* best,
                    Place<T>* place) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  auto unordered = hn::FirstN(d, 0);
  for (size_t w = 0; w < width; w += lanes) {
    auto top = load_n(d, x + rows[0] + w, width - w);
    auto row = hn::Set(di, Place<T>(rows[0]));
    unordered = hn::Or(unordered, hn::IsNaN(top));
    for (size_t r = 1; r < count; ++r) {
      auto v = load_n(d, x + rows[r] + w, width - w);
      auto take = hn::Gt(v, top);
      unordered = hn::Or(unordered, hn::IsNaN(v));
      top = hn::IfThenElse(take, v, top);
      row = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, Place<T>(rows[r])), row);
    }
    store_n(top, d, best + w, width - w);
    store_n(hn::Add(row, hn::Iota(di, Place<T>(w))), di, place + w, width - w);
  }
  return !hn::AllFalse(d, unordered);
}

// Joins columns to windows that follow a rule; best and place begin with the left padding. kStride
// 0: any.
template <class T, int kStride>
void max_of_windows(const T* best, const Place<T>* place, size_t outputs,
                    const kit::WindowRule& rule, T* to, Place<T>* at) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, Place<T>(rule.stride)));
  for (size_t o = 0; o < outputs; o += hn::Lanes(d)) {
    hn::Vec<decltype(d)> top, v, skipped;
    hn::Vec<decltype(di)> where, i, unused;
    for (size_t k = 0; k < size_t(rule.kernel); ++k) {
      const size_t tap = o * size_t(rule.stride) + k * size_t(rule.dilation);
      if constexpr (kStride == 1) {
        v = hn::LoadU(d, best + tap);
        i = hn::LoadU(di, place + tap);
      } else if constexpr (kStride == 2) {
        hn::LoadInterleaved2(d, best + tap, v, skipped);
        hn::LoadInterleaved2(di, place + tap, i, unused);
      } else {
        v = hn::GatherIndex(d, best + tap, places);
        i = hn::GatherIndex(di, place + tap, places);
      }
      if (k == 0) {
        top = v, where = i;
        continue;
      }
      auto equal = hn::And(hn::RebindMask(di, hn::Eq(v, top)), hn::Lt(i, where));
      auto take = hn::Or(hn::RebindMask(di, hn::Gt(v, top)), equal);
      top = hn::IfThenElse(hn::RebindMask(d, take), v, top);
      where = hn::IfThenElse(take, i, where);
    }
    store_n(top, d, to + o, outputs - o);
    store_n(where, di, at + o, outputs - o);
  }
}

// Windows of any width of a single row. Says if a NaN is among them.
template <class T>
bool max_of_line(const T* row, Place<T> first, const kit::WindowList& list, T* to, Place<T>* at) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  const auto far = hn::Set(di, std::numeric_limits<Place<T>>::max());
  auto unordered = hn::FirstN(d, 0);
  for (size_t o = 0; o < list.low.size(); ++o) {
    const size_t low = size_t(list.low[o]), count = size_t(list.count[o]);
    auto top = hn::Set(d, -std::numeric_limits<T>::infinity());
    auto where = far, i = hn::Iota(di, Place<T>(size_t(first) + low));
    for (size_t k = 0; k < count; k += lanes, i = hn::Add(i, hn::Set(di, Place<T>(lanes)))) {
      auto v = load_n(d, row + low + k, count - k);
      auto take =
          hn::Or(hn::Gt(v, top), hn::And(hn::Eq(v, top), hn::RebindMask(d, hn::Eq(where, far))));
      if (count - k < lanes) take = hn::And(take, hn::FirstN(d, count - k));
      unordered = hn::Or(unordered, hn::IsNaN(v));
      top = hn::IfThenElse(take, v, top);
      where = hn::IfThenElse(hn::RebindMask(di, take), i, where);
    }
    const auto most = hn::MaxOfLanes(d, top);
    where = hn::IfThenElse(hn::RebindMask(di, hn::Eq(top, most)), where, far);
    to[o] = hn::GetLane(most);
    at[o] = hn::GetLane(hn::MinOfLanes(di, where));
  }
  return !hn::AllFalse(d, unordered);
}

// Joins columns to windows of any width.
template <class T>
void max_of_ranges(const T* best, const Place<T>* place, const kit::WindowList& list, T* to,
                   Place<T>* at) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto far = hn::Set(di, std::numeric_limits<Place<T>>::max());
  for (size_t o = 0; o < list.low.size(); ++o) {
    const size_t low = size_t(list.low[o]), count = size_t(list.count[o]);
    auto top = least;
    auto where = far;
    for (size_t k = 0; k < count; k += lanes) {
      auto inside = hn::FirstN(d, HWY_MIN(lanes, count - k));
      auto v = hn::IfThenElse(inside, hn::LoadU(d, best + low + k), least);
      auto i = hn::IfThenElse(hn::RebindMask(di, inside), hn::LoadU(di, place + low + k), far);
      auto equal = hn::And(hn::RebindMask(di, hn::Eq(v, top)), hn::Lt(i, where));
      auto take = hn::Or(hn::RebindMask(di, hn::Gt(v, top)), equal);
      top = hn::IfThenElse(hn::RebindMask(d, take), v, top);
      where = hn::IfThenElse(take, i, where);
    }
    const auto most = hn::MaxOfLanes(d, top);
    where = hn::IfThenElse(hn::RebindMask(di, hn::Eq(top, most)), where, far);
    to[o] = hn::GetLane(most);
    at[o] = hn::GetLane(hn::MinOfLanes(di, where));
  }
}

template <class T>
void widen(const Place<T>* from, size_t n, int64_t* to) {
  if constexpr (sizeof(T) == 8) {
    std::copy_n(from, n, to);
  } else {
    const hn::ScalableTag<int64_t> d;
    const hn::Rebind<int32_t, decltype(d)> half;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, from + i)), d, to + i);
    for (; i < n; ++i) to[i] = from[i];
  }
}

// One row of windows; false: a NaN is among them.
template <class T>
bool max_of_row(const MaxWindows& w, const T* x, const int64_t* rows, size_t count, T* best,
                Place<T>* place, Place<T>* found, T* to, int64_t* at) {
  const size_t pad = w.even ? size_t(w.rule.padding) : 0, outputs = size_t(w.out(2));
  if (count == 1 && !w.even) {
    if (max_of_line(x + rows[0], Place<T>(rows[0]), w.list[2], to, found)) return false;
    widen<T>(found, outputs, at);
    return true;
  }
  if (max_of_columns(x, size_t(w.in[2]), rows, count, best + pad, place + pad)) return false;
  if (!w.even)
    max_of_ranges(best, place, w.list[2], to, found);
  else if (w.rule.stride == 1)
    max_of_windows<T, 1>(best, place, outputs, w.rule, to, found);
  else if (w.rule.stride == 2)
    max_of_windows<T, 2>(best, place, outputs, w.rule, to, found);
  else
    max_of_windows<T, 0>(best, place, outputs, w.rule, to, found);
  widen<T>(found, outputs, at);
  return true;
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

constexpr int64_t kSlack = 64;  // elements that a vector may read behind a line

// Window by window: of row (i, j) of windows.
template <class T>
void max_plainly(const MaxWindows& w, const T* x, size_t i, size_t j, T* to, int64_t* at) {
  for (size_t k = 0; k < w.list[2].low.size(); ++k) {
    int64_t first = (w.list[0].low[i] * w.in[1] + w.list[1].low[j]) * w.in[2] + w.list[2].low[k];
    int64_t found = -1;
    T top = kLeast<T>;
    for (int64_t a = 0; a < w.list[0].count[i]; ++a)
      for (int64_t b = 0; b < w.list[1].count[j]; ++b) {
        int64_t p = first + (a * w.list[0].step * w.in[1] + b * w.list[1].step) * w.in[2];
        for (int64_t c = 0; c < w.list[2].count[k]; ++c, p += w.list[2].step)
          if (found < 0 || x[p] > top || scalar::is_nan(x[p])) top = x[p], found = p;
      }
    to[k] = top;
    at[k] = found;
  }
}

// Every window holds a place, and places and lines fit.
bool regular(const MaxWindows& w) {
  for (const kit::WindowList& list : w.list)
    for (int64_t count : list.count)
      if (count < 1) return false;
  const kit::WindowRule& r = w.rule;
  return w.places() < 1 << 30 &&
         (!w.even || double(w.out(2)) * double(r.stride) + double(r.kernel) * double(r.dilation) +
                             double(r.padding) <
                         1 << 28);
}

}  // namespace

template <class T>
void max_of_volumes(const MaxWindows& w, const T* x, int64_t count, T* best, int64_t* at) {
  const size_t rows_out = size_t(w.out(1)), row = size_t(w.out(2));
  bool vectors = std::is_floating_point_v<T> && regular(w);
  using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  size_t line = 0;
  if (vectors) {
    line = size_t(w.in[2] + 2 * kSlack);
    if (w.even)
      line = std::max(
          line, size_t((w.out(2) + kSlack) * w.rule.stride + w.rule.kernel * w.rule.dilation) +
                    size_t(w.rule.padding + w.in[2] + kSlack));
  }
  std::vector<T> columns(line, std::numeric_limits<T>::lowest());
  if constexpr (std::is_floating_point_v<T>)
    std::fill(columns.begin(), columns.end(), -std::numeric_limits<T>::infinity());
  std::vector<Int> places(line, std::numeric_limits<Int>::max()),
      found(vectors ? row + size_t(kSlack) : 0);
  std::vector<int64_t> rows;
  for (; count-- > 0; x += w.places())
    for (size_t i = 0; i < w.list[0].low.size(); ++i)
      for (size_t j = 0; j < rows_out; ++j, best += row, at += row) {
        if constexpr (std::is_floating_point_v<T>) {
          if (vectors) {
            rows.clear();
            for (int64_t a = 0; a < w.list[0].count[i]; ++a)
              for (int64_t b = 0; b < w.list[1].count[j]; ++b)
                rows.push_back(((w.list[0].low[i] + a * w.list[0].step) * w.in[1] +
                                w.list[1].low[j] + b * w.list[1].step) *
                               w.in[2]);
            if (AJ_SIMD(max_of_row<T>)(w, x, rows.data(), rows.size(), columns.data(),
                                       places.data(), found.data(), best, at))
              continue;
          }
        }
        max_plainly(w, x, i, j, best, at);
      }
}

#define AJ_MAX(T) \
  template void max_of_volumes<T>(const MaxWindows&, const T*, int64_t, T*, int64_t*);
AJ_MAX(float)
AJ_MAX(double)
AJ_MAX(int8_t)
AJ_MAX(int16_t)
AJ_MAX(int32_t)
AJ_MAX(int64_t)
AJ_MAX(uint8_t)
AJ_MAX(uint16_t)
AJ_MAX(uint32_t)
AJ_MAX(uint64_t)
#undef AJ_MAX

}  // namespace adjoin::cpu
#endif
