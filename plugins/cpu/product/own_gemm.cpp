// plugins/cpu/product/own_gemm.cpp: the innermost tile of our own product, in vector registers.
#include "own_gemm.hpp"

#include "vector/clones.hpp"

namespace adjoin::cpu {
namespace {

// Four rows of 64 bytes: the compiler splits the vectors into what the processor has. (A lambda
// would not be cloned with the function that it stands in, so the body is a macro.)
#define AJ_TILE_(T, N)                                                    \
  using Vector = T __attribute__((vector_size(64), aligned(alignof(T)))); \
  Vector s0 = {}, s1 = {}, s2 = {}, s3 = {};                              \
  for (int64_t p = 0; p < k; ++p, a += 4, b += N) {                       \
    Vector y = *reinterpret_cast<const Vector*>(b);                       \
    s0 += a[0] * y, s1 += a[1] * y, s2 += a[2] * y, s3 += a[3] * y;       \
  }                                                                       \
  Vector* out = reinterpret_cast<Vector*>(sum);                           \
  out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3

#define AJ_TILE_FUNCTION_ \
  AJ_CLONES               \
  __attribute__((no_sanitize("alignment")))  // clang's check asks for 64 bytes all the same
AJ_TILE_FUNCTION_ void tile32(int64_t k, const float* a, const float* b, float* sum) {
  AJ_TILE_(float, 16);
}
AJ_TILE_FUNCTION_ void tile64(int64_t k, const double* a, const double* b, double* sum) {
  AJ_TILE_(double, 8);
}
// Products of 64 bits need an instruction that the clones don't ask for. (Clang reads 64 bytes as
// aligned ones whatever the type says.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target("avx512f,avx512dq"), no_sanitize("alignment"))) void tile_dq(
    int64_t k, const uint64_t* a, const uint64_t* b, uint64_t* sum) {
  AJ_TILE_(uint64_t, 8);
}
const bool has_dq = __builtin_cpu_supports("avx512dq");
#endif
__attribute__((no_sanitize("alignment"))) void tile_int64(int64_t k, const uint64_t* a,
                                                          const uint64_t* b, uint64_t* sum) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (has_dq) return tile_dq(k, a, b, sum);
#endif
  AJ_TILE_(uint64_t, 8);
}
#undef AJ_TILE_FUNCTION_
#undef AJ_TILE_

}  // namespace

static_assert(kTileRows == 4 && kTileColumns<float> == 16 && kTileColumns<double> == 8);
void tile(int64_t k, const float* a, const float* b, float* sum) { tile32(k, a, b, sum); }
void tile(int64_t k, const double* a, const double* b, double* sum) { tile64(k, a, b, sum); }
// Whole numbers wrap.
void tile(int64_t k, const int64_t* a, const int64_t* b, int64_t* sum) {
  auto bits = [](const int64_t* x) { return reinterpret_cast<const uint64_t*>(x); };
  tile_int64(k, bits(a), bits(b), reinterpret_cast<uint64_t*>(sum));
}

}  // namespace adjoin::cpu
