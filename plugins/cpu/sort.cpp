// plugins/cpu/sort.cpp: sorting lines and their best elements; NaN is larger than every number,
// equal elements keep their order.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <algorithm>
#include <vector>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

template <class T>
struct Item {
  T value;
  int64_t index;
};

template <class T, bool Descending>
struct Before {
  static bool less(T a, T b) { return a < b || (scalar::is_nan(b) && !scalar::is_nan(a)); }
  bool operator()(const Item<T>& a, const Item<T>& b) const {
    bool first = Descending ? less(b.value, a.value) : less(a.value, b.value);
    bool second = Descending ? less(a.value, b.value) : less(b.value, a.value);
    return first ||
           (!second && a.index < b.index);  // total: an unstable algorithm gives the stable order
  }
};

template <class T, bool Descending>
void best(std::vector<Item<T>>& line, int64_t keep) {
  Before<T, Descending> before;
  auto middle = line.begin() + keep;
  if (keep < int64_t(line.size())) {
    std::nth_element(line.begin(), middle, line.end(), before);
    std::sort(line.begin(), middle, before);
  } else {
    std::sort(line.begin(), line.end(), before);
  }
}

void order(TensorView x, int64_t dim, bool descending, int64_t keep, MutView values,
           MutView indices) {
  Lines l(x.shape(), dim);
  visit<Join<Join<reals_bool, halves>, wide_unsigned>>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), out(values);
    Dense<int64_t> where(indices);
    parallel_for(l.outer * l.inner, grain_of(l.size, 4096), [&](int64_t lo, int64_t hi) {
      std::vector<Item<T>> line(size_t(l.size));
      for (int64_t i = lo; i < hi; ++i) {
        int64_t from = i / l.inner * l.size * l.inner + i % l.inner,
                to = i / l.inner * keep * l.inner + i % l.inner;
        for (int64_t k = 0; k < l.size; ++k) line[k] = {in[from + k * l.inner], k};
        descending ? best<T, true>(line, keep) : best<T, false>(line, keep);
        for (int64_t k = 0; k < keep; ++k) {
          out[to + k * l.inner] = line[k].value;
          where[to + k * l.inner] = line[k].index;
        }
      }
    });
    out.commit();
    where.commit();
  });
}

void sort(Args args) {
  TensorView x = args.tensor(0);
  order(x, args.integer(1), args.flag(2), Lines(x.shape(), args.integer(1)).size, args.result(0),
        args.result(1));
}
void topk(Args args) {
  order(args.tensor(0), args.integer(2), args.flag(3), args.integer(1), args.result(0),
        args.result(1));
}

}  // namespace

const Kernel sort_kernels[] = {
    {"sort", custom<sort>},
    {"topk", custom<topk>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
