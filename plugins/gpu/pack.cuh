// plugins/gpu/pack.cuh: as many elements as a thread moves at once, and halves as the hardware
// reads and rounds them.
#ifndef ADJOIN_PLUGINS_GPU_PACK_CUH
#define ADJOIN_PLUGINS_GPU_PACK_CUH
#include "launch.cuh"

// Of loops over what must stay in registers.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define AJ_UNROLL _Pragma("unroll")
#else
#define AJ_UNROLL
#endif

namespace adjoin::gpu {

constexpr int kVector = 16;  // bytes
template <class T>
inline constexpr int64_t kPack = kVector / int64_t(sizeof(T));
template <class T>
struct alignas(kVector) Pack {
  T at[kPack<T>];
};
AJ_HD inline bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kVector == 0; }

// A stored element as it is computed with, and back: one instruction each where there is one.
template <class T, class S>
AJ_HD inline T widened(S x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<S, Half> && std::is_same_v<T, float>) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
    return f;
  }
#elif defined(__HIP_DEVICE_COMPILE__)
  if constexpr (std::is_same_v<S, Half> && std::is_same_v<T, float>)
    return float(std::bit_cast<_Float16>(x.bits));
#endif
  return T(x);
}
template <class S, class T>
AJ_HD inline S narrowed(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<S, Half> && std::is_same_v<T, float>) {
    S half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
    return half;
  }
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<S, BFloat16> && std::is_same_v<T, float>) {
    S half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
    return half;
  }
#endif
#elif defined(__HIP_DEVICE_COMPILE__)
  if constexpr (std::is_same_v<S, Half> && std::is_same_v<T, float>) {
    S half;
    half.bits = std::bit_cast<uint16_t>(_Float16(x));
    return half;
  }
#endif
  return S(x);
}

}  // namespace adjoin::gpu
#endif
