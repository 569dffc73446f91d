// plugins/cpu/lines/running.cpp: running extremes, and logarithms of running sums.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar_math.hpp>
#include <algorithm>

#include "vector/stored.hpp"

#ifndef ADJOIN_PLUGINS_CPU_LINES_RUNNING_ONCE
#define ADJOIN_PLUGINS_CPU_LINES_RUNNING_ONCE
namespace adjoin::cpu {
namespace {

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

}  // namespace
}  // namespace adjoin::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lines/running.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
template <class T>
struct RunLine {
  static void most(const T* x, T* value, int64_t* place, int64_t n) {
    run_along<true>(x, value, place, n);
  }
  static void least(const T* x, T* value, int64_t* place, int64_t n) {
    run_along<false>(x, value, place, n);
  }
};
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

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

// What runs along a line: of the types that programs use most, in vectors.
template <bool Largest, class T>
auto run_line() {
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, int64_t>)
    return Largest ? AJ_SIMD(RunLine<T>::most) : AJ_SIMD(RunLine<T>::least);
  else
    return &run_along<Largest, T>;
}

template <bool Largest>
void running(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  if (x.numel() == 0) return;
  visit_math<reals_bool>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), values(args.result(0));
    Dense<int64_t> places(args.result(1));
    if (l.inner == 1)
      parallel_for(l.outer, grain_of(l.size, 8192),
                   [&, run = run_line<Largest, T>()](int64_t lo, int64_t hi) {
                     for (; lo < hi; ++lo) {
                       int64_t o = lo * l.size;
                       run(in.data() + o, values.data() + o, places.data() + o, l.size);
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
  visit_math<floating>(x.dtype(), [&]<class T>() {
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

AJ_KERNELS(running_kernels) = {
    {"cummax", custom<running<true>>},
    {"cummin", custom<running<false>>},
    {"_::log_sums", custom<log_sums>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
