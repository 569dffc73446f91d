// plugins/cpu/stream.hpp: results of pointwise kernels that go past the caches, and when they
// should.
#ifndef ADJOIN_PLUGINS_CPU_STREAM_HPP
#define ADJOIN_PLUGINS_CPU_STREAM_HPP
#include <adjoin/kit/kernel.hpp>

namespace adjoin::cpu {

// Bytes that an op touches from which on results go past the caches: they would not stay there.
int64_t stream_bytes();
// Is the memory of the tensors together so large, and no input the output?
bool worth_streaming(const aj_plan& p);
void end_streaming();  // orders such stores before what follows

// Copies bytes past the caches.
void stream_row(char* to, const char* from, int64_t bytes);
// The bytes are a pattern of 64 again and again, `to` on a line of the cache.
void stream_pattern(char* to, const char* pattern, int64_t bytes);

// n results of `size` bytes each from rows of elements of sizes[k]; 0: one value for all. `row`
// computes them in blocks in the first-level cache, from where they go past the others.
struct Streamed {
  void (*row)(const void* context, void* out, const void* const* in, int64_t n);
  const void* context;
  int64_t size;
  uint32_t inputs;
  int64_t sizes[3];
};
void stream_blocks(const Streamed& s, char* to, const char* const* from, int64_t n);

}  // namespace adjoin::cpu
#endif
