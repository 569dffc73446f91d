// plugins/emulated/target.hpp: what the kernel sources of plugins/gpu are written over, on this
// target: threads are fibres, streams are threads, memory is reached through the arena.
#ifndef ADJOIN_PLUGINS_EMULATED_TARGET_HPP
#define ADJOIN_PLUGINS_EMULATED_TARGET_HPP
#include <adjoin/kit/error.hpp>
#include <cstring>

#include "arena.hpp"
#include "fibers.hpp"

#define AJ_GLOBAL
#define AJ_DEVICE
#define AJ_SHARED static  // grids run one at a time
#define AJ_ARGUMENT const

namespace adjoin::gpu {

inline unsigned thread_x() { return emulated::thread_index.x; }
inline unsigned thread_y() { return emulated::thread_index.y; }
inline unsigned block_x() { return emulated::block_index.x; }
inline unsigned block_y() { return emulated::block_index.y; }
inline unsigned block_z() { return emulated::block_index.z; }
inline unsigned threads_x() { return emulated::block_size.x; }
inline unsigned blocks_x() { return emulated::grid_size.x; }
inline void sync_block() { emulated::barrier(); }
inline unsigned warp_size() { return emulated::warp_size(); }

template <class T>
T shuffle_down(T x, unsigned by) {
  static_assert(sizeof(T) <= emulated::kExchange);
  std::memcpy(&x, emulated::exchange(&x, sizeof x, emulated::lane() + by), sizeof x);
  return x;
}
inline unsigned long long warp_ballot(bool vote) { return emulated::ballot(vote); }

template <class T>
T atomic_add(T* to, T x) {
  T before = *to;
  *to = before + x;
  return before;
}
inline int atomic_cas(int* to, int expected, int x) {
  int before = *to;
  if (before == expected) *to = x;
  return before;
}
inline void fence_for_host() {}

// Where the host finds device memory for a kernel: the address that the kernel uses.
template <class T>
T* reach(T* p) {
  return emulated::arena.reach(p);
}

// A launch of `body(argument)` on a stream, in order. The argument is copied.
aj_status* enqueue(const aj_call* call, unsigned gx, unsigned gy, unsigned gz, unsigned tx,
                   unsigned ty, void (*body)(const void*), const void* argument, size_t bytes);
template <auto Kernel, class P>
void launch_grid(const aj_call* call, unsigned gx, unsigned gy, unsigned gz, unsigned tx,
                 unsigned ty, const P& p) {
  auto body = [](const void* argument) { Kernel(*static_cast<const P*>(argument)); };
  kit::check(enqueue(call, gx, gy, gz, tx, ty, body, &p, sizeof p));
}

}  // namespace adjoin::gpu
#endif
