/* tests/plugins/hip_on_cuda/names.h: HIP's names over CUDA's, so that nvcc compiles the kernels of
 * plugins/hip. Stands for hip/hip_runtime.h; only what plugins/hip/target.hpp uses. */
#ifndef ADJOIN_TESTS_HIP_ON_CUDA_H
#define ADJOIN_TESTS_HIP_ON_CUDA_H
#include <cuda_runtime.h>

#define hipError_t cudaError_t
#define hipStream_t cudaStream_t
#define hipLaunchKernel cudaLaunchKernel
#define __shfl_down(x, by) __shfl_down_sync(0xffffffffu, x, by)
#define __ballot(vote) __ballot_sync(0xffffffffu, vote)

#endif
