// plugins/ops_linalg/cpu/distance.cpp: distances between rows: one row with many others, whose
// columns lie side by side, a vector of them at once.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/view.hpp>
#include <vector>

#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_linalg/cpu/distance.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kPiece = 256;  // so many terms are added before they join the others' sum

struct Squares {
  template <class D, class V>
  static HWY_INLINE V join(D, V sum, V x) {
    return hn::Add(sum, hn::Mul(x, x));
  }
  template <class D, class V>
  static HWY_INLINE V joined(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct Amounts {
  template <class D, class V>
  static HWY_INLINE V join(D, V sum, V x) {
    return hn::Add(sum, hn::Abs(x));
  }
  template <class D, class V>
  static HWY_INLINE V joined(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct Counts {
  template <class D, class V>
  static HWY_INLINE V join(D d, V sum, V x) {
    return hn::Add(sum, hn::IfThenElseZero(hn::Ne(x, hn::Zero(d)), hn::Set(d, 1)));
  }
  template <class D, class V>
  static HWY_INLINE V joined(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct Largest {  // a NaN stays
  template <class D, class V>
  static HWY_INLINE V join(D d, V most, V x) {
    return joined(d, most, hn::Abs(x));
  }
  template <class D, class V>
  static HWY_INLINE V joined(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::Ne(b, b)), b, a);
  }
};

// to[j] = the join over k of a[k] - columns[k * stride + j], for the columns of two vectors.
template <class F, class T, int vectors>
HWY_INLINE void beside(const T* a, const T* columns, int64_t stride, int64_t width, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  hn::Vec<decltype(d)> all[vectors], part[vectors];
  for (int v = 0; v < vectors; ++v) all[v] = hn::Zero(d);
  for (int64_t k = 0; k < width;) {
    for (int v = 0; v < vectors; ++v) part[v] = hn::Zero(d);
    for (int64_t end = std::min(width, k + kPiece); k < end; ++k) {
      auto x = hn::Set(d, a[k]);
      for (int v = 0; v < vectors; ++v)
        part[v] = F::join(d, part[v], hn::Sub(x, hn::LoadU(d, columns + k * stride + v * L)));
    }
    for (int v = 0; v < vectors; ++v) all[v] = F::joined(d, all[v], part[v]);
  }
  for (int v = 0; v < vectors; ++v) hn::StoreU(all[v], d, to + v * L);
}

template <class F, class T>
void row_of(const T* a, const T* columns, int64_t stride, int64_t width, int64_t n, bool root,
            T* to) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  HWY_ALIGN T last[L];
  int64_t j = 0;
  for (; j + 4 * L <= n; j += 4 * L) beside<F, T, 4>(a, columns + j, stride, width, to + j);
  for (; j + L <= n; j += L) beside<F, T, 1>(a, columns + j, stride, width, to + j);
  if (j < n) {
    beside<F, T, 1>(a, columns + j, stride, width, last);
    std::copy_n(last, n - j, to + j);
  }
  for (j = 0; root && j + L <= n; j += L) hn::StoreU(hn::Sqrt(hn::LoadU(d, to + j)), d, to + j);
  for (; root && j < n; ++j) to[j] = std::sqrt(to[j]);
}

template <class T>
void rows_of(const T* a, const T* columns, int64_t stride, int64_t width, int64_t n, double p,
             T* to) {
  if (p == 2) return row_of<Squares>(a, columns, stride, width, n, true, to);
  if (p == 1) return row_of<Amounts>(a, columns, stride, width, n, false, to);
  if (p == 0) return row_of<Counts>(a, columns, stride, width, n, false, to);
  row_of<Largest>(a, columns, stride, width, n, false, to);
}

}  // namespace

void distances_f32(const float* a, const float* columns, int64_t stride, int64_t width, int64_t n,
                   double p, float* to) {
  rows_of(a, columns, stride, width, n, p, to);
}
void distances_f64(const double* a, const double* columns, int64_t stride, int64_t width, int64_t n,
                   double p, double* to) {
  rows_of(a, columns, stride, width, n, p, to);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

// The rows of a matrix, for distances from one of another.
template <class T>
class Rows {
 public:
  Rows(const T* rows, int64_t n, int64_t width, double p)
      : rows_(rows), n_(n), width_(width), p_(p) {
    if (!by_vectors()) return;
    constexpr int64_t spare = 64 / int64_t(sizeof(T));  // whole vectors are read
    stride_ = n + spare;
    columns_.assign(size_t(std::max<int64_t>(width, 1) * stride_), T(0));
    constexpr int64_t tile = 16;
    for (int64_t i = 0; i < n; i += tile)
      for (int64_t k = 0; k < width; ++k)
        for (int64_t j = i; j < std::min(n, i + tile); ++j)
          columns_[size_t(k * stride_ + j)] = rows[j * width + k];
  }
  // Distances of a from the rows from `first` on.
  void from(const T* a, int64_t first, T* to) const {
    if (!by_vectors()) {
      for (int64_t j = first; j < n_; ++j) *to++ = other(a, rows_ + j * width_);
      return;
    }
    const T* columns = columns_.data() + first;
    if constexpr (std::is_same_v<T, float>)
      AJ_SIMD(distances_f32)(a, columns, stride_, width_, n_ - first, p_, to);
    else
      AJ_SIMD(distances_f64)(a, columns, stride_, width_, n_ - first, p_, to);
  }

 private:
  bool by_vectors() const { return p_ == 2 || p_ == 1 || p_ == 0 || std::isinf(p_); }
  T other(const T* a, const T* b) const {
    constexpr int64_t piece = 256;
    T power = T(p_), all = 0;
    for (int64_t k = 0; k < width_;) {
      T part = 0;
      for (int64_t end = std::min(width_, k + piece); k < end; ++k)
        part += std::pow(std::fabs(a[k] - b[k]), power);
      all += part;
    }
    return std::pow(all, T(1 / p_));
  }

  const T* rows_;
  int64_t n_, width_, stride_ = 0;
  double p_;
  std::vector<T> columns_;
};

// By a product of matrices: left to the body, whose products are the library's.
int32_t one_by_one(void*, const aj_call* call) { return !call->args[3].v.i; }

void cdist(Args args) {
  TensorView x = args.tensor(0), y = args.tensor(1);
  MutView out = args.result(0);
  double p = args.real(2);
  int64_t n = x.size(1), m = y.size(1), width = x.size(2);
  if (out.numel() == 0) return;
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> a(x), b(y), to(out);
    for (int64_t i = 0; i < x.size(0); ++i) {
      Rows<T> rows(b.data() + i * m * width, m, width, p);
      parallel_for(n, grain_of(m * std::max<int64_t>(width, 1)), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo)
          rows.from(a.data() + (i * n + lo) * width, 0, to.data() + (i * n + lo) * m);
      });
    }
    to.commit();
  });
}

void pdist(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  int64_t n = x.size(0), width = x.size(1);
  if (out.numel() == 0) return;
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> a(x), to(out);
    Rows<T> rows(a.data(), n, width, args.real(1));
    parallel_for(n - 1, grain_of(n / 2 * std::max<int64_t>(width, 1)), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo)
        rows.from(a.data() + lo * width, lo + 1, to.data() + lo * n - lo * (lo + 1) / 2);
    });
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(distance_kernels) = {
    {"_::cdist", {&plain_kernel<cdist>, floating::own_mask, 0, &one_by_one}},
    {"nn::pdist", {&plain_kernel<pdist>, floating::own_mask, 0, nullptr}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
