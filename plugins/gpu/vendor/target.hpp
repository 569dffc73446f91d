// plugins/gpu/vendor/target.hpp: what the kernel sources of plugins/gpu are written over, as nvcc
// and hipcc both say it. AJ_GPU_TARGET is the plugin's own header, which has the rest.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_TARGET_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_TARGET_HPP
#include <adjoin/kit/dtype.hpp>

#include "launches.hpp"

#define AJ_GLOBAL __global__
#define AJ_DEVICE __device__
#define AJ_SHARED __shared__

namespace adjoin::gpu {

inline AJ_DEVICE unsigned thread_x() { return threadIdx.x; }
inline AJ_DEVICE unsigned thread_y() { return threadIdx.y; }
inline AJ_DEVICE unsigned block_x() { return blockIdx.x; }
inline AJ_DEVICE unsigned block_y() { return blockIdx.y; }
inline AJ_DEVICE unsigned block_z() { return blockIdx.z; }
inline AJ_DEVICE unsigned threads_x() { return blockDim.x; }
inline AJ_DEVICE unsigned blocks_x() { return gridDim.x; }
inline AJ_DEVICE void sync_block() { __syncthreads(); }

// Of values of any size: in words, as the hardware shuffles them.
template <class T>
AJ_DEVICE T shuffle_down(T x, unsigned by) {
  constexpr unsigned kWords = (sizeof(T) + 3) / 4;
  unsigned words[kWords] = {};
  memcpy(words, &x, sizeof x);
  for (unsigned& w : words) w = shuffle_word(w, by);
  memcpy(&x, words, sizeof x);
  return x;
}

template <class T>
AJ_DEVICE T atomic_add(T* to, T x) {
  return atomicAdd(to, x);
}
// Of functors that the host sees too, and calls only on the device.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
inline AJ_HD int atomic_cas(int* to, int expected, int x) {
  return atomicCAS_system(to, expected, x);
}
inline AJ_HD void fence_for_host() { __threadfence_system(); }
#else
inline AJ_HD int atomic_cas(int*, int expected, int) { return expected; }
inline AJ_HD void fence_for_host() {}
#endif

// Addresses are the device's own.
template <class T>
T* reach(T* p) {
  return p;
}

template <auto Kernel, class P>
void launch_grid(const aj_call* call, unsigned gx, unsigned gy, unsigned gz, unsigned tx,
                 unsigned ty, const P& p) {
  static_assert(sizeof(P) <= vendor::kMostArguments);
  void* arguments[] = {const_cast<P*>(&p)};
  vendor::launch(call, [&](vendor::Stream stream) {
    return launch_kernel(reinterpret_cast<const void*>(Kernel), dim3(gx, gy, gz), dim3(tx, ty, 1),
                         arguments, stream);
  });
}

}  // namespace adjoin::gpu
#endif
