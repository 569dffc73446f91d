// plugins/cpu/index/bag.cpp: sums, means and maxima of a table's rows over bags of indices, and
// inner products of chosen rows, without the rows ever being gathered.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <optional>
#include <vector>

#include "index_rows.hpp"
#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/index/bag.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"
#include "vector/rows-inl.hpp"

#ifndef ADJOIN_PLUGINS_CPU_INDEX_BAG_ONCE
#define ADJOIN_PLUGINS_CPU_INDEX_BAG_ONCE
namespace adjoin::cpu {

// A bag of rows: their indices, their weights (null: all one), the index that does not count.
template <class T>
struct Bag {
  const int64_t* index;
  const T* weight;
  int64_t count, skip;
  const int64_t* end;  // of all indices: rows of the bags behind this one are fetched early
};

// Bags that lie one behind the other: where each begins and the last one ends, in what they hold.
template <class T>
struct Bags {
  Bag<T> all;
  const int64_t* ends;
  Bag<T> operator[](int64_t i) const {
    Bag<T> b = all;
    b.index += ends[i], b.count = ends[i + 1] - ends[i];
    if (b.weight) b.weight += ends[i];
    return b;
  }
};

}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
using Place = hwy::MakeSigned<T>;

// The first n elements of a table's row, wide.
template <class S, class D>
HWY_INLINE hn::Vec<D> columns_of(D d, const S* row, size_t n) {
  if constexpr (sizeof(S) == sizeof(hn::TFromD<D>)) {
    return load_n(d, row, n);
  } else {
    if (n >= hn::Lanes(d)) return load_as(d, row);
    HWY_ALIGN S part[hn::MaxLanes(d)] = {};
    std::copy_n(row, n, part);
    return load_as(d, part);
  }
}

// The first n of a vector's numbers, or all, as R.
template <class R, class D>
HWY_INLINE void store_columns(D d, hn::Vec<D> v, R* to, size_t n) {
  if constexpr (sizeof(R) == sizeof(hn::TFromD<D>)) {
    store_n(v, d, to, n);
  } else {
    if (n >= hn::Lanes(d)) return store_as(d, v, to, false);
    HWY_ALIGN R part[hn::MaxLanes(d)];
    store_as(d, v, part, false);
    std::copy_n(part, n, to);
  }
}

// kVectors vectors of columns of a bag's sum, or of the last n columns.
template <int kVectors, bool kWeighted, class S, class T, class R>
HWY_INLINE void sum_columns(const Bag<T>& b, const S* table, int64_t width, int64_t column,
                            size_t n, bool mean, R* to) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  constexpr int64_t ahead = 12;
  hn::Vec<decltype(d)> sum[kVectors];
  for (auto& s : sum) s = hn::Zero(d);
  int64_t taken = 0;
  for (int64_t k = 0; k < b.count; ++k) {
    if (b.index + k + ahead < b.end) {
      const S* next = table + b.index[k + ahead] * width + column;
      for (size_t at = 0; at < kVectors * lanes; at += 64 / sizeof(S))
        __builtin_prefetch(next + at);
    }
    if (b.index[k] == b.skip) continue;
    const S* row = table + b.index[k] * width + column;
    ++taken;
    const auto by = hn::Set(d, kWeighted ? b.weight[k] : T(1));
    for (int v = 0; v < kVectors; ++v) {
      auto x = kVectors > 1 ? load_as(d, row + v * lanes) : columns_of(d, row, n);
      sum[v] = kWeighted ? hn::MulAdd(by, x, sum[v]) : hn::Add(sum[v], x);
    }
  }
  const auto share = hn::Set(d, T(mean && taken ? taken : 1));
  for (int v = 0; v < kVectors; ++v) {
    auto s = mean ? hn::Div(sum[v], share) : sum[v];
    store_columns(d, s, to + column + v * lanes, kVectors > 1 ? lanes : n);
  }
}

// A few rows of a bag added to its sum; `next`: those that come behind them.
template <int kRows, bool kWeighted, class S, class T>
HWY_INLINE void add_rows(const S* const* rows, const T* weights, const S* const* next,
                         int64_t width, T* to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t c = 0; c < width; c += lanes) {
    if (c * int64_t(sizeof(S)) % 64 == 0)
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(next[r] + c);
    const size_t n = size_t(width - c);
    auto sum = load_n(d, to + c, n);
    for (int r = 0; r < kRows; ++r) {
      auto x = columns_of(d, rows[r] + c, n);
      sum = kWeighted ? hn::MulAdd(hn::Set(d, weights[r]), x, sum) : hn::Add(sum, x);
    }
    store_n(sum, d, to + c, n);
  }
}

// Wide rows are read as a whole, four at a time: in strips, a row is looked up once for each.
template <bool kWeighted, class S, class T>
HWY_INLINE void sum_wide(const Bag<T>& b, const S* table, int64_t width, bool mean, T* to) {
  constexpr int most = 4;
  std::fill_n(to, width, T(0));
  int64_t taken = 0;
  for (int64_t k = 0; k < b.count;) {
    const S *rows[most] = {}, *next[most];
    T weights[most] = {};
    int m = 0;
    for (; k < b.count && m < most; ++k) {
      if (b.index[k] == b.skip) continue;
      rows[m] = table + b.index[k] * width;
      weights[m++] = kWeighted ? b.weight[k] : T(1);
    }
    taken += m;
    for (int r = 0; r < most; ++r)
      next[r] = b.index + k + r < b.end ? table + b.index[k + r] * width : rows[0];
    if (m == most)
      add_rows<most, kWeighted>(rows, weights, next, width, to);
    else
      for (int r = 0; r < m; ++r)
        add_rows<1, kWeighted>(rows + r, weights + r, next + r, width, to);
  }
  if (mean && taken > 1)
    for (int64_t c = 0; c < width; ++c) to[c] /= T(taken);
}

// made: room for the sum of a row.
template <bool kWeighted, class S, class T>
HWY_INLINE void sum_rows(const Bag<T>& b, const S* table, int64_t width, bool mean, T* made,
                         S* to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  int64_t c = 0;
  if (width > 8 * lanes) {
    if constexpr (std::is_same_v<S, T>) return sum_wide<kWeighted>(b, table, width, mean, to);
    sum_wide<kWeighted>(b, table, width, mean, made);
    for (; c < width; c += lanes) {
      const size_t n = size_t(width - c);
      store_columns(d, load_n(d, made + c, n), to + c, n);
    }
    return;
  }
  for (; c + 4 * lanes <= width; c += 4 * lanes)
    sum_columns<4, kWeighted>(b, table, width, c, 0, mean, to);
  for (; c + 2 * lanes <= width; c += 2 * lanes)
    sum_columns<2, kWeighted>(b, table, width, c, 0, mean, to);
  for (; c < width; c += lanes)
    sum_columns<1, kWeighted>(b, table, width, c, size_t(width - c), mean, to);
}

// Of the bags [lo, hi).
template <class S>
void sum_bags(const Bags<Math<S>>& bags, int64_t lo, int64_t hi, const S* table, int64_t width,
              bool mean, Math<S>* made, S* to) {
  auto summed = [&](auto weighted) HWY_ATTR {
    for (; lo < hi; ++lo)
      sum_rows<weighted.value>(bags[lo], table, width, mean, made, to + lo * width);
  };
  bags.all.weight ? summed(std::true_type()) : summed(std::false_type());
}

// The maxima of a bag's columns and the indices they come from: the first of equal ones; a NaN
// stays. -1 and 0 where no row counts.
template <class S>
void max_bag(const Bag<Math<S>>& b, const S* table, int64_t width, Math<S>* to, int64_t* where) {
  using T = Math<S>;
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  HWY_ALIGN Place<T> found[hn::MaxLanes(d)];
  constexpr int64_t ahead = 12;
  for (int64_t c = 0; c < width; c += int64_t(hn::Lanes(d))) {
    const size_t n = size_t(width - c);
    auto top = hn::Zero(d);
    auto from = hn::Set(di, Place<T>(-1));
    for (int64_t k = 0; k < b.count; ++k) {
      if (b.index + k + ahead < b.end) __builtin_prefetch(table + b.index[k + ahead] * width + c);
      if (b.index[k] == b.skip) continue;
      auto x = columns_of(d, table + b.index[k] * width + c, n);
      auto first = hn::RebindMask(d, hn::Lt(from, hn::Zero(di)));
      auto unlike = hn::AndNot(hn::IsNaN(top), hn::Or(hn::Gt(x, top), hn::IsNaN(x)));
      auto take = hn::Or(first, unlike);
      top = hn::IfThenElse(take, x, top);
      from = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, Place<T>(k)), from);
    }
    store_n(top, d, to + c, n);
    hn::Store(from, di, found);
    for (size_t j = 0; j < std::min(n, hn::Lanes(d)); ++j)
      where[size_t(c) + j] = found[j] < 0 ? -1 : b.index[found[j]];
  }
}

template <class S>
Math<S> row_product(const S* a, const S* b, int64_t width) {
  const hn::ScalableTag<Math<S>> d;
  return Math<S>(sum_of(d, size_t(width), [&](size_t i, size_t n) HWY_ATTR {
    return hn::Mul(columns_of(d, a + i, n), columns_of(d, b + i, n));
  }));
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

// Where bags begin, and at last where the last one ends.
std::vector<int64_t> ends_of(Args args) {
  TensorView indices = args.tensor(1);
  std::vector<int64_t> ends;
  if (indices.ndim() == 2) {
    ends.reserve(size_t(indices.size(0)) + 1);
    for (int64_t i = 0; i <= indices.size(0); ++i) ends.push_back(i * indices.size(1));
    return ends;
  }
  TensorView offsets = args.tensor(3);  // there for indices of one dimension only
  Dense<int64_t> at(offsets);
  ends.assign(at.data(), at.data() + offsets.numel());
  if (!args.flag(5) || ends.empty()) ends.push_back(indices.numel());
  bool rise = ends.front() == 0 && ends.back() == indices.numel();
  for (size_t i = 1; i < ends.size(); ++i) rise &= ends[i - 1] <= ends[i];
  if (!rise)
    raise(AJ_INVALID_ARGUMENT, "offsets must rise from 0 to the number of indices, ",
          indices.numel());
  return ends;
}

void bag_sums(Args args) {
  TensorView weight = args.tensor(0), indices = args.tensor(1);
  MutView out = args.result(0), places = args.result(1);
  const std::string_view mode = args.string(4);
  const bool largest_wanted = mode == "max", mean = mode == "mean";
  const int64_t width = weight.size(1);
  const std::vector<int64_t> ends = ends_of(args);
  Dense<int64_t> index(indices), where(places);
  check_indices(index.data(), indices.numel(), weight.size(0), 0);
  visit<stored_floating>(weight.dtype(), [&]<class S>() {
    using T = Math<S>;
    // Maxima of halves become halves a few bags at a time where they can, sums one by one.
    const bool by_rows = !std::is_same_v<S, T> && out.dense() && largest_wanted;
    const int64_t most = by_rows ? std::max<int64_t>(1, 4096 / std::max<int64_t>(width, 1)) : 1;
    std::optional<Dense<T>> tops;
    std::optional<Dense<S>> sums;
    if (!largest_wanted)
      sums.emplace(out);
    else if (!by_rows)
      tops.emplace(out);
    Dense<S> table(weight);
    std::optional<Dense<T>> by;
    if (!args.none(2)) by.emplace(args.tensor(2));
    const auto largest = AJ_SIMD(max_bag<S>);
    const auto sum = AJ_SIMD(sum_bags<S>);
    const Bags<T> bags = {{index.data(), by ? by->data() : nullptr, 0, args.integer(6),
                           index.data() + indices.numel()},
                          ends.data()};
    const int64_t work = width * indices.numel() / std::max<int64_t>(1, int64_t(ends.size()) - 1);
    parallel_for(int64_t(ends.size()) - 1, grain_of(work), [&](int64_t lo, int64_t hi) {
      std::vector<T> rows(std::is_same_v<S, T> ? 0 : size_t(most * width));
      if (sums) return sum(bags, lo, hi, table.data(), width, mean, rows.data(), sums->data());
      for (int64_t m; lo < hi; lo += m) {
        m = std::min(most, hi - lo);
        T* made = by_rows ? rows.data() : tops->data() + lo * width;
        for (int64_t i = 0; i < m; ++i)
          largest(bags[lo + i], table.data(), width, made + i * width,
                  where.data() + (lo + i) * width);
        if (by_rows)
          Convert<T>::store(out.bytes() + lo * width * int64_t(sizeof(S)), out.dtype(), sizeof(S),
                            made, m * width);
      }
    });
    if (sums) sums->commit();
    if (tops) tops->commit();
  });
  where.commit();
}

void row_products(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(2);
  Dense<int64_t> i(args.tensor(1)), j(args.tensor(3));
  const int64_t n = args.tensor(1).numel(), width = a.size(1);
  check_indices(i.data(), n, a.size(0), 0);
  check_indices(j.data(), n, b.size(0), 0);
  visit<stored_floating>(a.dtype(), [&]<class S>() {
    Dense<S> left(a), right(b), out(args.result(0));
    const auto product = AJ_SIMD(row_product<S>);
    constexpr int64_t ahead = 8;
    parallel_for(n, grain_of(width), [&](int64_t lo, int64_t hi) {
      for (int64_t k = lo; k < hi; ++k) {
        if (k + ahead < hi) __builtin_prefetch(right.data() + j.data()[k + ahead] * width);
        const S *x = left.data() + i.data()[k] * width, *y = right.data() + j.data()[k] * width;
        out.data()[k] = S(product(x, y, width));
      }
    });
    out.commit();
  });
}

}  // namespace

AJ_KERNELS(bag_kernels) = {
    {"_::bag_sums", custom<bag_sums, stored_floating>},
    {"_::row_products", custom<row_products, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
