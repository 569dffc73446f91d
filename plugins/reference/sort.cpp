// plugins/reference/sort.cpp: joining and ordering.
#include <adjoin/kit/geometry.hpp>

#include "element.hpp"

namespace adjoin::reference {
namespace {

void cat(Args args) {
  MutView out = args.result(0);
  int64_t dim = args.integer(1);
  Lines whole(out.shape(), dim);
  visit_math<stored>(out.dtype(), [&]<class T>() {
    Dense<T> to(out);
    int64_t at = 0;  // along the dimension
    for (aj_tensor* each : args.tensors(0)) {
      TensorView t(each);
      if (t.ndim() == 1 && t.size(0) == 0) continue;  // an empty vector goes with everything
      Lines l(t.shape(), dim);
      Dense<T> from(t);
      for (int64_t i = 0; i < t.numel(); ++i) {
        int64_t o = i / (l.size * l.inner), k = i / l.inner % l.size;
        to[(o * whole.size + at + k) * l.inner + i % l.inner] = from[i];
      }
      at += l.size;
    }
    to.commit();
  });
}

// NaN is larger than every number.
template <class T>
bool less(T a, T b) {
  return a < b || (scalar::is_nan(b) && !scalar::is_nan(a));
}

// Sorts each line along dim and writes its first `keep` values and where they came from.
void order(TensorView x, int64_t dim, bool descending, int64_t keep, MutView values,
           MutView indices) {
  Lines l(x.shape(), dim);
  visit_math<Join<reals_bool, halves>>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), best(values);
    Dense<int64_t> where(indices);
    std::vector<int64_t> order(size_t(l.size));
    for (int64_t line = 0; line < l.outer * l.inner; ++line) {
      int64_t from = line / l.inner * l.size * l.inner + line % l.inner,
              to = line / l.inner * keep * l.inner + line % l.inner;
      auto at = [&](int64_t k) { return in[from + k * l.inner]; };
      for (int64_t k = 0; k < l.size; ++k) order[k] = k;
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return descending ? less(at(b), at(a)) : less(at(a), at(b));
      });
      for (int64_t k = 0; k < keep; ++k) {
        best[to + k * l.inner] = at(order[k]);
        where[to + k * l.inner] = order[k];
      }
    }
    best.commit();
    where.commit();
  });
}

void sort(Args args) {
  TensorView x = args.tensor(0);
  order(x, args.integer(1), args.flag(2), Lines(x.shape(), args.integer(1)).size, args.result(0),
        args.result(1));
}
void topk(Args args) {
  TensorView x = args.tensor(0);  // a number is its own best, even of none
  order(x, args.integer(2), args.flag(3), x.ndim() ? args.integer(1) : 1, args.result(0),
        args.result(1));
}

}  // namespace

AJ_KERNELS(sort_kernels) = {
    {"cat_same", custom<cat>},
    {"sort", custom<sort>},
    {"topk", custom<topk>},
    {nullptr, {}},
};

}  // namespace adjoin::reference
