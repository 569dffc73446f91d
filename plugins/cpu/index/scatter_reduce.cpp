// plugins/cpu/index/scatter_reduce.cpp: writing at shared places by sum, product, mean or extreme.
// The loops know of an element only its type and how two are joined; all around them is compiled
// once and asks for a loop a part.
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/scalar.hpp>
#include <cstring>
#include <limits>
#include <optional>

#include "index_lines.hpp"
#include "index_rows.hpp"
#include "vector/stored.hpp"
#include "vector/stream.hpp"

#ifndef ADJOIN_PLUGINS_CPU_INDEX_SCATTER_REDUCE_ONCE
#define ADJOIN_PLUGINS_CPU_INDEX_SCATTER_REDUCE_ONCE
namespace adjoin::cpu {
namespace {

struct Sum {
  template <class T>
  static T join(T a, T b) {
    return scalar::Add()(a, b);
  }
};
struct Prod {
  template <class T>
  static T join(T a, T b) {
    return scalar::Mul()(a, b);
  }
};
// A NaN stays, and is rare: what is chosen else is no jump.
template <class T>
T better(T a, T b, bool first) {
  T best = first ? a : b;
  return scalar::is_nan(a) ? a : best;
}
struct Most {
  template <class T>
  static T join(T a, T b) {
    return better(a, b, a > b);
  }
};
struct Least {
  template <class T>
  static T join(T a, T b) {
    return better(a, b, a < b);
  }
};

template <class T, class How>
[[gnu::always_inline]] inline void join_each(void* row, const void* source, int64_t n) {
  T* to = static_cast<T*>(row);
  const T* from = static_cast<const T*>(source);
  for (int64_t j = 0; j < n; ++j) to[j] = How::join(to[j], from[j]);
}

}  // namespace
}  // namespace adjoin::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/index/scatter_reduce.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
template <class T>
struct JoinRow {
  template <class How>
  static void by(void* to, const void* from, int64_t n) {
    join_each<T, How>(to, from, n);
  }
};
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

// What any element joined to it becomes: itself.
template <class How, class T>
T neutral(How) {
  if constexpr (std::is_same_v<How, Prod>)
    return T(1);
  else if constexpr (std::is_same_v<How, Sum>)
    return is_integer<T> ? T(0) : T(-0.0);
  else if constexpr (std::is_floating_point_v<T>)
    return std::is_same_v<How, Most> ? -std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::infinity();
  else
    return std::is_same_v<How, Most> ? std::numeric_limits<T>::lowest()
                                     : std::numeric_limits<T>::max();
}

template <class T, class How>
void join_part(void* named, void* beside, const IndexPart& p) {
  T* to = static_cast<T*>(named);
  const T* from = static_cast<const T*>(beside);
  constexpr bool often = std::is_floating_point_v<T> || std::is_same_v<T, uint64_t>;
  each_of<often>(
      p, [=](int64_t place, int64_t at) { to[place] = How::join(to[place], from[at]); },
      [=](int64_t place) { __builtin_prefetch(to + place, 1); },
      [=](int64_t at) { __builtin_prefetch(from + at); });
}

template <class T>
void fill_part(void* named, void* value, const IndexPart& part) {
  T* to = static_cast<T*>(named);
  const T v = *static_cast<const T*>(value);
  each_of<false>(
      part, [=](int64_t place, int64_t) { to[place] = v; },
      [=](int64_t place) { __builtin_prefetch(to + place, 1); }, [](int64_t) {});
}

void count_part(int32_t* count, const IndexPart& part) {
  each_of<true>(
      part, [=](int64_t place, int64_t) { ++count[place]; },
      [=](int64_t place) { __builtin_prefetch(count + place, 1); }, [](int64_t) {});
}

// Sums become means. No jump depends on a count: which are how large nobody can predict.
template <class T>
void divide_by(void* sums, const int32_t* count, int64_t n) {
  T* to = static_cast<T*>(sums);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      to[i] /= T(std::max(count[i], 1));
    else if (count[i] > 1)
      to[i] = mean_of(to[i], count[i]);
  }
}

// Floats in vectors.
template <class T, class How>
auto join_row() {
  if constexpr (std::is_floating_point_v<T>)
    return AJ_SIMD(JoinRow<T>::template by<How>);
  else
    return &join_each<T, How>;
}

// The loops of a type and a way.
struct Loops {
  const Typed* as;
  PartWork join, fill;
  void (*row)(void* to, const void* from, int64_t n);
  void (*divide)(void* sums, const int32_t* count, int64_t n);
  alignas(16) char neutral[16];
};
// Sums and products of signed integers are those of unsigned ones.
template <class T>
constexpr auto joined_as() {
  if constexpr (is_integer<T> && !std::is_same_v<T, bool>)
    return std::make_unsigned_t<T>();
  else
    return T();
}
template <class T, class How>
Loops loops_of() {
  constexpr bool sized = std::is_same_v<How, Sum> || std::is_same_v<How, Prod>;
  using U = std::conditional_t<sized, decltype(joined_as<T>()), T>;
  const PartWork fill = visit_size(dtype_of<T>, []<class B>() -> PartWork { return fill_part<B>; });
  Loops l = {&typed<T>, join_part<U, How>, fill, join_row<U, How>(), divide_by<T>, {}};
  const T none = neutral<How, T>(How());
  std::memcpy(l.neutral, &none, sizeof none);
  return l;
}
template <class T>
Loops loops_of(std::string_view how) {
  if (how == "prod") return loops_of<T, Prod>();
  if constexpr (!is_complex<T>) {
    if (how == "amax") return loops_of<T, Most>();
    if (how == "amin") return loops_of<T, Least>();
  }
  return loops_of<T, Sum>();
}

// All in bytes, or dense elements of `size` bytes.
struct Joined {
  char *to, *from;
  const char* first;  // what the places hold before; null: they hold it already
  int64_t size, elements;
  bool self, mean;
};

// Rows of an index for which names_rows() is true are joined. Threads own columns.
void join_rows(const Loops& loops, TensorView index, int64_t dim, int64_t limit, const Joined& t,
               int32_t* count) {
  const std::vector<int64_t> rows = named_rows(index, dim, limit);
  int64_t n = int64_t(rows.size()), outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= index.size(d);
  for (int64_t d = dim + 1; d < index.ndim(); ++d) inner *= index.size(d);
  const int64_t width = std::max<int64_t>(256, inner / core().num_threads()), ahead = 4;
  int64_t strips = (inner + width - 1) / width;
  parallel_for(outer * strips, grain_of(n * std::min(inner, width)), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t o = lo / strips, left = lo % strips * width, m = std::min(width, inner - left);
      for (int64_t k = 0; k < n; ++k) {
        int64_t place = (o * limit + rows[k]) * inner + left;
        const char* source = t.from + ((o * n + k) * inner + left) * t.size;
        if (k + ahead < n)
          prefetch_row(t.to + ((o * limit + rows[k + ahead]) * inner + left) * t.size, m * t.size);
        if (count && count[place] == 0)
          std::memcpy(t.to + place * t.size, source, size_t(m * t.size));
        else
          loops.row(t.to + place * t.size, source, m);
        for (int64_t j = 0; count && j < m; ++j) ++count[place + j];
      }
    }
  });
}

// Lines that are the output's are begun, joined and divided one after another, while they lie in
// the cache; their counts are kept for so long only. Others: `count` is of all places.
void join_lines(const Loops& loops, IndexLines& lines, const Joined& t, bool whole,
                int32_t* count) {
  lines.each([&](const IndexPart& p) {
    const int64_t begin = whole ? p.first * lines.size() : 0;
    const int64_t n = whole ? p.lines * lines.size() : 0;
    char* to = t.to + begin * t.size;
    if (whole && t.first) copy_neighbours(to, t.first + begin * t.size, n * t.size);
    if (!t.self && whole) loops.fill(t.to, const_cast<char*>(loops.neutral), p);
    loops.join(t.to, t.from, p);
    if (!t.mean) return;
    if (!whole) return count_part(count, p);
    std::vector<int32_t> own(size_t(n), t.self);
    IndexPart moved = p;
    moved.place -= begin;
    count_part(own.data(), moved);
    loops.divide(to, own.data(), n);
  });
}

void reduce(const Loops& loops, TensorView index, TensorView source, int64_t dim, Span shape,
            MutView out, Joined t) {
  auto begin = [&] {
    if (t.first)
      parallel_for(t.elements, 1 << 16, [&](int64_t lo, int64_t hi) {
        copy_neighbours(t.to + lo * t.size, t.first + lo * t.size, (hi - lo) * t.size);
      });
  };
  if (index.numel() == 0) return begin();
  dim += dim < 0 ? int64_t(shape.size()) : 0;
  std::vector<int32_t> counts;
  auto divide = [&] {
    parallel_for(t.elements, 1 << 16, [&](int64_t lo, int64_t hi) {
      loops.divide(t.to + lo * t.size, counts.data() + lo, hi - lo);
    });
  };
  if (names_rows(index, source.shape(), out.shape(), dim)) {
    begin();
    if (!t.self || t.mean) counts.assign(size_t(t.elements), t.self);
    join_rows(loops, index, dim, shape[size_t(dim)], t, counts.empty() ? nullptr : counts.data());
    if (t.mean) divide();
    return;
  }
  IndexLines lines(index, dim, shape, dense_strides(shape), dense_strides(source.shape()));
  if (lines.whole()) return join_lines(loops, lines, t, true, nullptr);
  begin();
  if (t.mean) counts.assign(size_t(t.elements), t.self);
  // Of lines in several parts, all are filled before the first is joined.
  if (!t.self)
    lines.each([&](const IndexPart& p) { loops.fill(t.to, const_cast<char*>(loops.neutral), p); });
  join_lines(loops, lines, t, false, counts.data());
  if (t.mean) divide();
}

void joined(TensorView x, TensorView index, TensorView source, MutView out, int64_t dim,
            std::string_view how, bool self) {
  const Loops loops = visit_math<all_types>(x.dtype(), [&]<class T>() { return loops_of<T>(how); });
  const Typed& as = *loops.as;
  const bool same = x.get() == out.get();
  DenseAs to(out, as, same), from(source, as, true);
  std::optional<DenseAs> in;
  if (!same) in.emplace(x, as, true);
  const Joined t = {to.bytes(), from.bytes(), same ? nullptr : in->bytes(), as.size, out.numel(),
                    self,       how == "mean"};
  reduce(loops, index, source, dim, x.shape(), out, t);
  to.commit();
}

void scatter_reduce(Args args) {
  joined(args.tensor(0), args.tensor(2), args.tensor(3), args.result(0), args.integer(1),
         args.string(4), args.flag(5));
}

// Rows named by one number each are added to by the threads that own them. False: another case.
template <class T>
bool add_whole_rows(TensorView x, TensorView index, TensorView source, MutView out, int64_t dim) {
  int64_t n = index.ndim();
  if (n < 2 || (dim != 0 && dim != -n) || !out.dense() || !source.dense()) return false;
  if (index.numel() == 0 || !names_rows(index, source.shape(), out.shape(), 0)) return false;
  const std::vector<int64_t> rows = named_rows(index, 0, out.size(0));
  start_from(x, out);
  add_rows(out.data<T>(), 1, out.size(0), index.numel() / index.size(0), source.data<T>(),
           rows.data(), int64_t(rows.size()), T(1), -1, false);
  return true;
}

// Whatever the strides: what is not named is not moved.
void add_in_place(PartWork join, TensorView x, TensorView index, TensorView source, MutView out,
                  int64_t dim) {
  IndexLines lines(index, dim, x.shape(), out.strides(), source.strides());
  start_from(x, out);
  lines.each([&](const IndexPart& p) { join(out.bytes(), const_cast<char*>(source.bytes()), p); },
             false);
}

}  // namespace

void scatter_add(TensorView x, int64_t dim, TensorView index, TensorView source, MutView out) {
  if (x.dtype().code == kDLFloat && x.dtype().bits >= 32) {
    if (x.dtype().bits == 32 ? add_whole_rows<float>(x, index, source, out, dim)
                             : add_whole_rows<double>(x, index, source, out, dim))
      return;
  }
  visit<stored_numeric>(x.dtype(), [&]<class S>() {
    using T = decltype(joined_as<S>());
    // Halves are summed in float32 and rounded once. A tensor's lines of which little is named are
    // not walked.
    if constexpr (!is_half<S>)
      if (!out.dense() || !source.dense() ||
          (x.get() == out.get() && 8 * index.numel() <= out.numel()))
        return add_in_place(join_part<T, Sum>, x, index, source, out, dim);
    joined(x, index, source, out, dim, "sum", true);
  });
}

namespace {

void add(Args args) {
  scatter_add(args.tensor(0), args.integer(1), args.tensor(2), args.tensor(3), args.result(0));
}

}  // namespace

AJ_KERNELS(scatter_reduce_kernels) = {
    {"scatter_add", custom<add>},
    {"scatter_reduce", custom<scatter_reduce>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
