// plugins/vector/layer_norm_rows.cpp: a row of a layer norm in vector code.
#include "layer_norm_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/layer_norm_rows.cpp"
#include "simd.hpp"

// after it, once per target
#include "row_math-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
void forward(const T* HWY_RESTRICT x, const T* HWY_RESTRICT weight, const T* HWY_RESTRICT bias,
             T* HWY_RESTRICT y, int64_t n, double eps, bool past_cache, T* mean, T* rstd) {
  T m, k;
  rows::statistics<T>(x, n, eps, &m, &k);
  auto hat = [=](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m)), hn::Set(d, k));
  };
  if (!weight)
    rows::write(y, n, past_cache, hat);
  else
    rows::write(y, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
      return hn::MulAdd(hat(d, i), hn::LoadU(d, weight + i), hn::LoadU(d, bias + i));
    });
  *mean = m, *rstd = k;
}

template <class T, bool kWeighted>
void backward_of(const T* HWY_RESTRICT g, const T* HWY_RESTRICT x, const T* HWY_RESTRICT weight,
                 T mean, T rstd, T* HWY_RESTRICT dx, T* HWY_RESTRICT sums, int64_t n,
                 bool past_cache) {
  auto hat = [=](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
  };
  auto collect = [=](auto d, int64_t i) HWY_ATTR {
    auto v = hn::LoadU(d, g + i);
    hn::StoreU(hn::MulAdd(v, hat(d, i), hn::LoadU(d, sums + i)), d, sums + i);
    hn::StoreU(hn::Add(v, hn::LoadU(d, sums + n + i)), d, sums + n + i);
    return v;
  };
  if (!dx) {
    rows::total<T>(n, collect);
    return;
  }
  auto scaled = [=](auto d, int64_t i) HWY_ATTR {
    auto v = hn::LoadU(d, g + i);
    if constexpr (kWeighted) v = hn::Mul(v, hn::LoadU(d, weight + i));
    return v;
  };
  T of_one = T(rows::total<T>(n, scaled) / double(n));
  T of_hat = T(rows::total<T>(n, [=](auto d, int64_t i)
                                     HWY_ATTR { return hn::Mul(scaled(d, i), hat(d, i)); }) /
               double(n));
  rows::write(dx, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
    if (sums) collect(d, i);
    auto v = hn::Sub(scaled(d, i), hn::Set(d, of_one));
    return hn::Mul(hn::Set(d, rstd), hn::NegMulAdd(hat(d, i), hn::Set(d, of_hat), v));
  });
}

template <class T>
void backward(const T* g, const T* x, const T* weight, T mean, T rstd, T* dx, T* sums, int64_t n,
              bool past_cache) {
  (weight ? backward_of<T, true> : backward_of<T, false>)(g, x, weight, mean, rstd, dx, sums, n,
                                                          past_cache);
}

template <class T>
constexpr NormRows<T> kRows = {&forward<T>, &backward<T>};

}  // namespace

AJ_CODE(NormRows, norm_rows, kRows)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

AJ_CHOSEN_CODE(NormRows, norm_rows)

}  // namespace adjoin::cpu
#endif
