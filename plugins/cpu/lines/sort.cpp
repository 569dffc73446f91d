// plugins/cpu/lines/sort.cpp: sorting lines and their best elements; NaN is larger than every
// number, equal elements keep their order.
#include <adjoin/kit/geometry.hpp>
#include <algorithm>
#include <vector>

#include "sort_keys.hpp"
#include "topk_scan.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

template <class T>
constexpr bool kScans = std::is_same_v<T, float> || std::is_same_v<T, double>;

// One line after the other; its room is kept.
template <class T>
class Sorter {
  using K = Keys<T>;
  using Bits = typename K::Bits;

 public:
  Sorter(int64_t n, int64_t step, int64_t keep, bool descending, bool ordered, int64_t parts)
      : n_(n), step_(step), keep_(keep), descending_(descending), ordered_(ordered), parts_(parts) {
    scans_ = kScans<T> && keep <= 64 && keep < n / 4;
    if (scans_) {
      best_.resize(size_t(keep) + 1);
      if (step != 1) line_.reset(new T[size_t(n)]);
      return;
    }
    a_ = Room<uint64_t>(n), b_ = Room<uint64_t>(n);
    index_bits_ = unsigned(std::bit_width(uint64_t(std::max<int64_t>(n - 1, 0))));
  }

  void run(const T* x, T* out, int64_t* where) {
    if (scans_) {
      scan(x);
      for (int64_t k = 0; k < keep_; ++k) {
        where[k * step_] = best_[k].index;
        out[k * step_] = x[best_[k].index * step_];
      }
      return;
    }
    const uint64_t* best = all(x);
    const uint64_t mask = (uint64_t(1) << index_bits_) - 1;
    for (int64_t k = 0; k < keep_; ++k) {
      int64_t i = int64_t(best[k] & mask);
      Bits key = index_bits_ ? common_ | Bits(best[k] >> index_bits_) << low_ : common_;
      out[k * step_] = exact_ ? K::value(key, descending_) : x[i * step_];
      where[k * step_] = i;
    }
  }

 private:
  struct Pair {
    Bits key;
    int64_t index;
    friend bool operator<(const Pair& a, const Pair& b) {  // total: the order is the stable one
      return a.key < b.key || (a.key == b.key && a.index < b.index);
    }
  };

  // A word has as many of the bits in which keys differ as there is room for beside the index.
  const uint64_t* all(const T* x) {
    uint64_t* a = a_.get();
    int64_t exact = 0;
    Bits varying = 0, first = n_ ? K::of(x[0], descending_) : Bits(0);
    for (int64_t i = 0; i < n_; ++i) {
      T v = x[i * step_];
      Bits key = K::of(v, descending_);
      exact += K::exact(v);
      varying |= key ^ first;
      if constexpr (sizeof(Bits) == 4) a[i] = uint64_t(key) << index_bits_ | uint64_t(i);
    }
    unsigned high = unsigned(std::bit_width(varying)), room = 64 - index_bits_;
    low_ = varying ? unsigned(std::countr_zero(varying)) : 0;
    bool whole = true;
    unsigned least = index_bits_ + low_, most = index_bits_ + high;
    if constexpr (sizeof(Bits) == 8) {
      whole = high - low_ <= room;
      if (!whole) low_ = high - room;
      const Bits mask = high < 64 ? (Bits(1) << high) - 1 : ~Bits(0);
      for (int64_t i = 0; i < n_; ++i) {
        Bits part = varying ? (K::of(x[i * step_], descending_) & mask) >> low_ : 0;
        a[i] = (index_bits_ ? part << index_bits_ : part) | uint64_t(i);
      }
      common_ = first & ~mask;
      if (whole && varying) common_ |= first & ((Bits(1) << low_) - 1);
      least = index_bits_, most = index_bits_ + high - low_;
    } else {
      low_ = 0, common_ = 0;
    }
    if (n_ == 1) common_ = first;
    exact_ = exact == n_ && whole;
    return chosen(x, whole, least, most);
  }

  const uint64_t* chosen(const T* x, bool whole, unsigned least, unsigned most) {
    uint64_t *a = a_.get(), *b = b_.get();
    if (n_ <= kRanked) {
      rank_words(a, b, n_);
      if (!whole) mend(x, b);
      return b;
    }
    if (keep_ < n_ && whole) {
      select_words(a, b, n_, keep_, least, most);
      if (!ordered_) return a;
      std::sort(a, a + keep_);
      return a;
    }
    uint64_t* sorted = sort_words(a, b, n_, parts_, least, most);
    if (!whole) mend(x, sorted);
    return sorted;
  }

  // Words that agree in all but the index may still differ in bits that had no room.
  void mend(const T* x, uint64_t* a) {
    const uint64_t mask = (uint64_t(1) << index_bits_) - 1;
    auto before = [&](uint64_t p, uint64_t q) {
      int64_t i = int64_t(p & mask), j = int64_t(q & mask);
      Bits left = K::of(x[i * step_], descending_), right = K::of(x[j * step_], descending_);
      return left < right || (left == right && i < j);
    };
    for (int64_t i = 0, end; i < n_; i = end) {
      for (end = i + 1; end < n_ && a[end] >> index_bits_ == a[i] >> index_bits_;) ++end;
      if (end - i > 1) std::sort(a + i, a + end, before);
    }
  }

  // The best so far, in order; what follows has to beat the last of them.
  void scan(const T* x) {
    if constexpr (kScans<T>) {
      Pair* a = best_.data();
      const T* line = x;
      if (step_ != 1) {
        for (int64_t i = 0; i < n_; ++i) line_[i] = x[i * step_];
        line = line_.get();
      }
      auto pair = [&](int64_t i) { return Pair{K::of(line[i], descending_), i}; };
      for (int64_t i = 0; i < keep_; ++i) a[i] = pair(i);
      if (keep_ == 0) return;
      std::sort(a, a + keep_);
      int64_t i = keep_ - 1;
      for (;;) {
        const Pair& last = a[keep_ - 1];
        i = find_beyond(line, i + 1, n_, line[last.index], descending_);
        if (i >= n_) return;
        Pair p = pair(i);
        if (!(p < last)) continue;
        int64_t j = keep_ - 1;
        for (; j > 0 && p < a[j - 1]; --j) a[j] = a[j - 1];
        a[j] = p;
      }
    }
  }

  int64_t n_, step_, keep_;
  bool descending_, ordered_, scans_, exact_ = true;
  int64_t parts_;
  unsigned index_bits_ = 0, low_ = 0;
  Bits common_ = 0;  // the bits of a key that its word lacks
  std::unique_ptr<T[]> line_;
  std::vector<Pair> best_;
  Room<uint64_t> a_, b_;
};

void order(TensorView x, int64_t dim, bool descending, int64_t keep, bool ordered, MutView values,
           MutView indices) {
  Lines l(x.shape(), dim);
  if (l.size > int64_t(UINT32_MAX))
    raise(AJ_UNIMPLEMENTED, "a line may have ", int64_t(UINT32_MAX), " elements, it has ", l.size);
  visit_math<reals_bool>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), out(values);
    Dense<int64_t> where(indices);
    int64_t lines = l.outer * l.inner;
    int64_t parts = lines == 1 ? std::max<int64_t>(core().num_threads(), 1) : 1;
    parallel_for(lines, grain_of(l.size, 4096), [&](int64_t lo, int64_t hi) {
      Sorter<T> sorter(l.size, l.inner, keep, descending, ordered, parts);
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
  order(x, args.integer(1), args.flag(2), Lines(x.shape(), args.integer(1)).size, true,
        args.result(0), args.result(1));
}
void topk(Args args) {
  TensorView x = args.tensor(0);  // a number is its own best, even of none
  order(x, args.integer(2), args.flag(3), x.ndim() ? args.integer(1) : 1, args.flag(4),
        args.result(0), args.result(1));
}

}  // namespace

AJ_KERNELS(sort_kernels) = {
    {"sort", custom<sort>},
    {"topk", custom<topk>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
