// plugins/gpu/draw.cuh: the place of a draw of random numbers, as a kernel reaches it.
#ifndef ADJOIN_PLUGINS_GPU_DRAW_CUH
#define ADJOIN_PLUGINS_GPU_DRAW_CUH
#include <adjoin/kit/philox.hpp>

#include "launch.cuh"

namespace adjoin::gpu {

// Of the arguments seed and offset; kernels begin with placed(of it).
inline Philox generator(const aj_call* call, uint32_t seed) {
  Philox draw = {uint64_t(Args(call).integer(seed)), uint64_t(Args(call).integer(seed + 1))};
  if (draw.offset & kInGraph) draw.seed = uint64_t(reach(reinterpret_cast<char*>(draw.seed)));
  return draw;
}

}  // namespace adjoin::gpu
#endif
