// plugins/cpu/index_rows.cpp: one row added to another in vector code.
#include "index_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "index_rows.cpp"
#include "simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
void add_one(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, T alpha, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  auto by = hn::Set(d, alpha);
  int64_t j = 0;
  for (; j + L <= n; j += L)
    hn::StoreU(hn::Add(hn::LoadU(d, a + j), hn::Mul(by, hn::LoadU(d, b + j))), d, a + j);
  for (; j < n; ++j) a[j] += alpha * b[j];
}

}  // namespace

void add_row_f32(float* a, const float* b, float alpha, int64_t n) { add_one(a, b, alpha, n); }
void add_row_f64(double* a, const double* b, double alpha, int64_t n) { add_one(a, b, alpha, n); }

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

void add_row(float* a, const float* b, float alpha, int64_t n) {
  AJ_SIMD(add_row_f32)(a, b, alpha, n);
}
void add_row(double* a, const double* b, double alpha, int64_t n) {
  AJ_SIMD(add_row_f64)(a, b, alpha, n);
}

}  // namespace adjoin::cpu
#endif
