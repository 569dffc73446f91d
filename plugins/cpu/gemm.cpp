// plugins/cpu/gemm.cpp: choosing a provider for a product, and cutting products over the pool.
#include "gemm.hpp"

#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <cstdlib>
#include <iterator>
#include <string>

#include "own_gemm.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

constexpr int64_t kTiny = 8 * 8 * 8;  // a choice among providers would take longer than the product

template <class T>
void scale(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      c[i * ldc + j] = beta == T(0) ? T(0) : scalar::Mul()(beta, c[i * ldc + j]);
}

// ADJOIN_BLAS: a provider's name, or what the provider "library" opens; empty: whoever is fastest.
const std::string& wish() {
  static const std::string* text = [] {
    const char* set = std::getenv("ADJOIN_BLAS");
    return new std::string(set ? set : "");
  }();
  return *text;
}
bool wished(aj_str name) {
  if (wish().empty()) return true;
  return view_of(name) == (wish() == "onednn" || wish() == "own" ? wish() : "library");
}

}  // namespace

Providers::Providers(int64_t elements) {
  const aj_str slot = AJ_STR_LIT("aj.blas/cpu");
  if (elements <= kTiny || !env.services) return;
  int32_t first = 0;
  uint32_t n = std::min<uint32_t>(services().count(slot), std::size(table_));
  for (uint32_t i = 0; i < n; ++i) {
    aj_service_def def = {};
    def.struct_size = sizeof def;
    check(services().at(slot, i, &def));
    if (i == 0)
      first = def.priority;
    else if (def.priority > first)
      break;  // the first is not there by priority: somebody chose it, and it alone
    if (wished(def.name)) table_[count_++] = static_cast<const aj_blas*>(def.table);
  }
}

const aj_blas* Providers::best(const aj_gemm& g) const {
  const aj_blas* found = &own_blas;
  int32_t top = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const aj_blas* table = table_[i];
    int32_t score = AJ_HAS_FN(table, aj_blas, score) ? table->score(table->self, &g) : 0;
    if (score > top) top = score, found = table;
  }
  return found;
}

template <class T>
void gemm(const Providers& from, int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b,
          T beta, T* c, int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) return scale(m, n, beta, c, ldc);
  if constexpr (!is_integer<T>) {
    bool real = true;
    double numbers[2] = {0, 0};
    if constexpr (is_complex<T>) {
      real = alpha.im == 0 && beta.im == 0;
      numbers[0] = alpha.re, numbers[1] = beta.re;
    } else {
      numbers[0] = alpha, numbers[1] = beta;
    }
    if (real && m * n * k > kTiny) {
      aj_gemm g = {};
      g.struct_size = sizeof g;
      g.dtype = dtype_of<T>;
      g.trans_a = a.transposed, g.trans_b = b.transposed;
      g.batch = 1, g.m = m, g.n = n, g.k = k;
      g.lda = a.ld, g.ldb = b.ld, g.ldc = ldc;
      g.a = a.data, g.b = b.data, g.c = c;
      g.alpha = numbers[0], g.beta = numbers[1];
      const aj_blas* blas = from.best(g);
      if (blas != &own_blas) return check(blas->gemm(blas->self, &g));
    }
  }
  own_gemm(m, n, k, alpha, a, b, beta, c, ldc);
}

template <class T>
void gemm_parallel(const Providers& from, int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a,
                   Matrix<T> b, T beta, T* c, int64_t ldc, bool by_shape) {
  bool by_rows = m >= n;
  int64_t longer = by_rows ? m : n, strip = longer;
  if (by_shape) {
    strip = 512;
  } else if (m * n * k >= 1 << 19) {
    int64_t threads = core().num_threads();
    strip = std::max<int64_t>(128, (longer + threads - 1) / threads);
    strip = (strip + 63) / 64 * 64;
  }
  parallel_for(longer, std::max<int64_t>(1, strip), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; lo += strip) {
      int64_t size = std::min(strip, hi - lo);
      if (by_rows)
        gemm(from, size, n, k, alpha, a.rows(lo), b, beta, c + lo * ldc, ldc);
      else
        gemm(from, m, size, k, alpha, a, b.columns(lo), beta, c + lo, ldc);
    }
  });
}

#define AJ_GEMM_(T)                                                                              \
  template void gemm<T>(const Providers&, int64_t, int64_t, int64_t, T, Matrix<T>, Matrix<T>, T, \
                        T*, int64_t);                                                            \
  template void gemm_parallel<T>(const Providers&, int64_t, int64_t, int64_t, T, Matrix<T>,      \
                                 Matrix<T>, T, T*, int64_t, bool);
AJ_GEMM_(float)
AJ_GEMM_(double)
AJ_GEMM_(kit::Complex64)
AJ_GEMM_(kit::Complex128)
AJ_GEMM_(bool)
AJ_GEMM_(uint8_t)
AJ_GEMM_(int8_t)
AJ_GEMM_(int16_t)
AJ_GEMM_(int32_t)
AJ_GEMM_(int64_t)
#undef AJ_GEMM_

}  // namespace adjoin::cpu
