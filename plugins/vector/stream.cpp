// plugins/vector/stream.cpp: stores past the caches.
#include "stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/stream.cpp"
#include "simd.hpp"
// the functions of each set
#include <hwy/cache_control.h>

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static constexpr int64_t kLine = 64;
// Asked for so far ahead of their use, one line of each input with each line of results: the
// processor's own prefetching ends at pages.
static constexpr int64_t kAhead = 2048;
static constexpr int64_t kBlock = 512;  // bytes of the widest operand

HWY_INLINE void stream_line(char* to, const char* from) {
  const hn::ScalableTag<uint8_t> d;
  for (int64_t i = 0; i < kLine; i += int64_t(hn::Lanes(d)))
    hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t*>(from + i)), d,
               reinterpret_cast<uint8_t*>(to + i));
}

// The head and tail of the row that fill no line are copied plainly.
static void stream_row(char* to, const char* from, int64_t bytes) {
  int64_t i = std::min(bytes, int64_t((0 - reinterpret_cast<uintptr_t>(to)) % kLine));
  std::memcpy(to, from, size_t(i));
  for (; i + kLine <= bytes; i += kLine) {
    hwy::Prefetch(from + i + kAhead);
    stream_line(to + i, from + i);
  }
  std::memcpy(to + i, from + i, size_t(bytes - i));
}

// The last bytes are copied again with their neighbours.
static void copy_apart(char* to, const char* from, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto L = int64_t(hn::Lanes(d));
  auto* out = reinterpret_cast<uint8_t*>(to);
  auto* in = reinterpret_cast<const uint8_t*>(from);
  int64_t i = 0;
  for (; i + 4 * L <= bytes; i += 4 * L) {
    const auto a = hn::LoadU(d, in + i), b = hn::LoadU(d, in + i + L),
               c = hn::LoadU(d, in + i + 2 * L), e = hn::LoadU(d, in + i + 3 * L);
    hn::StoreU(a, d, out + i), hn::StoreU(b, d, out + i + L);
    hn::StoreU(c, d, out + i + 2 * L), hn::StoreU(e, d, out + i + 3 * L);
  }
  for (; i + L <= bytes; i += L) hn::StoreU(hn::LoadU(d, in + i), d, out + i);
  if (i < bytes) hn::StoreU(hn::LoadU(d, in + bytes - L), d, out + bytes - L);
}

static void stream_pattern(char* to, const char* pattern, int64_t bytes) {
  int64_t i = 0;
  for (; i + kLine <= bytes; i += kLine) stream_line(to + i, pattern);
  std::memcpy(to + i, pattern, size_t(bytes - i));
}

// Loads that are far more than stores run best on the processor's own prefetching, and so do three
// rows at once.
static void stream_blocks(const Streamed& s, char* to, const char* const* from, int64_t n) {
  int64_t widest = s.size;
  for (uint32_t k = 0; k < s.inputs; ++k) widest = std::max(widest, s.sizes[k]);
  const bool fetch = widest == s.size && s.inputs < 3;
  const int64_t many = std::max(kBlock / widest, kLine / s.size);  // whole lines of results
  const auto misplaced = int64_t((0 - reinterpret_cast<uintptr_t>(to)) % kLine);
  HWY_ALIGN char results[kBlock];
  const void* in[3];
  for (int64_t lo = 0, m = misplaced ? misplaced / s.size : many; lo < n; lo += m, m = many) {
    m = std::min(m, n - lo);
    for (uint32_t k = 0; k < s.inputs; ++k) in[k] = from[k] + lo * s.sizes[k];
    s.row(s.context, results, in, m);
    char* out = to + lo * s.size;
    const int64_t bytes = m * s.size, whole = lo || !misplaced ? bytes / kLine * kLine : 0;
    for (int64_t i = 0; i < whole; i += kLine) {
      for (uint32_t k = 0; fetch && k < s.inputs; ++k)
        hwy::Prefetch(static_cast<const char*>(in[k]) + kAhead + i * s.sizes[k] / s.size);
      stream_line(out + i, results + i);
    }
    if (whole < bytes) std::memcpy(out + whole, results + whole, size_t(bytes - whole));
  }
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

int64_t tensor_bytes(const aj_operand& o) {
  if (!o.tensor || !o.tensor->dl.shape) return 0;
  int64_t n = 1;
  for (int d = 0; d < o.tensor->dl.ndim; ++d) n *= o.tensor->dl.shape[d];
  return n * bytes_of(o.dtype);
}

// Of the cache that this processor shares with few others: sysconf() may count those of all
// sockets.
int64_t last_cache_bytes() {
  long long kib = 0;
  if (FILE* f = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r")) {
    if (std::fscanf(f, "%lldK", &kib) != 1) kib = 0;
    std::fclose(f);
  }
  if (kib > 0) return kib << 10;
  int64_t all = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return all > 0 ? std::min(all, int64_t(64) << 20) : int64_t(32) << 20;
}

}  // namespace

int64_t stream_bytes() {
  static const int64_t bytes = last_cache_bytes();
  return bytes;
}

bool worth_streaming(const aj_plan& p) {
  if (p.numel < 256) return false;  // rows too short for it; a part may be small
  int64_t bytes = 0;
  for (uint32_t k = 0; k < p.nops; ++k) bytes += tensor_bytes(p.ops[k]);
  if (bytes < stream_bytes()) return false;
  for (uint32_t k = p.nout; k < p.nops; ++k)
    if (p.ops[k].data == p.ops[0].data) return false;
  return true;
}

void end_streaming() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

void copy_apart(char* to, const char* from, int64_t bytes) {
  static const bool instruction_is_fast = __builtin_cpu_is("intel");
  if (instruction_is_fast)
    std::memcpy(to, from, size_t(bytes));
  else
    AJ_SIMD(copy_apart)(to, from, bytes);
}
void stream_row(char* to, const char* from, int64_t bytes) { AJ_SIMD(stream_row)(to, from, bytes); }
void stream_pattern(char* to, const char* pattern, int64_t bytes) {
  AJ_SIMD(stream_pattern)(to, pattern, bytes);
}
void stream_blocks(const Streamed& s, char* to, const char* const* from, int64_t n) {
  // Few, or elements that lie across lines of the cache.
  if (n * s.size < 256 || reinterpret_cast<uintptr_t>(to) % size_t(s.size))
    return s.row(s.context, to, reinterpret_cast<const void* const*>(from), n);
  AJ_SIMD(stream_blocks)(s, to, from, n);
}

}  // namespace adjoin::cpu
#endif
