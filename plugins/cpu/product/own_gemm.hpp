// plugins/cpu/product/own_gemm.hpp: products of our own, for every type: what serves where no BLAS
// is found, and what is faster than calling one for tiny problems.
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_OWN_GEMM_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_OWN_GEMM_HPP
#include <adjoin/kit/scalar.hpp>
#include <algorithm>
#include <memory>

#include "gemm.hpp"

namespace adjoin::cpu {

constexpr int64_t kTileRows = 4;
template <class T>
constexpr int64_t kTileColumns = std::max<int64_t>(4, 64 / int64_t(sizeof(T)));

// A tile of C, all of k: a is [k][rows], b is [k][columns], both packed and padded with zeros.
// float32, float64 and int64 have vector code in own_gemm.cpp.
template <class T>
inline void tile(int64_t k, const T* a, const T* b, T* sum) {
  constexpr int64_t R = kTileRows, C = kTileColumns<T>;
  std::fill_n(sum, R * C, T(0));
  for (int64_t p = 0; p < k; ++p, a += R, b += C)
    for (int64_t i = 0; i < R; ++i)
      for (int64_t j = 0; j < C; ++j)
        sum[i * C + j] = kit::scalar::Add()(sum[i * C + j], kit::scalar::Mul()(a[i], b[j]));
}
void tile(int64_t k, const float* a, const float* b, float* sum);
void tile(int64_t k, const double* a, const double* b, double* sum);
void tile(int64_t k, const int64_t* a, const int64_t* b, int64_t* sum);

// Packs `width` rows (or columns) of op(x) side by side: out[p * width + i] = x(i, p).
template <class T>
void pack(Matrix<T> x, bool by_rows, int64_t count, int64_t width, int64_t k, T* out) {
  int64_t step_i = by_rows != x.transposed ? x.ld : 1, step_p = by_rows != x.transposed ? 1 : x.ld;
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < width; ++i)
      out[p * width + i] = i < count ? x.data[i * step_i + p * step_p] : T(0);
}

// No packing, no memory: a row of C at a time.
template <class T>
void tiny_gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
               int64_t ldc) {
  using namespace kit::scalar;
  constexpr int64_t block = 16;
  int64_t a_row = a.transposed ? 1 : a.ld, a_step = a.transposed ? a.ld : 1;
  int64_t b_row = b.transposed ? 1 : b.ld, b_step = b.transposed ? b.ld : 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t at = 0; at < n; at += block) {
      T sum[block] = {};
      int64_t width = std::min(block, n - at);
      for (int64_t p = 0; p < k; ++p) {
        T x = a.data[i * a_row + p * a_step];
        const T* y = b.data + p * b_row + at * b_step;
        if (b_step == 1) {
          for (int64_t j = 0; j < width; ++j) sum[j] = Add()(sum[j], Mul()(x, y[j]));
        } else {
          for (int64_t j = 0; j < width; ++j) sum[j] = Add()(sum[j], Mul()(x, y[j * b_step]));
        }
      }
      for (int64_t j = 0; j < width; ++j) {
        T& out = c[i * ldc + at + j];
        T product = Mul()(alpha, sum[j]);
        out = beta == T(0) ? product : Add()(product, Mul()(beta, out));
      }
    }
}

template <class T>
void own_gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
              int64_t ldc) {
  using namespace kit::scalar;
  if (m * n * k <= 4096) return tiny_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  constexpr int64_t R = kTileRows, C = kTileColumns<T>;
  std::unique_ptr<T[]> left(new T[size_t((m + R - 1) / R * R * k)]), right(new T[size_t(C * k)]);
  for (int64_t i = 0; i < m; i += R) pack(a.rows(i), true, std::min(R, m - i), R, k, &left[i * k]);
  T sum[R * C];
  for (int64_t j = 0; j < n; j += C) {
    pack(b.columns(j), false, std::min(C, n - j), C, k, right.get());
    for (int64_t i = 0; i < m; i += R) {
      tile(k, &left[i * k], right.get(), sum);
      for (int64_t r = 0; r < std::min(R, m - i); ++r)
        for (int64_t s = 0; s < std::min(C, n - j); ++s) {
          T& out = c[(i + r) * ldc + j + s];
          T product = Mul()(alpha, sum[r * C + s]);
          out = beta == T(0) ? product : Add()(product, Mul()(beta, out));
        }
    }
  }
}

}  // namespace adjoin::cpu
#endif
