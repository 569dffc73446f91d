// plugins/cpu/gemm.cpp: choosing a provider for a product, and cutting products over the pool.
#include "gemm.hpp"

#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <cstdlib>
#include <iterator>
#include <string>

#include "blocked.hpp"
#include "own_gemm.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

constexpr int64_t kTiny = 8 * 8 * 8;  // a choice among providers would take longer than the product

template <class T>
void scale(int64_t m, int64_t n, Math<T> beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T& one = c[i * ldc + j];
      one = beta == Math<T>(0) ? T(0) : cast<T>(scalar::Mul()(beta, cast<Math<T>>(one)));
    }
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

namespace {

template <class T>
constexpr bool kReal = std::is_same_v<T, float> || std::is_same_v<T, double> || is_half<T>;

// Our tiles, where they are as good as what is loaded; null: ask the providers.
template <class T>
const Tiles* own_tiles() {
  if constexpr (!kReal<T>) return nullptr;
  static const Tiles* found = tiles(dtype_of<T>);
  return is_half<T> || wish().empty() || wish() == "own" ? found : nullptr;
}

template <class T>
Product product_of(const Gemm<T>& g, const T* a, const T* b, T* c) {
  return {g.m,
          g.n,
          g.k,
          a,
          g.a.ld,
          g.a.transposed,
          b,
          g.b.ld,
          g.b.transposed,
          c,
          g.ldc,
          1,
          double(g.alpha),
          double(g.beta),
          g.bias,
          false};
}

// A bias as what C begins with, for those who know none.
template <class T>
void fill_bias(const Gemm<T>& g, T* c) {
  for (int64_t i = 0; i < g.m; ++i) std::copy_n(g.bias, g.n, c + i * g.ldc);
}

// How C is cut along its longer side: into strips, more than threads where they stay large, as one
// of them may be held up.
struct Cut {
  bool by_rows;
  int64_t longer, size;
  Cut(int64_t m, int64_t n, int64_t threads, int64_t least)
      : by_rows(m >= n), longer(by_rows ? m : n), size(longer) {
    if (threads == 1) return;
    size = std::max<int64_t>(128, (longer + threads - 1) / threads);
    while (size / 2 >= least) size = (size + 1) / 2;
    size = (size + 63) / 64 * 64;
  }
};

// About how long one thread takes: by what it multiplies, or by what it reads of a large matrix.
double estimated_ns(const Product& p, const Tiles& t) {
  double products = double(p.m) * double(p.n) * double(p.k),
         bytes = (double(p.m) + double(p.n)) * double(p.k) * t.stored;
  return std::max(products * t.sum / (t.pair * 200), bytes / 35);
}

template <class T>
void run_tiles(const Gemm<T>& g, const Tiles& t) {
  constexpr double kWorth = 15'000;  // ns: less is not worth waking a thread
  auto whole = [&](int64_t i) {
    return best_way(
        product_of(g, g.a.data + i * g.stride_a, g.b.data + i * g.stride_b, g.c + i * g.stride_c),
        t);
  };
  int64_t threads = core().num_threads();
  double ns = estimated_ns(whole(0), t);
  if (g.batch > 1 && (ns < 4 * kWorth || g.batch >= 4 * threads))
    return parallel_for(g.batch, std::max<int64_t>(1, int64_t(kWorth / ns)),
                        [&](int64_t lo, int64_t hi) {
                          for (; lo < hi; ++lo) blocked(whole(lo), t);
                        });
  for (int64_t i = 0; i < g.batch; ++i) {
    Product p = whole(i);
    if (ns < 2 * kWorth || threads == 1) {
      blocked(p, t);
      continue;
    }
    Cut cut(p.m, p.n, threads, 384);
    parallel_for(cut.longer, cut.size, [&](int64_t lo, int64_t hi) {
      blocked(cut.by_rows ? part(p, t, lo, 0, hi - lo, p.n) : part(p, t, 0, lo, p.m, hi - lo), t);
    });
  }
}

}  // namespace

bool multiplies_halves() { return own_tiles<Half>() != nullptr; }

template <class T>
void gemm(const Providers& from, int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b,
          T beta, T* c, int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) return scale(m, n, beta, c, ldc);
  if constexpr (kReal<T>) {
    if (const Tiles* t = own_tiles<T>()) {
      Gemm<T> g = {m, n, k, a, b, c, ldc, alpha, beta};
      return blocked(best_way(product_of(g, a.data, b.data, c), *t), *t);
    }
  }
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

namespace {

template <class T>
void run_providers(const Gemm<T>& g, bool by_shape) {
  Providers from(g.m * g.n * g.k);
  auto one = [&](int64_t i, bool rows, int64_t lo, int64_t hi) {
    T* c = g.c + i * g.stride_c + (rows ? lo * g.ldc : lo);
    Matrix<T> a = {g.a.data + i * g.stride_a, g.a.ld, g.a.transposed},
              b = {g.b.data + i * g.stride_b, g.b.ld, g.b.transposed};
    gemm<T>(from, rows ? hi - lo : g.m, rows ? g.n : hi - lo, g.k, g.alpha, rows ? a.rows(lo) : a,
            rows ? b : b.columns(lo), g.beta, c, g.ldc);
  };
  if (g.batch > 1 && g.batch >= core().num_threads())
    return parallel_for(g.batch, grain_of(g.m * g.n * g.k, 1 << 18), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) one(lo, true, 0, g.m);
    });
  bool small = g.m * g.n * g.k < 1 << 19;
  Cut cut(g.m, g.n, small ? 1 : core().num_threads(), INT64_MAX);
  if (by_shape) cut.size = 512;
  for (int64_t i = 0; i < g.batch; ++i)
    parallel_for(cut.longer, cut.size, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; lo += cut.size) one(i, cut.by_rows, lo, std::min(lo + cut.size, hi));
    });
}

}  // namespace

template <class T>
void multiply(const Gemm<T>& g, bool by_shape) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  if (g.k <= 0) {
    for (int64_t i = 0; i < g.batch; ++i) {
      T* c = g.c + i * g.stride_c;
      if (g.bias)
        fill_bias(g, c);
      else
        scale(g.m, g.n, g.beta, c, g.ldc);
    }
    return;
  }
  if constexpr (kReal<T>) {
    const Tiles* t = own_tiles<T>();
    if (t) return run_tiles(g, *t);
  }
  if constexpr (is_half<T>) {
    raise(AJ_INTERNAL, "multiply: no tiles for halves");
  } else {
    Gemm<T> h = g;
    if (g.bias) {
      for (int64_t i = 0; i < g.batch; ++i) fill_bias(g, g.c + i * g.stride_c);
      h.beta = T(1);
    }
    run_providers(h, by_shape);
  }
}

#define AJ_MULTIPLY_(T) template void multiply<T>(const Gemm<T>&, bool);
#define AJ_GEMM_(T)                                                                              \
  template void gemm<T>(const Providers&, int64_t, int64_t, int64_t, T, Matrix<T>, Matrix<T>, T, \
                        T*, int64_t);                                                            \
  AJ_MULTIPLY_(T)
AJ_MULTIPLY_(Half)
AJ_MULTIPLY_(BFloat16)
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
#undef AJ_MULTIPLY_

}  // namespace adjoin::cpu
