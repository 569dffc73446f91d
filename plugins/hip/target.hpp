// plugins/hip/target.hpp: what the kernel sources of plugins/gpu are written over, compiled by
// hipcc.
#ifndef ADJOIN_PLUGINS_HIP_TARGET_HPP
#define ADJOIN_PLUGINS_HIP_TARGET_HPP
#include <hip/hip_runtime.h>

#define AJ_ARGUMENT const

namespace adjoin::gpu {

inline __device__ unsigned warp_size() { return unsigned(warpSize); }  // 64, or 32 on newer ones
inline __device__ unsigned shuffle_word(unsigned w, unsigned by) {
  return unsigned(__shfl_down(int(w), by));
}
inline __device__ unsigned long long warp_ballot(bool vote) { return __ballot(vote); }
inline hipError_t launch_kernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                void* stream) {
  return hipLaunchKernel(kernel, grid, block, arguments, 0, static_cast<hipStream_t>(stream));
}

}  // namespace adjoin::gpu

#include "../gpu/vendor/target.hpp"
#endif
