// plugins/cpu/lines/search.cpp: searching sorted sequences.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/tensor.hpp>
#include <adjoin/kit/view.hpp>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// The first place whose element stops: the range is halved without a branch, which nobody could
// predict. Several values at once, since each waits for what it reads.
template <int kValues, class T, class Stops>
void first_stops(const T* begin, int64_t n, const T* value, int64_t* place, Stops stops) {
  T x[kValues];
  int64_t at[kValues] = {};
#pragma GCC unroll 8
  for (int i = 0; i < kValues; ++i) x[i] = value[i];
  while (n > 1) {
    const int64_t half = n / 2;
#pragma GCC unroll 8
    for (int i = 0; i < kValues; ++i)
      at[i] += half & -int64_t(!stops(begin[at[i] + half - 1], x[i]));
    n -= half;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kValues; ++i) place[i] = at[i] + (n == 1 && !stops(begin[at[i]], x[i]));
}

void search(Args args) {
  TensorView s = args.tensor(0), v = args.tensor(1);
  MutView out = args.result(0);
  bool right = args.flag(2);
  int64_t n = s.size(-1), line = v.ndim() ? v.size(-1) : 1;
  visit_math<reals_bool>(s.dtype(), [&]<class T>() {
    Dense<T> sequence(s), values(v);
    Dense<int64_t> to(out);
    const T *all = sequence.data(), *value = values.data();
    int64_t* place = to.data();
    bool one = s.ndim() == 1;
    parallel_for(v.numel(), grain_of(16), [&](int64_t lo, int64_t hi) {
      auto found = [&](auto stops) {
        constexpr int kMany = 8;
        for (int64_t many = 0; lo < hi; lo += many) {
          const T* begin = one ? all : all + lo / line * n;
          many = hi - lo >= kMany && (one || lo % line + kMany <= line) ? kMany : 1;
          many == kMany ? first_stops<kMany>(begin, n, value + lo, place + lo, stops)
                        : first_stops<1>(begin, n, value + lo, place + lo, stops);
        }
      };
      // NaN stands behind all numbers, as `sort` puts it: an element that is NaN stops. A value
      // that is NaN belongs before the first NaN, or behind the last.
      const int64_t first = lo;
      right ? found([](T e, T x) { return !(e <= x); }) : found([](T e, T x) { return !(e < x); });
      for (int64_t i = first; i < hi; ++i)
        if (value[i] != value[i])
          first_stops<1>(one ? all : all + i / line * n, n, value + i, place + i,
                         [&](T e, T) { return !right && e != e; });
    });
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(search_kernels) = {
    {"_::search", custom<search>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
