// plugins/cpu/lines/group_norm_rows.cpp: parts of a group norm in vector code.
#include "group_norm_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lines/group_norm_rows.cpp"
#include "vector/simd.hpp"

// after it, once per target
#include "vector/row_math-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
void scaled(const T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t n, T mean, T rstd, T weight, T bias,
            bool past_cache) {
  rows::write(y, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
    auto hat = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
    return hn::MulAdd(hat, hn::Set(d, weight), hn::Set(d, bias));
  });
}

template <class T>
void sums(const T* HWY_RESTRICT g, const T* HWY_RESTRICT x, int64_t n, T mean, T rstd, double* of_g,
          double* of_hat) {
  *of_g = rows::total<T>(n, [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, g + i); });
  *of_hat = rows::total<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    auto hat = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
    return hn::Mul(hn::LoadU(d, g + i), hat);
  });
}

template <class T>
void gradient(const T* HWY_RESTRICT g, const T* HWY_RESTRICT x, T* HWY_RESTRICT dx, int64_t n,
              T mean, T rstd, T weight, T of_one, T of_hat, bool past_cache) {
  rows::write(dx, n, past_cache, [=](auto d, int64_t i) HWY_ATTR {
    auto hat = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
    auto v = hn::Sub(hn::Mul(hn::LoadU(d, g + i), hn::Set(d, weight)), hn::Set(d, of_one));
    return hn::Mul(hn::Set(d, rstd), hn::NegMulAdd(hat, hn::Set(d, of_hat), v));
  });
}

template <class T>
constexpr GroupRows<T> kRows = {&rows::statistics<T>, &scaled<T>, &sums<T>, &gradient<T>};

}  // namespace

AJ_CODE(GroupRows, group_rows, kRows)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

AJ_CHOSEN_CODE(GroupRows, group_rows)

}  // namespace adjoin::cpu
#endif
