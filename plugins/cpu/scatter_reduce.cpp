// plugins/cpu/scatter_reduce.cpp: writing at shared places by sum, product, mean or extreme. Lines
// along the dimension are independent, so each belongs to one thread.
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <optional>

#include "clones.hpp"
#include "line_starts.hpp"
#include "tables.hpp"

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

template <class How, class T>
[[gnu::always_inline]] inline void join_each(T* to, const T* from, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] = How::join(to[j], from[j]);
}
AJ_CLONES void join_row(Sum, float* to, const float* from, int64_t n) {
  join_each<Sum>(to, from, n);
}
AJ_CLONES void join_row(Sum, double* to, const double* from, int64_t n) {
  join_each<Sum>(to, from, n);
}
AJ_CLONES void join_row(Prod, float* to, const float* from, int64_t n) {
  join_each<Prod>(to, from, n);
}
AJ_CLONES void join_row(Prod, double* to, const double* from, int64_t n) {
  join_each<Prod>(to, from, n);
}
AJ_CLONES void join_row(Most, float* to, const float* from, int64_t n) {
  join_each<Most>(to, from, n);
}
AJ_CLONES void join_row(Most, double* to, const double* from, int64_t n) {
  join_each<Most>(to, from, n);
}
AJ_CLONES void join_row(Least, float* to, const float* from, int64_t n) {
  join_each<Least>(to, from, n);
}
AJ_CLONES void join_row(Least, double* to, const double* from, int64_t n) {
  join_each<Least>(to, from, n);
}
template <class How, class T>
void join_row(How, T* to, const T* from, int64_t n) {
  join_each<How>(to, from, n);
}

// The lines of the index along dim, in the index, the output and the source, all of them dense.
struct LinesOf {
  LinesOf(TensorView index, Span shape, Span source, int64_t along)
      : dim(index.ndim() ? along : 0) {
    if (index.ndim() == 0) return;
    std::vector<int64_t> own = dense_strides(index.shape()), to = dense_strides(shape),
                         from = dense_strides(source);
    length = index.size(dim), step = own[dim], to_step = to[dim], from_step = from[dim];
    limit = shape[dim];
    run = dim == index.ndim() - 1 ? 1 : index.size(-1);
    for (int64_t d = 0; d < index.ndim(); ++d)
      if (d != dim) starts.add(index.size(d), {own[d], to[d], from[d]});
    int64_t all = 1;
    for (int64_t n : shape) all *= n;
    whole = step * to_step * from_step == 1 && starts.count() * limit == all;
  }
  LineStarts starts;
  int64_t dim, length = 1, limit = 1, step = 1, to_step = 1, from_step = 1;
  int64_t run = 1;     // so many lines begin beside each other
  bool whole = false;  // each fills a line of the output, in order
};

// `count`: how many elements a place holds so far; the first one replaces what is there when the
// input is left out.
template <class How, bool kCounts, class T>
void join_at(T* to, int32_t* count, int64_t place, T x) {
  to[place] = !kCounts || count[place]++ ? How::join(to[place], x) : x;
}

// Sums become means. No jump depends on a count: which are how large nobody can predict.
template <class T>
void divide_by(T* to, const int32_t* count, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      to[i] /= T(std::max(count[i], 1));
    else if (count[i] > 1)
      to[i] = mean_of(to[i], count[i]);
  }
}

// What the places begin with and become in the end. Lines that are whole are begun, joined and
// ended one after another, while they lie in the cache; their counts are kept for so long only.
template <class T>
struct Places {
  T* to;
  const T* first;  // what they hold before; null: they hold it already
  int32_t* count;  // null: none, or those of whole lines
  bool self, mean;
};

// Lines of neighbours one after another; others side by side, so that memory is read as it lies.
template <class How, bool kCounts, class T>
void write(const LinesOf& l, const int64_t* index, const Places<T>& places, const T* from) {
  int64_t grain = std::max(grain_of(l.length * 4), std::min<int64_t>(l.run, 128));
  T* to = places.to;
  parallel_for(l.starts.count(), grain, [&](int64_t lo, int64_t hi) {
    if (l.step * l.to_step * l.from_step == 1) {
      const int64_t group = std::max<int64_t>(1, 2048 / std::max(l.length, l.limit));
      std::vector<int32_t> own(size_t(kCounts && l.whole ? group * l.limit : 0));
      LineStarts::Cursor cursor(l.starts, lo);
      for (int64_t m; lo < hi; lo += m) {
        m = std::min(group, hi - lo);
        const int64_t *at = index + lo * l.length, begin = lo * l.limit, n = m * l.limit;
        check_indices(at, m * l.length, l.limit, l.dim);
        if (l.whole && places.first) std::copy_n(places.first + begin, n, to + begin);
        if (l.whole) std::fill_n(own.data(), own.size(), int32_t(places.self));
        int32_t* counts = l.whole ? own.data() : places.count;
        for (int64_t line = 0; line < m; ++line, at += l.length, cursor.next()) {
          T* target = to + (*cursor).to;
          const T* source = from + (*cursor).other;
          int32_t* count = kCounts ? counts + ((*cursor).to - (l.whole ? begin : 0)) : nullptr;
          for (int64_t k = 0, length = l.length; k < length; ++k)
            join_at<How, kCounts>(target, count, at[k], source[k]);
        }
        if (kCounts && l.whole && places.mean) divide_by(to + begin, own.data(), n);
      }
      return;
    }
    for (int64_t end; lo < hi; lo = end) {
      end = std::min(hi, (lo / l.run + 1) * l.run);
      const LineStart b = *LineStarts::Cursor(l.starts, lo);
      for (int64_t k = 0; k < l.length; ++k) {
        const int64_t* at = index + b.own + k * l.step;
        const T* source = from + b.other + k * l.from_step;
        check_indices(at, end - lo, l.limit, l.dim);
        for (int64_t j = 0; j < end - lo; ++j)
          join_at<How, kCounts>(to, places.count, b.to + j + at[j] * l.to_step, source[j]);
      }
    }
  });
}

// An index that says the same for all elements of a row, as one expanded from a vector does, joins
// rows. Threads own columns.
template <class How, class T>
void join_rows(TensorView index, int64_t dim, int64_t size, T* to, const T* from, int32_t* count) {
  std::vector<int64_t> rows(size_t(index.size(dim)));
  int64_t n = int64_t(rows.size()), outer = 1, inner = 1;
  for (int64_t k = 0; k < n; ++k) rows[k] = index.data<int64_t>()[k * index.stride(dim)];
  check_indices(rows.data(), n, size, dim);
  for (int64_t d = 0; d < dim; ++d) outer *= index.size(d);
  for (int64_t d = dim + 1; d < index.ndim(); ++d) inner *= index.size(d);
  const int64_t width = std::max<int64_t>(256, inner / core().num_threads()), ahead = 4;
  int64_t strips = (inner + width - 1) / width;
  parallel_for(outer * strips, grain_of(n * std::min(inner, width)), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t o = lo / strips, left = lo % strips * width, m = std::min(width, inner - left);
      for (int64_t k = 0; k < n; ++k) {
        int64_t place = (o * size + rows[k]) * inner + left;
        const T* source = from + (o * n + k) * inner + left;
        if (k + ahead < n) {
          const T* next = to + (o * size + rows[k + ahead]) * inner + left;
          for (int64_t j = 0; j < std::min<int64_t>(m, 128); j += 16)
            __builtin_prefetch(next + j, 1);
        }
        if (count && count[place] == 0)
          std::copy_n(source, m, to + place);
        else
          join_row(How(), to + place, source, m);
        for (int64_t j = 0; count && j < m; ++j) ++count[place + j];
      }
    }
  });
}

// Is it such an index, of the source's whole shape, whose rows are the output's?
bool names_rows(TensorView index, TensorView source, TensorView out, int64_t dim) {
  int64_t inner = 1;
  if (index.ndim() < 2 || !std::ranges::equal(index.shape(), source.shape())) return false;
  for (int64_t d = 0; d < index.ndim(); ++d) {
    if (d == dim) continue;
    if (index.size(d) != out.size(d) || (index.size(d) > 1 && index.stride(d) != 0)) return false;
    if (d > dim) inner *= index.size(d);
  }
  return inner >= 8;
}

void scatter_reduce(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2), src = args.tensor(3);
  MutView out = args.result(0);
  std::string_view how = args.string(4);
  bool self = args.flag(5);
  visit<stored>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> to(out, true);
    std::optional<Dense<T>> in;
    if (x.get() != out.get()) in.emplace(x);
    auto begin = [&] {
      if (in)
        parallel_for(out.numel(), 1 << 16, [&](int64_t lo, int64_t hi) {
          std::copy_n(in->data() + lo, hi - lo, to.data() + lo);
        });
    };
    if (index.numel()) {
      int64_t dim = args.integer(1) + (args.integer(1) < 0 ? x.ndim() : 0);
      Dense<T> from(src);
      const bool rows = names_rows(index, src, out, dim), mean = how == "mean",
                 counted = !self || mean;
      std::optional<Dense<int64_t>> named;
      std::optional<LinesOf> lines;
      if (!rows) named.emplace(index), lines.emplace(index, x.shape(), src.shape(), dim);
      const bool whole = lines && lines->whole;
      if (!whole) begin();
      std::vector<int32_t> counts(counted && !whole ? size_t(out.numel()) : 0, self);
      int32_t* count = counts.empty() ? nullptr : counts.data();
      const Places<T> places = {to.data(), in ? in->data() : nullptr, count, self, mean};
      auto run = [&]<class How>() {
        if (rows) return join_rows<How>(index, dim, x.size(dim), to.data(), from.data(), count);
        counted ? write<How, true>(*lines, named->data(), places, from.data())
                : write<How, false>(*lines, named->data(), places, from.data());
      };
      if (how == "prod")
        run.template operator()<Prod>();
      else if (how == "sum" || mean)
        run.template operator()<Sum>();
      else if constexpr (!is_complex<T>)
        how == "amax" ? run.template operator()<Most>() : run.template operator()<Least>();
      if (mean && !whole)
        parallel_for(out.numel(), 1 << 16, [&](int64_t lo, int64_t hi) {
          divide_by(to.data() + lo, count + lo, hi - lo);
        });
    } else {
      begin();
    }
    to.commit();
  });
}

}  // namespace

const Kernel scatter_reduce_kernels[] = {
    {"scatter_reduce", custom<scatter_reduce>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
