// plugins/emulated/fibers.hpp: a grid of blocks, each block's threads as fibres of one host thread.
#ifndef ADJOIN_PLUGINS_EMULATED_FIBERS_HPP
#define ADJOIN_PLUGINS_EMULATED_FIBERS_HPP
#include <cstddef>
#include <cstdint>
#include <string>

namespace adjoin::emulated {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// Of the fibre that runs. Plain variables: grids run one at a time, since `__shared__` is a static
// variable of the kernel.
extern Dim3 thread_index, block_index, block_size, grid_size;

constexpr size_t kExchange = 64;  // bytes that a thread shows to its warp at once

void barrier();  // of the block
unsigned warp_size();
unsigned lane();
// Shows `mine` to the warp, waits for its threads, and gives what lane `from` has shown; the own
// one if there is no such lane.
const void* exchange(const void* mine, size_t bytes, unsigned from);
unsigned long long ballot(bool vote);

// Runs body(argument) for every thread. Text of what the kernel did wrong (a barrier that some
// threads do not reach), or "".
std::string run_grid(Dim3 grid, Dim3 block, void (*body)(const void*), const void* argument);

// How blocks run: lanes of a warp, and the seed of the order of threads between barriers (0: by
// number).
void set_order(unsigned warp, uint64_t seed);

}  // namespace adjoin::emulated
#endif
