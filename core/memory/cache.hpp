// core/memory/cache.hpp: the parts of a device's memory, shared by the files of this folder.
//
// Blocks of at most 1 KiB on host devices are the small heap's. Up to 1 MiB there are 4 sizes per
// power of two, cut from slabs of 2 MiB: on host devices through a cache of each thread, elsewhere
// per stream. Above, whole chunks of segments.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/memory/memory.hpp"
#include "core/memory/segments.hpp"
#include "core/memory/short_lock.hpp"
#include "core/memory/small.hpp"

namespace adjoin {

constexpr uint64_t kMediumMax = 1 << 20;
constexpr int kMediumClasses = 48;  // 4 per power of two from 256 bytes to 1 MiB
constexpr uint64_t kSlab = 2 << 20;
constexpr uint64_t kThreadCacheBytes = 8 << 20;
constexpr uint64_t kWarmFloor = 256ull << 20;
constexpr uint32_t kTicksPerSecond = 10;
constexpr uint32_t kIdleTicks = 10 * kTicksPerSecond;

inline int medium_class(uint64_t bytes) {  // 256 < bytes <= 1 MiB
  int e = 63 - __builtin_clzll(bytes - 1);
  return (e - 8) * 4 + int((bytes - 1) >> (e - 2) & 3);
}
inline uint64_t medium_size(int cls) { return uint64_t(5 + (cls & 3)) << (cls / 4 + 6); }

struct ThreadCache {
  DeviceMemory* memory;
  ThreadCache* next;  // the same thread's cache of another device
  Tls* owner;
  FreeList lists[kMediumClasses];
  uint64_t bytes;
  std::atomic<int64_t> used;  // handed out less taken back; negative in a thread that only frees
  std::atomic<uint64_t> allocations;
};

struct Central {  // of one stream; addresses are kept outside the blocks
  std::vector<void*> free[kMediumClasses];
};

struct Pending {  // freed, but a foreign stream may still use it
  void* p;
  uint64_t got;
  std::vector<void*> events;
};

// Of blocks or bytes: what there is, the most there was, all that came.
struct Tally {
  uint64_t current = 0, peak = 0, total = 0;
  void come(uint64_t n) {
    total += n;
    current += n;
    peak = std::max(peak, current);
  }
  void go(uint64_t n) { current -= n; }
};
struct Tallies {  // of blocks that tensors have
  Tally blocks, bytes;
  void come(uint64_t n) { blocks.come(1), bytes.come(n); }
  void go(uint64_t n) { blocks.go(1), bytes.go(n); }
};

struct PeakSecond {
  uint32_t second;
  uint64_t bytes;
};

struct Draws {  // of one generator in a graph
  aj_object* generator;
  char* place;      // of the device: seed and offset, which each launch writes
  uint64_t blocks;  // that a launch takes
};
struct Pool {           // of device graphs: its address names memory as a stream's does
  void* stream;         // that captures, or captured last
  uint32_t graphs = 0;  // those captured, and the one being captured
  bool open = false;
  const void* thread = nullptr;  // that captures
  std::vector<Draws> draws;      // of the graph being captured
};

struct DeviceMemory {
  explicit DeviceMemory(Device* d);
  Device* device;
  const bool host, handles;  // handles: pointers are opaque, so only whole allocations are kept
  const bool direct;         // each request is one of the device's
  std::atomic<bool> quick{false};  // the host's own heap, and nobody listens: set by memory_tell
  ShortLock lock;
  Segments segments;
  std::unordered_map<void*, Central> central;  // by stream; none is ever taken out
  void* latest_stream = nullptr;               // whose part was asked for last
  Central* latest = nullptr;
  std::vector<ThreadCache*> caches;
  std::unordered_map<uint64_t, std::vector<void*>>
      whole;  // by size: free allocations behind handles
  uint64_t whole_bytes = 0;
  std::unordered_map<void*, std::vector<void*>>
      foreign;  // block: streams other than its own that use it
  std::atomic<uint32_t> foreign_count{0};
  std::vector<Pending> pending;
  std::vector<std::unique_ptr<Pool>> pools;  // of graphs
  std::vector<char*> places;                 // for draws of graphs to come; never given back
  uint64_t large_used = 0,
           medium_used = 0;  // medium: outside of thread caches, or of threads that ended
  uint64_t peak = 0, allocations = 0, system_allocations = 0, user_limit = 0;
  PeakSecond peaks[11]{};
  Tallies small, large, given, taken;  // not of the host's; taken: from the device
  uint64_t retries = 0, refusals = 0;
  uint32_t last_idle_scan = 0, last_reclaim = 0;
  std::atomic<uint64_t> resident{0};  // a copy that other devices read without the lock

  Central& central_of(void* stream) {  // wants the lock
    if (stream != latest_stream || !latest) latest = &central[latest_stream = stream];
    return *latest;
  }
  uint64_t limit() const;
  uint64_t in_use() const;  // wants the lock
  void come(uint64_t got) { given.come(got), (got > kMediumMax ? large : small).come(got); }
  void go(uint64_t got) { given.go(got), (got > kMediumMax ? large : small).go(got); }
  void note_peak(uint32_t now);
  uint64_t recent_peak(uint32_t now) const;
};

// Every memory of the process; never shrinks.
struct Memories {
  std::atomic<uint32_t> count{0};
  std::atomic<DeviceMemory*> at[64]{};
};
Memories& memories();

uint32_t memory_ticks();                          // tenths of a second
extern std::atomic<uint32_t> memory_ticks_ahead;  // tests let time pass

// central.cpp. All want the lock.
using Place = Segments::Place;
Place take_chunks(DeviceMemory& m, void* stream, uint64_t bytes, Use use, aj_status** why);
void* take_medium(DeviceMemory& m, void* stream, int cls, aj_status** why);
void give_block(DeviceMemory& m, void* p, uint64_t got);
void flush_cache(DeviceMemory& m, ThreadCache* c,
                 int divisor);  // gives 1/divisor of each list back
void reclaim_slabs(DeviceMemory& m);
void apply_policy(DeviceMemory& m, uint32_t now);  // of the host's
void cool_all(DeviceMemory& m);
void drop_whole(DeviceMemory& m);  // free allocations behind handles

// stream.cpp. Want the lock.
bool defer_free(DeviceMemory& m, void* p, uint64_t got);  // true: it waits for events
void poll_pending(DeviceMemory& m, bool wait);

// report.cpp
aj_status* raw_alloc(Device* d, uint64_t bytes, void** out);  // by the plugin: memory, or an error
aj_status* out_of_memory(DeviceMemory& m, uint64_t asked, aj_status* steal_cause);
void collect_garbage();
inline void trim() {
  if (auto drop = memory_trim.load(std::memory_order_acquire)) drop();
}

}  // namespace adjoin
