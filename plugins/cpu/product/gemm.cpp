// plugins/cpu/product/gemm.cpp: products by our own code or by a provider, cut over the pool.
#include "gemm.hpp"

#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/prepared.hpp>
#include <adjoin/kit/scalar.hpp>

#include "blocked.hpp"
#include "outer.hpp"
#include "own_gemm.hpp"
#include "providers.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

template <class T>
void scale(int64_t m, int64_t n, Math<T> beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T& one = c[i * ldc + j];
      one = beta == Math<T>(0) ? T(0) : cast<T>(scalar::Mul()(beta, cast<Math<T>>(one)));
    }
}

template <class T>
constexpr bool kReal = std::is_same_v<T, float> || std::is_same_v<T, double> || is_half<T>;

// Our vector code for the type, null where there is none.
template <class T>
const Tiles* own_tiles() {
  if constexpr (!kReal<T>) return nullptr;
  static const Tiles* found = tiles(dtype_of<T>);
  return found;
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
    size = std::max<int64_t>(64, (longer + threads - 1) / threads);
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

// With B packed before, if it is a tensor that is multiplied again and again.
template <class T>
Tensor with_packed_b(const Gemm<T>& g, const Tiles& t, Product* p) {
  if (!g.b_tensor || g.batch != 1) return Tensor();
  Product plain = product_of(g, g.a.data, g.b.data, g.c);
  PackedB b = whole_packed(plain, t);
  if (!b.block) return Tensor();
  // A square matrix may come as it is and transposed: linear, and the product in its derivative.
  const int64_t key[] = {1, t.lanes, t.pair, t.packed, b.block, b.columns, g.b.transposed};
  Tensor form = prepared(TensorView(g.b_tensor), key, [&] {
    int64_t bytes[1] = {int64_t(packed_bytes(plain, t, b))};
    Tensor made = Tensor::steal(new_tensor({kDLCPU, 0}, dtype_of<uint8_t>, bytes));
    pack_whole(plain, t, b, MutView(made.get()).bytes());
    return made;
  });
  if (!form.defined()) return form;
  b.data = TensorView(form.get()).bytes();
  plain.packed = b;
  *p = plain;
  return form;
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
    Tensor packed = with_packed_b(g, t, &p);
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

// How a provider sees it; alpha and beta are real.
template <class T>
aj_gemm as_gemm(const Gemm<T>& g) {
  aj_gemm out = {};
  out.struct_size = sizeof out;
  out.dtype = dtype_of<T>;
  out.device = {kDLCPU, 0};
  out.trans_a = g.a.transposed, out.trans_b = g.b.transposed;
  out.batch = 1, out.m = g.m, out.n = g.n, out.k = g.k;
  out.lda = g.a.ld, out.ldb = g.b.ld, out.ldc = g.ldc;
  out.a = g.a.data, out.b = g.b.data, out.c = g.c;
  if constexpr (is_complex<T>)
    out.alpha = g.alpha.re, out.beta = g.beta.re;
  else
    out.alpha = double(g.alpha), out.beta = double(g.beta);
  return out;
}

// Null: our own code serves. In the deterministic mode the choice is that of one thread.
template <class T>
const aj_blas* provider_of(const Gemm<T>& g, int threads, bool by_shape = false) {
  if constexpr (is_integer<T>) {
    return nullptr;
  } else {
    if constexpr (is_complex<T>)
      if (g.alpha.im != 0 || g.beta.im != 0) return nullptr;
    Problem p = {dtype_of<T>, g.a.transposed, g.b.transposed, g.m, g.n, g.k, threads};
    return serving(p, own_tiles<T>() != nullptr, [&] {
      aj_gemm problem = as_gemm(g);
      if (by_shape) problem.flags = AJ_GEMM_DETERMINISTIC;
      return problem;
    });
  }
}

// On the calling thread, without a batch and a bias.
template <class T>
void one_product(const aj_blas* who, const Gemm<T>& g, bool by_shape = false) {
  if constexpr (!is_integer<T>) {
    if (who && g.m * g.n * g.k > kTiny) {
      aj_gemm problem = as_gemm(g);
      if (by_shape) problem.flags = AJ_GEMM_DETERMINISTIC;
      if (score_of(who, problem) > 0) return product_by(who, problem);
    }
  }
  own_product(g);
}

template <class T>
void run_provider(const aj_blas* who, const Gemm<T>& g, bool by_shape) {
  auto one = [&](int64_t i, bool rows, int64_t lo, int64_t hi) {
    Gemm<T> part = g;
    part.batch = 1;
    part.a.data += i * g.stride_a, part.b.data += i * g.stride_b;
    part.c += i * g.stride_c + (rows ? lo * g.ldc : lo);
    (rows ? part.m : part.n) = hi - lo;
    if (rows)
      part.a = part.a.rows(lo);
    else
      part.b = part.b.columns(lo);
    one_product(who, part, by_shape);
  };
  int64_t work = g.m * g.n * g.k, threads = work < 1 << 19 ? 1 : core().num_threads();
  bool whole = g.batch > 1 && g.batch >= core().num_threads();
  Cut cut(g.m, g.n, whole ? 1 : threads, INT64_MAX);
  if (by_shape) cut.size = 512;
  auto strips = [&](int64_t i, int64_t lo, int64_t hi) {
    for (; lo < hi; lo += cut.size) one(i, cut.by_rows, lo, std::min(lo + cut.size, hi));
  };
  if (whole)
    return parallel_for(g.batch, grain_of(work, 1 << 18), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) strips(lo, 0, cut.longer);
    });
  for (int64_t i = 0; i < g.batch; ++i)
    parallel_for(cut.longer, cut.size, [&](int64_t lo, int64_t hi) { strips(i, lo, hi); });
}

}  // namespace

bool multiplies_halves() { return own_tiles<Half>() != nullptr; }
bool has_vectors(DLDataType dtype) { return tiles(dtype) != nullptr; }

template <class T>
void own_product(const Gemm<T>& g) {
  if constexpr (kReal<T>) {
    if (const Tiles* t = own_tiles<T>())
      return blocked(best_way(product_of(g, g.a.data, g.b.data, g.c), *t), *t);
  }
  if constexpr (is_half<T>)
    raise(AJ_INTERNAL, "multiply: no tiles for halves");
  else
    own_gemm(g.m, g.n, g.k, g.alpha, g.a, g.b, g.beta, g.c, g.ldc);
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
          int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) return scale(m, n, beta, c, ldc);
  Gemm<T> g = {m, n, k, a, b, c, ldc, alpha, beta};
  one_product(provider_of(g, 1), g);
}

template <class T>
void multiply_by(const aj_blas* who, const Gemm<T>& g, bool by_shape) {
  if constexpr (kReal<T>) {
    const Tiles* t = own_tiles<T>();
    if (!who && t) return run_tiles(g, *t);
  }
  Gemm<T> h = g;
  if (g.bias) {
    for (int64_t i = 0; i < g.batch; ++i) fill_bias(g, g.c + i * g.stride_c);
    h.beta = Math<T>(1), h.bias = nullptr;
  }
  run_provider(who, h, by_shape);
}

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
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (g.k == 1 && g.beta == T(0) && !g.bias) return outer(g);
  multiply_by(provider_of(g, by_shape ? 1 : core().num_threads(), by_shape), g, by_shape);
}

#define AJ_MULTIPLY_(T)                                                   \
  template void multiply<T>(const Gemm<T>&, bool);                        \
  template void multiply_by<T>(const aj_blas* who, const Gemm<T>&, bool); \
  template void own_product<T>(const Gemm<T>&);
#define AJ_GEMM_(T)                                                                          \
  template void gemm<T>(int64_t, int64_t, int64_t, T, Matrix<T>, Matrix<T>, T, T*, int64_t); \
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
