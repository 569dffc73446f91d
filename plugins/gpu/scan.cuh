// plugins/gpu/scan.cuh: what runs along lines, such as sums: states of parts of a line are joined
// in order. A long line is cut into chunks, so that many blocks have a share of it.
#ifndef ADJOIN_PLUGINS_GPU_SCAN_CUH
#define ADJOIN_PLUGINS_GPU_SCAN_CUH
#include "block.cuh"
#include "divide.cuh"

namespace adjoin::gpu {

constexpr int64_t kScanChunk = 4096;
constexpr int64_t kManyLines = 512;  // fill a device by themselves

// H has State, start(), join(state, later), Line line(l), at(line, k) and put(line, k, state).
template <class H>
struct Scan {
  using State = typename H::State;
  H how;
  int64_t lines, size, chunk;
  Divisor chunks;  // of a line
  State* parts;    // [lines][chunks]: what each chunk makes, then what stands before it
};

// What the threads before this one have, in order; `mine` becomes what all have.
template <class H, class State>
AJ_DEVICE State before_me(const H& how, State* mine) {
  AJ_SHARED double room[(kBlock * sizeof(State) + 7) / 8];
  State* parts = reinterpret_cast<State*>(room);
  parts[thread_x()] = *mine;
  sync_block();
  State before = how.start();
  for (unsigned t = 0; t < thread_x(); ++t) how.join(before, parts[t]);
  State all = before;
  for (unsigned t = thread_x(); t < kBlock; ++t) how.join(all, parts[t]);
  *mine = all;
  sync_block();
  return before;
}

// A thread's own part of [lo, hi).
constexpr int kBlockBits = 7;
static_assert(1 << kBlockBits == kBlock);
struct Share {
  int64_t lo, hi;
  AJ_DEVICE Share(int64_t from, int64_t to) {
    int64_t part = (to - from + kBlock - 1) >> kBlockBits;
    lo = from + int64_t(thread_x()) * part;
    hi = lo + part < to ? lo + part : to;
  }
};

template <bool Write, class H>
AJ_GLOBAL void scan_kernel(AJ_ARGUMENT Scan<H> p) {
  for (int64_t task = block_x(); task < p.lines * p.chunks.size; task += blocks_x()) {
    Quotient q = p.chunks.divided(task);
    auto line = p.how.line(q.whole);
    int64_t begin = q.rest * p.chunk, end = begin + p.chunk < p.size ? begin + p.chunk : p.size;
    Share own(begin, end);
    auto state = p.how.start();
    for (int64_t k = own.lo; k < own.hi; ++k) p.how.join(state, p.how.at(line, k));
    auto before = before_me(p.how, &state);
    if constexpr (Write) {
      if (p.chunks.size > 1) {
        auto own_part = before;
        before = p.parts[task];
        p.how.join(before, own_part);
      }
      for (int64_t k = own.lo; k < own.hi; ++k) {
        p.how.join(before, p.how.at(line, k));
        p.how.put(line, k, before);
      }
    } else if (thread_x() == 0) {
      p.parts[task] = state;
    }
  }
}
template <class H>
AJ_GLOBAL void scan_parts_kernel(AJ_ARGUMENT Scan<H> p) {
  for (int64_t line = block_x(); line < p.lines; line += blocks_x()) {
    auto* parts = p.parts + line * p.chunks.size;
    Share own(0, p.chunks.size);
    auto state = p.how.start();
    for (int64_t k = own.lo; k < own.hi; ++k) p.how.join(state, parts[k]);
    auto before = before_me(p.how, &state);
    for (int64_t k = own.lo; k < own.hi; ++k) {
      auto own_part = parts[k];
      parts[k] = before;
      p.how.join(before, own_part);
    }
  }
}
template <class H>
AJ_GLOBAL void scan_lines_kernel(AJ_ARGUMENT Scan<H> p) {  // a thread a line
  int64_t step = int64_t(blocks_x()) * threads_x();
  for (int64_t l = int64_t(block_x()) * threads_x() + thread_x(); l < p.lines; l += step) {
    auto line = p.how.line(l);
    auto before = p.how.start();
    for (int64_t k = 0; k < p.size; ++k) {
      p.how.join(before, p.how.at(line, k));
      p.how.put(line, k, before);
    }
  }
}

template <class H>
void scan_all(const aj_call* call, const H& how, int64_t lines, int64_t size) {
  if (lines == 0 || size == 0) return;
  bool cut = lines < kManyLines && size > 2 * kScanChunk;
  int64_t chunk = cut ? kScanChunk : size, chunks = (size + chunk - 1) / chunk;
  Buffer<typename H::State> parts(call, cut ? lines * chunks : 1);
  Scan<H> p = {how, lines, size, chunk, chunks, parts.data()};
  if (size <= kNarrow) return launch_threads<&scan_lines_kernel<H>>(call, lines, 1, p);
  if (cut) {
    launch_blocks<&scan_kernel<false, H>>(call, lines * chunks, kBlock, p);
    launch_blocks<&scan_parts_kernel<H>>(call, lines, kBlock, p);
  }
  launch_blocks<&scan_kernel<true, H>>(call, lines * chunks, kBlock, p);
}

}  // namespace adjoin::gpu
#endif
