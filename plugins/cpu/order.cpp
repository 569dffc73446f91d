// plugins/cpu/order.cpp: searching sorted sequences, ordering rows, running extremes and logarithms
// of sums.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar_math.hpp>
#include <algorithm>
#include <numeric>

#include "clones.hpp"
#include "sort_keys.hpp"
#include "tables.hpp"

namespace adjoin::cpu {
namespace {

using ordered = Join<reals_bool, halves>;

// The first place whose element stops: the range is halved by a conditional move, not by a branch
// that nobody can predict. A NaN value is behind every element.
template <class T, class Stops>
int64_t first_stop(const T* begin, int64_t n, Stops stops) {
  const T* base = begin;
  while (n > 1) {
    int64_t half = n / 2;
    base += stops(base[half - 1]) ? 0 : half;
    n -= half;
  }
  return base - begin + (n == 1 && !stops(*base));
}

void search(Args args) {
  TensorView s = args.tensor(0), v = args.tensor(1);
  MutView out = args.result(0);
  bool right = args.flag(2);
  int64_t n = s.size(-1), line = v.ndim() ? v.size(-1) : 1;
  visit<ordered>(s.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> sequence(s), values(v);
    Dense<int64_t> to(out);
    const T *all = sequence.data(), *value = values.data();
    int64_t* place = to.data();
    bool one = s.ndim() == 1;
    parallel_for(v.numel(), grain_of(16), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        const T* begin = one ? all : all + lo / line * n;
        T x = value[lo];
        place[lo] = right ? first_stop(begin, n, [x](T e) { return e > x; })
                          : first_stop(begin, n, [x](T e) { return e >= x; });
      }
    });
    to.commit();
  });
}

// Does row i stand before row j?
template <class T>
bool row_before(const void* rows, int64_t width, int64_t i, int64_t j) {
  const T *a = static_cast<const T*>(rows) + i * width,
          *b = static_cast<const T*>(rows) + j * width;
  for (int64_t c = 0; c < width; ++c) {
    if (a[c] == b[c]) continue;
    bool bad = scalar::is_nan(a[c]), other = scalar::is_nan(b[c]);  // larger than all numbers
    if (bad && other) continue;
    return bad || other ? other : a[c] < b[c];
  }
  return false;
}

// The sort is compiled once: rows are compared by call.
void order_rows(bool (*before)(const void*, int64_t, int64_t, int64_t), const void* rows,
                int64_t width, int64_t* order, int64_t n) {
  std::iota(order, order + n, int64_t(0));
  std::stable_sort(order, order + n,
                   [=](int64_t i, int64_t j) { return before(rows, width, i, j); });
}

void row_order(Args args) {
  TensorView t = args.tensor(0);
  visit<ordered>(t.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> rows(t);
    Dense<int64_t> out(args.result(0));
    order_rows(row_before<T>, rows.data(), t.size(1), out.data(), t.size(0));
    out.commit();
  });
}

// The most frequent element of lines, one after the other: equal keys stand beside each other in a
// sorted line.
template <class T>
class Modes {
  using K = Keys<T>;
  using Bits = typename K::Bits;

 public:
  explicit Modes(int64_t n) : n_(n), a_(n), b_(n) {}

  // The last place of the smallest of several; NaN equal nothing.
  int64_t place(const T* x, int64_t step) {
    uint64_t *words = a_.get(), best = 0;
    const uint64_t first = K::of(x[0], false), nan = Bits(~Bits(0));
    uint64_t varying = 0;
    for (int64_t i = 0; i < n_; ++i) {
      words[i] = K::of(x[i * step], false);
      varying |= words[i] ^ first;
    }
    if (varying)
      words = sort_words(words, b_.get(), n_, 1, unsigned(std::countr_zero(varying)),
                         unsigned(std::bit_width(varying)));
    int64_t most = 0, run = 0;
    for (int64_t i = 0; i < n_; ++i) {
      bool same =
          i && words[i] == words[i - 1] && !(std::is_floating_point_v<T> && words[i] == nan);
      run = same ? run + 1 : 1;
      best = run > most ? words[i] : best;
      most = std::max(run, most);
    }
    if (std::is_floating_point_v<T> && best == nan) return 0;
    int64_t at = n_ - 1;
    while (K::of(x[at * step], false) != best) --at;
    return at;
  }

 private:
  int64_t n_;
  Room<uint64_t> a_, b_;
};

void mode_place(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  visit<ordered>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x);
    Dense<int64_t> out(args.result(0));
    parallel_for(l.outer * l.inner, grain_of(l.size, 4096), [&](int64_t lo, int64_t hi) {
      Modes<T> modes(l.size);
      for (; lo < hi; ++lo)
        out[lo] = modes.place(in.data() + lo / l.inner * l.size * l.inner + lo % l.inner, l.inner);
    });
    out.commit();
  });
}

constexpr int64_t kColumns = 64;

// f(offset of the first element, columns beside each other) for strips of lines.
template <class F>
void for_strips(const Lines& l, F f) {
  int64_t strips = (l.inner + kColumns - 1) / kColumns;
  parallel_for(l.outer * strips, grain_of(l.size * std::min(l.inner, kColumns), 4),
               [&](int64_t lo, int64_t hi) {
                 for (; lo < hi; ++lo) {
                   int64_t at = lo % strips * kColumns;
                   f(lo / strips * l.size * l.inner + at, std::min(kColumns, l.inner - at));
                 }
               });
}

template <bool Largest, class T>
[[gnu::always_inline]] inline bool follows(T a, T best) {
  return ((Largest ? a >= best : a <= best) && !scalar::is_nan(best)) || scalar::is_nan(a);
}

// Most elements of a line change nothing, so a block is asked at once whether one of them does.
template <bool Largest, class T>
[[gnu::always_inline]] inline void run_along(const T* x, T* value, int64_t* place, int64_t n) {
  constexpr int64_t block = 32;
  T best = x[0];
  int64_t at = 0, k = 0;
  auto one = [&](int64_t i) {
    if (follows<Largest>(x[i], best)) best = x[i], at = i;
    value[i] = best, place[i] = at;
  };
  for (; k + block <= n; k += block) {
    int some = 0;
    for (int64_t j = 0; j < block; ++j) some |= follows<Largest>(x[k + j], best);
    if (some)
      for (int64_t j = 0; j < block; ++j) one(k + j);
    else
      std::fill_n(value + k, block, best), std::fill_n(place + k, block, at);
  }
  for (; k < n; ++k) one(k);
}
template <bool Largest, class T>
void run_line(const T* x, T* value, int64_t* place, int64_t n) {
  run_along<Largest>(x, value, place, n);
}
#define AJ_RUN_LINE(T)                                                        \
  AJ_CLONES void most_##T(const T* x, T* value, int64_t* place, int64_t n) {  \
    run_along<true>(x, value, place, n);                                      \
  }                                                                           \
  AJ_CLONES void least_##T(const T* x, T* value, int64_t* place, int64_t n) { \
    run_along<false>(x, value, place, n);                                     \
  }                                                                           \
  template <>                                                                 \
  void run_line<true>(const T* x, T* value, int64_t* place, int64_t n) {      \
    most_##T(x, value, place, n);                                             \
  }                                                                           \
  template <>                                                                 \
  void run_line<false>(const T* x, T* value, int64_t* place, int64_t n) {     \
    least_##T(x, value, place, n);                                            \
  }
AJ_RUN_LINE(float)
AJ_RUN_LINE(double)
AJ_RUN_LINE(int64_t)
#undef AJ_RUN_LINE

template <bool Largest>
void running(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  if (x.numel() == 0) return;
  visit<ordered>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), values(args.result(0));
    Dense<int64_t> places(args.result(1));
    if (l.inner == 1)
      parallel_for(l.outer, grain_of(l.size, 8192), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo) {
          int64_t o = lo * l.size;
          run_line<Largest>(in.data() + o, values.data() + o, places.data() + o, l.size);
        }
      });
    else
      for_strips(l, [&](int64_t first, int64_t columns) {
        T best[kColumns];
        int64_t place[kColumns] = {};
        std::copy_n(in.data() + first, columns, best);
        for (int64_t k = 0; k < l.size; ++k) {
          int64_t at = first + k * l.inner;
          const T* row = in.data() + at;
          T* value = values.data() + at;
          int64_t* where = places.data() + at;
          for (int64_t c = 0; c < columns; ++c) {
            T a = row[c], b = best[c];
            bool better = (Largest ? a >= b : a <= b) && !scalar::is_nan(b);
            better |= scalar::is_nan(a);
            value[c] = best[c] = better ? a : b;
            where[c] = place[c] = better ? k : place[c];
          }
        }
      });
    values.commit();
    places.commit();
  });
}

// log of sum = largest + log of the others relative to it: one exponential and one logarithm each.
void log_sums(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  if (x.numel() == 0) return;
  visit<stored_floating>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    using F = std::conditional_t<std::is_same_v<T, float>, float, double>;
    Dense<T> in(x), out(args.result(0));
    auto exp_of = [](double y) {
      if constexpr (std::is_same_v<F, float>)
        return scalar_float::exp(y);
      else
        return std::exp(y);
    };
    for_strips(l, [&](int64_t first, int64_t columns) {
      double top[kColumns], sum[kColumns] = {};
      std::fill_n(top, columns, -INFINITY);
      for (int64_t k = 0; k < l.size; ++k)
        for (int64_t c = 0; c < columns; ++c) {
          double y = double(in[first + k * l.inner + c]);
          if (y > top[c]) {
            sum[c] = sum[c] * exp_of(top[c] - y) + 1;
            top[c] = y;
          } else {
            sum[c] += y == top[c] ? 1 : exp_of(y - top[c]);
          }
          out[first + k * l.inner + c] = T(top[c] + std::log(sum[c]));
        }
    });
    out.commit();
  });
}

}  // namespace

const Kernel order_kernels[] = {
    {"_::search", custom<search>},
    {"_::row_order", custom<row_order>},
    {"cummax", custom<running<true>>},
    {"cummin", custom<running<false>>},
    {"_::log_sums", custom<log_sums>},
    {"_::mode_place", custom<mode_place>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
