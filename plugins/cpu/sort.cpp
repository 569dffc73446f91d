// plugins/cpu/sort.cpp: sorting lines and their best elements; NaN is larger than every number,
// equal elements keep their order.
#include <adjoin/kit/geometry.hpp>
#include <algorithm>

#include "sort_keys.hpp"
#include "tables.hpp"
#include "topk_scan.hpp"

namespace adjoin::cpu {
namespace {

template <class T>
constexpr bool kScans = std::is_same_v<T, float> || std::is_same_v<T, double>;

// One line after the other; its room is kept.
template <class T>
class Sorter {
  using K = Keys<T>;
  using Bits = typename K::Bits;
  using P = Pair<Bits>;

 public:
  Sorter(int64_t n, int64_t step, int64_t keep, bool descending, int64_t parts)
      : n_(n), step_(step), keep_(keep), descending_(descending), parts_(parts) {
    scans_ = kScans<T> && keep <= 64 && keep < n / 4;
    if (scans_ && step != 1) line_.reset(new T[size_t(n)]);
    a_.reset(new P[size_t(scans_ ? keep + 1 : n)]);
    if (!scans_ && keep == n) b_.reset(new P[size_t(n)]);
  }

  void run(const T* x, T* out, int64_t* where) {
    const P* best = scans_ ? scan(x) : all(x);
    for (int64_t k = 0; k < keep_; ++k) {
      int64_t i = int64_t(best[k].index);
      out[k * step_] = exact_ ? K::value(best[k].key, descending_) : x[i * step_];
      where[k * step_] = i;
    }
  }

 private:
  const P* all(const T* x) {
    P* a = a_.get();
    int64_t exact = 0;
    for (int64_t i = 0; i < n_; ++i) {
      T v = x[i * step_];
      a[i].key = K::of(v, descending_);
      a[i].index = Bits(i);
      exact += K::exact(v);
    }
    exact_ = exact == n_;
    if (keep_ == n_) return sort_pairs(a, b_.get(), n_, parts_);
    std::nth_element(a, a + keep_, a + n_);
    std::sort(a, a + keep_);
    return a;
  }

  // The best so far, in order; what follows has to beat the last of them.
  const P* scan(const T* x) {
    exact_ = false;
    if constexpr (kScans<T>) {
      P* a = a_.get();
      const T* line = x;
      if (step_ != 1) {
        for (int64_t i = 0; i < n_; ++i) line_[i] = x[i * step_];
        line = line_.get();
      }
      auto pair = [&](int64_t i) {
        P p;
        p.key = K::of(line[i], descending_);
        p.index = Bits(i);
        return p;
      };
      for (int64_t i = 0; i < keep_; ++i) a[i] = pair(i);
      if (keep_ == 0) return a;
      insertion_sort(a, keep_);
      int64_t i = keep_ - 1;
      for (;;) {
        const P& last = a[keep_ - 1];
        i = find_beyond(line, i + 1, n_, line[int64_t(last.index)], descending_);
        if (i >= n_) return a;
        P p = pair(i);
        if (!(p < last)) continue;
        int64_t j = keep_ - 1;
        for (; j > 0 && p < a[j - 1]; --j) a[j] = a[j - 1];
        a[j] = p;
      }
    }
    return nullptr;
  }

  int64_t n_, step_, keep_;
  bool descending_, scans_, exact_ = true;
  int64_t parts_;
  std::unique_ptr<T[]> line_;
  std::unique_ptr<P[]> a_, b_;
};

void order(TensorView x, int64_t dim, bool descending, int64_t keep, MutView values,
           MutView indices) {
  Lines l(x.shape(), dim);
  if (l.size > int64_t(UINT32_MAX))
    raise(AJ_UNIMPLEMENTED, "a line may have ", int64_t(UINT32_MAX), " elements, it has ", l.size);
  visit<Join<Join<reals_bool, halves>, wide_unsigned>>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), out(values);
    Dense<int64_t> where(indices);
    int64_t lines = l.outer * l.inner;
    int64_t parts = lines == 1 ? std::max<int64_t>(core().num_threads(), 1) : 1;
    parallel_for(lines, grain_of(l.size, 4096), [&](int64_t lo, int64_t hi) {
      Sorter<T> sorter(l.size, l.inner, keep, descending, parts);
      for (; lo < hi; ++lo) {
        int64_t o = lo / l.inner, i = lo % l.inner, to = o * keep * l.inner + i;
        sorter.run(in.data() + o * l.size * l.inner + i, out.data() + to, where.data() + to);
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
