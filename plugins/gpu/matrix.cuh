// plugins/gpu/matrix.cuh: the units that multiply matrices. A block of 64 threads adds the product
// of two strips of 16-bit numbers to its square of 32 x 32 sums: NVIDIA's two warps by four
// mma.sync each, AMD's wave by two MFMA, who has no such units by plain sums. Which sums are a
// thread's own depends on the unit.
#ifndef ADJOIN_PLUGINS_GPU_MATRIX_CUH
#define ADJOIN_PLUGINS_GPU_MATRIX_CUH
#include "launch.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define AJ_MATRIX_MMA 1
#elif defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define AJ_MATRIX_MFMA 1
#endif

namespace adjoin::gpu {

constexpr int kDepth = 16;              // of a strip
constexpr int kDepthLine = kDepth + 8;  // from row to row in shared memory: each in other banks
template <class T>
using Strip = T[32][kDepthLine];  // rows of the left factor, or columns of the right one

// Where the thread's sum [i][j] of a square stands.
AJ_DEVICE inline int matrix_row(int i, int j) {
  int me = int(thread_x());
#if defined(AJ_MATRIX_MFMA)
  return 8 * i + 4 * (me / 32) + j;
#else
  (void)i;
  return 16 * (me / 32) + me % 32 / 4 + 8 * (j / 2);
#endif
}
AJ_DEVICE inline int matrix_column(int i, int j) {
  int me = int(thread_x());
#if defined(AJ_MATRIX_MFMA)
  (void)i, (void)j;
  return me % 32;
#else
  return 8 * i + me % 4 * 2 + j % 2;
#endif
}

#if defined(AJ_MATRIX_MMA)

template <class T>
AJ_DEVICE inline uint32_t two_of(const T* p) {
  return *reinterpret_cast<const uint32_t*>(p);
}
// Rows of the left strip from row0, columns of the right one from column0; registers as the
// instruction wants them.
template <class T>
AJ_DEVICE inline void add_product(const Strip<T>& left, const Strip<T>& right, float (&sum)[4][4]) {
  int lane = int(thread_x()) % 32, row = 16 * (int(thread_x()) / 32) + lane / 4, k = lane % 4 * 2;
  uint32_t a0 = two_of(&left[row][k]), a1 = two_of(&left[row + 8][k]),
           a2 = two_of(&left[row][k + 8]), a3 = two_of(&left[row + 8][k + 8]);
  for (int i = 0; i < 4; ++i) {
    int column = 8 * i + lane / 4;
    uint32_t b0 = two_of(&right[column][k]), b1 = two_of(&right[column][k + 8]);
    float(&c)[4] = sum[i];
    if constexpr (std::is_same_v<T, Half>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

#elif defined(AJ_MATRIX_MFMA)

template <class T>
AJ_DEVICE inline void add_product(const Strip<T>& left, const Strip<T>& right, float (&sum)[4][4]) {
  using Sums = float __attribute__((ext_vector_type(16)));
  using Halves = _Float16 __attribute__((ext_vector_type(4)));
  using Shorts = short __attribute__((ext_vector_type(4)));
  int line = int(thread_x()) % 32, part = int(thread_x()) / 32 * 4;
  Sums all;
  for (int i = 0; i < 16; ++i) all[i] = sum[i / 4][i % 4];
  for (int k = 0; k < kDepth; k += 8) {
    if constexpr (std::is_same_v<T, Half>) {
      Halves a = *reinterpret_cast<const Halves*>(&left[line][k + part]),
             b = *reinterpret_cast<const Halves*>(&right[line][k + part]);
      all = __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, all, 0, 0, 0);
    } else {
      Shorts a = *reinterpret_cast<const Shorts*>(&left[line][k + part]),
             b = *reinterpret_cast<const Shorts*>(&right[line][k + part]);
      all = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, all, 0, 0, 0);
    }
  }
  for (int i = 0; i < 16; ++i) sum[i / 4][i % 4] = all[i];
}

#else

template <class T>
AJ_DEVICE inline void add_product(const Strip<T>& left, const Strip<T>& right, float (&sum)[4][4]) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int row = matrix_row(i, j), column = matrix_column(i, j);
      for (int k = 0; k < kDepth; ++k) sum[i][j] += float(left[row][k]) * float(right[column][k]);
    }
}

#endif

}  // namespace adjoin::gpu
#endif
