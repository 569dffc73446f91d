// plugins/vector/softmax_rows.cpp: softmax of one row, or of neighbouring columns, in vector
// code.
#include "softmax_rows.hpp"

#include <adjoin/kit/scalar_math.hpp>
#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/softmax_rows.cpp"
#include "simd.hpp"

// after it, once per target
#include "math-inl.hpp"
#include "row_math-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kRow = 4096;  // exponentials of a row up to here wait in the first cache

template <bool Log, class T>
void softmax(const T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t n, bool past_cache) {
  T top = rows::largest(x, n), room[kRow], *e = n <= kRow ? room : y;
  auto shifted = [=](auto d, int64_t i)
                     HWY_ATTR { return hn::Sub(hn::LoadU(d, x + i), hn::Set(d, top)); };
  double sum = rows::total<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    auto v = math::exp(d, shifted(d, i));
    if (!Log) hn::StoreU(v, d, e + i);
    return v;
  });
  if (Log) {
    T by = T(std::log(sum));
    return rows::write(y, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
      return hn::Sub(shifted(d, i), hn::Set(d, by));
    });
  }
  T by = T(1 / sum);
  rows::write(y, n, past_cache && e != y, [=](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, e + i), hn::Set(d, by));
  });
}

template <bool Log, class T>
void softmax_back(const T* HWY_RESTRICT dy, const T* HWY_RESTRICT y, T* dx, int64_t n,
                  bool past_cache) {
  T sum = T(rows::total<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    auto g = hn::LoadU(d, dy + i);
    return Log ? g : hn::Mul(g, hn::LoadU(d, y + i));
  }));
  rows::write(dx, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
    auto g = hn::LoadU(d, dy + i), v = hn::LoadU(d, y + i), s = hn::Set(d, sum);
    if constexpr (Log)
      return hn::Sub(g, hn::Mul(math::exp(d, v), s));
    else
      return hn::Mul(v, hn::Sub(g, s));
  });
}

template <class T>
T log_sum_exp(const T* x, int64_t n) {
  T top = rows::largest(x, n);
  double sum = rows::total<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    return math::exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, top)));
  });
  return T(double(top) + std::log(sum));
}

template <class T>
void nll_back(const T* x, T log_sum, T g, int64_t target, T* dx, int64_t n, bool past_cache) {
  rows::write(dx, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    using I = hn::TFromD<decltype(di)>;
    auto p = math::exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, log_sum)));
    auto hit = hn::RebindMask(d, hn::Eq(hn::Iota(di, I(i)), hn::Set(di, I(target))));
    return hn::Mul(hn::Set(d, g), hn::IfThenElse(hit, hn::Sub(p, hn::Set(d, T(1))), p));
  });
}

// f(d, j) for the vectors, then the single elements, of a strip of columns.
template <class T, class F>
HWY_INLINE void across(int64_t width, F f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t L = HWY_LANES(T);
  int64_t j = 0;
  for (; j + L <= width; j += L) f(d, j);
  for (; j < width; ++j) f(one, j);
}

// Sums down the columns: 64 rows by themselves, so that the error does not grow with all of them.
template <class T>
struct ColumnSums {
  T part[kSoftmaxWidth], sum[kSoftmaxWidth] = {};
  template <class F>  // f(d, row, j)
  HWY_INLINE void run(int64_t size, int64_t width, F f) {
    for (int64_t from = 0; from < size; from += 64) {
      std::fill_n(part, width, T(0));
      for (int64_t k = from; k < std::min(size, from + 64); ++k)
        across<T>(width, [&](auto d, int64_t j) HWY_ATTR {
          hn::StoreU(hn::Add(hn::LoadU(d, part + j), f(d, k, j)), d, part + j);
        });
      across<T>(width, [&](auto d, int64_t j) HWY_ATTR {
        hn::StoreU(hn::Add(hn::LoadU(d, sum + j), hn::LoadU(d, part + j)), d, sum + j);
      });
    }
  }
};

template <bool Log, class T>
void softmax_columns(const T* x, T* y, int64_t size, int64_t inner, int64_t width) {
  T top[kSoftmaxWidth];
  std::fill_n(top, width, -std::numeric_limits<T>::infinity());
  for (int64_t k = 0; k < size; ++k)
    across<T>(width, [&](auto d, int64_t j) HWY_ATTR {
      hn::StoreU(hn::Max(hn::LoadU(d, top + j), hn::LoadU(d, x + k * inner + j)), d, top + j);
    });
  ColumnSums<T> sums;
  sums.run(size, width, [&](auto d, int64_t k, int64_t j) HWY_ATTR {
    auto v = hn::Sub(hn::LoadU(d, x + k * inner + j), hn::LoadU(d, top + j));
    auto e = math::exp(d, v);
    hn::StoreU(Log ? v : e, d, y + k * inner + j);
    return e;
  });
  for (int64_t j = 0; j < width; ++j)
    sums.sum[j] = Log ? std::log(sums.sum[j]) : T(1) / sums.sum[j];
  for (int64_t k = 0; k < size; ++k)
    across<T>(width, [&](auto d, int64_t j) HWY_ATTR {
      T* at = y + k * inner + j;
      auto v = hn::LoadU(d, at), s = hn::LoadU(d, sums.sum + j);
      hn::StoreU(Log ? hn::Sub(v, s) : hn::Mul(v, s), d, at);
    });
}

template <bool Log, class T>
void softmax_columns_back(const T* dy, const T* y, T* dx, int64_t size, int64_t inner,
                          int64_t width) {
  ColumnSums<T> sums;
  sums.run(size, width, [&](auto d, int64_t k, int64_t j) HWY_ATTR {
    int64_t at = k * inner + j;
    auto g = hn::LoadU(d, dy + at);
    return Log ? g : hn::Mul(g, hn::LoadU(d, y + at));
  });
  for (int64_t k = 0; k < size; ++k)
    across<T>(width, [&](auto d, int64_t j) HWY_ATTR {
      int64_t at = k * inner + j;
      auto g = hn::LoadU(d, dy + at), v = hn::LoadU(d, y + at), s = hn::LoadU(d, sums.sum + j);
      if constexpr (Log)
        hn::StoreU(hn::Sub(g, hn::Mul(math::exp(d, v), s)), d, dx + at);
      else
        hn::StoreU(hn::Mul(v, hn::Sub(g, s)), d, dx + at);
    });
}

template <class T>
constexpr SoftmaxRows<T> kRows = {
    &softmax<false, T>,
    &softmax<true, T>,
    &softmax_back<false, T>,
    &softmax_back<true, T>,
    &softmax_columns<false, T>,
    &softmax_columns<true, T>,
    &softmax_columns_back<false, T>,
    &softmax_columns_back<true, T>,
    &log_sum_exp<T>,
    &nll_back<T>,
};

}  // namespace

AJ_CODE(SoftmaxRows, softmax_rows, kRows)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

AJ_CHOSEN_CODE(SoftmaxRows, softmax_rows)

}  // namespace adjoin::cpu
#endif
