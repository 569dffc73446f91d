// plugins/cuda/target.hpp: what the kernel sources of plugins/gpu are written over, compiled by
// nvcc.
#ifndef ADJOIN_PLUGINS_CUDA_TARGET_HPP
#define ADJOIN_PLUGINS_CUDA_TARGET_HPP
#include <cuda_runtime.h>

#define AJ_ARGUMENT const __grid_constant__  // read where it lies: no copy for each thread

namespace adjoin::gpu {

inline __device__ unsigned warp_size() { return 32; }
inline __device__ unsigned shuffle_word(unsigned w, unsigned by) {
  return __shfl_down_sync(0xffffffffu, w, by);
}
inline __device__ unsigned long long warp_ballot(bool vote) {
  return __ballot_sync(0xffffffffu, vote);
}
inline cudaError_t launch_kernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                 void* stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, 0, static_cast<cudaStream_t>(stream));
}

}  // namespace adjoin::gpu

#include "../gpu/vendor/target.hpp"
#endif
