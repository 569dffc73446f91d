// plugins/cpu/lines/search.cpp: searching sorted sequences, ordering rows.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/tensor.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <numeric>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

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
  visit_math<reals_bool>(s.dtype(), [&]<class T>() {
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
  visit_math<reals_bool>(t.dtype(), [&]<class T>() {
    Dense<T> rows(t);
    Dense<int64_t> out(args.result(0));
    order_rows(row_before<T>, rows.data(), t.size(1), out.data(), t.size(0));
    out.commit();
  });
}

}  // namespace

AJ_KERNELS(search_kernels) = {
    {"_::search", custom<search>},
    {"_::row_order", custom<row_order>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
