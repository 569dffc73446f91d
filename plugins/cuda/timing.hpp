// plugins/cuda/timing.hpp: how long a library's offer takes, where that may be measured.
#ifndef ADJOIN_PLUGINS_CUDA_TIMING_HPP
#define ADJOIN_PLUGINS_CUDA_TIMING_HPP
#include <cuda_runtime_api.h>

namespace adjoin::vendor {

// What is captured must not be waited for.
inline bool capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return stream && cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
}

// Milliseconds of so many runs behind a first one, or a negative number if it does not run.
template <class F>
float milliseconds(cudaStream_t stream, int runs, F run) {
  cudaEvent_t from, until;
  if (cudaEventCreate(&from) != cudaSuccess) return -1;
  if (cudaEventCreate(&until) != cudaSuccess) return (void)cudaEventDestroy(from), -1;
  float ms = -1;
  bool ran = run() && cudaEventRecord(from, stream) == cudaSuccess;
  for (int i = 0; i < runs && ran; ++i) ran = run();
  ran = ran && cudaEventRecord(until, stream) == cudaSuccess;
  if (!ran || cudaEventSynchronize(until) != cudaSuccess ||
      cudaEventElapsedTime(&ms, from, until) != cudaSuccess)
    ms = -1;
  (void)cudaEventDestroy(from);
  (void)cudaEventDestroy(until);
  return ms;
}

}  // namespace adjoin::vendor
#endif
