// plugins/vector/stream.hpp: results of pointwise kernels that go past the caches, and when they
// should; copies of what lies side by side.
#ifndef ADJOIN_PLUGINS_VECTOR_STREAM_HPP
#define ADJOIN_PLUGINS_VECTOR_STREAM_HPP
#include <adjoin/kit/kernel.hpp>
#include <cstring>

namespace adjoin::cpu {

// Bytes that an op touches from which on results go past the caches: they would not stay there.
int64_t stream_bytes();
// Is the memory of the tensors together so large, and no input the output?
bool worth_streaming(const aj_plan& p);
void end_streaming();  // orders such stores before what follows

// Copies bytes as memmove() does. For many, the C library takes an instruction of the processor's
// that on some machines is three to ten times slower than vectors.
void copy_apart(char* to, const char* from, int64_t bytes);  // at least 64, no overlap
inline void copy_neighbours(void* to, const void* from, int64_t bytes) {
  const auto ahead = int64_t(reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from));
  if (bytes < 1024 || (ahead < bytes && ahead > -bytes))
    std::memmove(to, from, size_t(bytes));
  else
    copy_apart(static_cast<char*>(to), static_cast<const char*>(from), bytes);
}

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
