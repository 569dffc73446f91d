// plugins/ops_linalg/cpu/reflections.cpp: Householder's reflections of a few columns, one by one,
// as vector code.
#include <adjoin/kit/factor.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops_linalg/cpu/householder.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_linalg/cpu/reflections.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
#include "vector/lanes.hpp"
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
constexpr int64_t kLanes = HWY_LANES(T);

// The length of x; plain loops scale where squares would leave the range.
template <class T>
HWY_INLINE T length(const T* x, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  auto s = hn::Zero(d), t = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const auto p = hn::LoadU(d, x + i), q = hn::LoadU(d, x + i + L);
    s = hn::MulAdd(p, p, s), t = hn::MulAdd(q, q, t);
  }
  for (; i < n; i += L) {
    const auto p = load_n(d, x + i, size_t(std::min(L, n - i)));
    s = hn::MulAdd(p, p, s);
  }
  const T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s, t)));
  constexpr T least = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  return sum >= least && sum <= 1 / least ? std::sqrt(sum) : kit::factor::norm(x, n);
}

// x -= tau (v . x) v for `wide` columns, ld apart.
template <int wide, class T>
HWY_INLINE void reflect(const T* v, T tau, T* x, int64_t ld, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  hn::Vec<Tag<T>> sum[wide];
#pragma GCC unroll 4
  for (int c = 0; c < wide; ++c) sum[c] = hn::Zero(d);
  const int64_t whole = n / L * L;
  const size_t rest = size_t(n - whole);
  for (int64_t i = 0; i < whole; i += L) {
    const auto p = hn::LoadU(d, v + i);
#pragma GCC unroll 4
    for (int c = 0; c < wide; ++c) sum[c] = hn::MulAdd(p, hn::LoadU(d, x + c * ld + i), sum[c]);
  }
  if (rest) {
    const auto p = load_n(d, v + whole, rest);
#pragma GCC unroll 4
    for (int c = 0; c < wide; ++c)
      sum[c] = hn::MulAdd(p, load_n(d, x + c * ld + whole, rest), sum[c]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < wide; ++c) sum[c] = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum[c])) * tau);
  for (int64_t i = 0; i < whole; i += L) {
    const auto p = hn::LoadU(d, v + i);
#pragma GCC unroll 4
    for (int c = 0; c < wide; ++c) {
      T* at = x + c * ld + i;
      hn::StoreU(hn::NegMulAdd(p, sum[c], hn::LoadU(d, at)), d, at);
    }
  }
  if (rest) {
    const auto p = load_n(d, v + whole, rest);
#pragma GCC unroll 4
    for (int c = 0; c < wide; ++c) {
      T* at = x + c * ld + whole;
      store_n(hn::NegMulAdd(p, sum[c], load_n(d, at, rest)), d, at, rest);
    }
  }
}

template <class T>
void panel(T* a, int64_t ld, int64_t m, int64_t n, T* tau) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* v = a + j * ld + j;
    T alpha = *v, rest = length(v + 1, m - j - 1), unit = 1;
    tau[j] = 0;
    if (rest == 0) continue;
    if (std::hypot(alpha, rest) < kit::factor::kShort<T>) {
      unit = kit::factor::kShort<T>;
      for (int64_t i = 0; i < m - j; ++i) v[i] /= unit;
      alpha = *v, rest = length(v + 1, m - j - 1);
    }
    const T beta = -std::copysign(std::hypot(alpha, rest), alpha), scale = T(1) / (alpha - beta);
    tau[j] = (beta - alpha) / beta;
    if (std::isnormal(scale) && std::isnormal(alpha - beta))
      for (int64_t i = 1; i < m - j; i += L) {
        const size_t some = size_t(std::min(L, m - j - i));
        store_n(hn::Mul(load_n(d, v + i, some), hn::Set(d, scale)), d, v + i, some);
      }
    else
      for (int64_t i = 1; i < m - j; ++i) v[i] /= alpha - beta;
    *v = 1;
    int64_t k = j + 1;
    for (; k + 4 <= n; k += 4) reflect<4>(v, tau[j], a + k * ld + j, ld, m - j);
    for (; k < n; ++k) reflect<1>(v, tau[j], a + k * ld + j, ld, m - j);
    *v = beta * unit;
  }
}

template <class T>
constexpr householder::Code<T> kCode = {&panel<T>};

}  // namespace

AJ_CODE(householder::Code, code, kCode)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu::householder {
AJ_CHOSEN_CODE(Code, code)
}  // namespace adjoin::cpu::householder
#endif
