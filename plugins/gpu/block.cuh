// plugins/gpu/block.cuh: a block's threads join their states to one: a fixed tree over the threads,
// the same for warps of 32 and of 64.
#ifndef ADJOIN_PLUGINS_GPU_BLOCK_CUH
#define ADJOIN_PLUGINS_GPU_BLOCK_CUH
#include "launch.cuh"

namespace adjoin::gpu {

constexpr unsigned kBlock = 128;  // threads of a block that joins

// Every thread of the block calls it; all get the result.
template <class State, class Join>
AJ_DEVICE State join_block(State mine, const Join& join) {
  AJ_SHARED double room[(kBlock * sizeof(State) + 7) / 8];
  State* shared = reinterpret_cast<State*>(room);
  unsigned me = thread_x(), warp = warp_size();
  for (unsigned half = kBlock / 2; half >= warp; half /= 2) {
    if (me >= half && me < 2 * half) shared[me] = mine;
    sync_block();
    if (me < half) mine = join(mine, shared[me + half]);
    sync_block();
  }
  if (me < warp)
    for (unsigned half = warp / 2; half; half /= 2) {
      State other = shuffle_down(mine, half);
      if (me < half) mine = join(mine, other);
    }
  if (me == 0) shared[0] = mine;
  sync_block();
  mine = shared[0];
  sync_block();
  return mine;
}

// A task is done by a whole block, or by one thread: kernels are written once, over a team.
template <bool Wide>
struct Team {
  static AJ_DEVICE int64_t task() {
    return Wide ? block_x() : int64_t(block_x()) * threads_x() + thread_x();
  }
  static AJ_DEVICE int64_t tasks_step() {
    return Wide ? blocks_x() : int64_t(blocks_x()) * threads_x();
  }
  static AJ_DEVICE int64_t first() { return Wide ? thread_x() : 0; }
  static AJ_DEVICE int64_t step() { return Wide ? kBlock : 1; }
  static AJ_DEVICE bool leads() { return !Wide || thread_x() == 0; }
  template <class State, class Join>
  static AJ_DEVICE State join(State mine, const Join& join) {
    if constexpr (Wide)
      return join_block(mine, join);
    else
      return mine;
  }
};
constexpr int64_t kNarrow = 64;  // tasks of at most so many elements are a thread's

template <auto Narrow, auto Wide, class P>
void launch_teams(const aj_call* call, int64_t tasks, bool wide, const P& p) {
  if (wide)
    launch_blocks<Wide>(call, tasks, kBlock, p);
  else
    launch_threads<Narrow>(call, tasks, 1, p);
}

struct Plus {
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {  // NaN is the largest
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};

}  // namespace adjoin::gpu
#endif
