// plugins/cpu/product/outer.cpp: products whose inner size is 1.
#include "outer.hpp"

#include <adjoin/kit/parallel.hpp>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/product/outer.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
template <class T>
void scaled(T x, const T* y, int64_t n, T* to) {
  for (int64_t j = 0; j < n; ++j) to[j] = x * y[j];
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

template <class T>
void rows(const Gemm<T>& g) {
  const int64_t a_step = g.a.transposed ? 1 : g.a.ld, b_step = g.b.transposed ? g.b.ld : 1;
  kit::parallel_for(g.batch * g.m, kit::grain_of(g.n), [&](int64_t lo, int64_t hi) {
    std::unique_ptr<T[]> copy(b_step == 1 ? nullptr : new T[size_t(g.n)]);
    for (int64_t at = -1; lo < hi; ++lo) {
      const int64_t i = lo / g.m, row = lo % g.m;
      const T* y = g.b.data + i * g.stride_b;
      if (copy && at != i)
        for (int64_t j = 0; j < g.n; ++j) copy[j] = y[j * b_step];
      at = i;
      const T x = g.alpha * g.a.data[i * g.stride_a + row * a_step];
      AJ_SIMD(scaled<T>)(x, copy ? copy.get() : y, g.n, g.c + i * g.stride_c + row * g.ldc);
    }
  });
}

// A column is a row if it is written as one.
template <class T>
void longer_rows(Gemm<T> g) {
  if (g.n == 1 && g.ldc == 1) {
    std::swap(g.a, g.b), std::swap(g.m, g.n), std::swap(g.stride_a, g.stride_b);
    g.a.transposed ^= true, g.b.transposed ^= true;
  }
  rows(g);
}

}  // namespace

void outer(const Gemm<float>& g) { longer_rows(g); }
void outer(const Gemm<double>& g) { longer_rows(g); }

}  // namespace adjoin::cpu
#endif
