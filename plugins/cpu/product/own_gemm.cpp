// plugins/cpu/product/own_gemm.cpp: the innermost tile of our own product, in vector registers.
#include "own_gemm.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/product/own_gemm.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
// 64 bytes, which the compiler splits into what the processor has. (gcc would take no such type of
// a template's parameter.)
template <class T>
struct Wide;
template <>
struct Wide<float> {
  using Vector = float __attribute__((vector_size(64)));
};
template <>
struct Wide<double> {
  using Vector = double __attribute__((vector_size(64)));
};
// Where products of 64 bits are made of several, their parts take the registers.
template <>
struct Wide<uint64_t> {
  static constexpr int kBytes = HWY_TARGET <= HWY_AVX3 ? 64 : 32;
  using Vector = uint64_t __attribute__((vector_size(kBytes)));
};

// Four rows of a tile. What is in memory is copied: clang takes a pointer to such a vector for one
// to 64 bytes in line, whatever the type says.
template <class T>
void four_rows(int64_t k, const T* a, const T* b, T* sum) {
  using Vector = typename Wide<T>::Vector;
  constexpr size_t columns = 64 / sizeof(T);
  for (size_t j = 0; j < columns; j += sizeof(Vector) / sizeof(T)) {
    Vector s0 = {}, s1 = {}, s2 = {}, s3 = {}, y;
    const T *x = a, *row = b + j;
    for (int64_t p = 0; p < k; ++p, x += 4, row += columns) {
      std::memcpy(&y, row, sizeof y);
      s0 += x[0] * y, s1 += x[1] * y, s2 += x[2] * y, s3 += x[3] * y;
    }
    T* to = sum + j;
    std::memcpy(to, &s0, sizeof s0);
    std::memcpy(to + columns, &s1, sizeof s1);
    std::memcpy(to + 2 * columns, &s2, sizeof s2);
    std::memcpy(to + 3 * columns, &s3, sizeof s3);
  }
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
template <class T>
void four_rows(int64_t k, const T* a, const T* b, T* sum) {
  static const auto chosen = AJ_SIMD(four_rows<T>);
  chosen(k, a, b, sum);
}
}  // namespace

static_assert(kTileRows == 4 && kTileColumns<float> == 16 && kTileColumns<double> == 8);
void tile(int64_t k, const float* a, const float* b, float* sum) { four_rows(k, a, b, sum); }
void tile(int64_t k, const double* a, const double* b, double* sum) { four_rows(k, a, b, sum); }
// Whole numbers wrap.
void tile(int64_t k, const int64_t* a, const int64_t* b, int64_t* sum) {
  auto bits = [](const int64_t* x) { return reinterpret_cast<const uint64_t*>(x); };
  four_rows(k, bits(a), bits(b), reinterpret_cast<uint64_t*>(sum));
}

}  // namespace adjoin::cpu
#endif
