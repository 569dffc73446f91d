// core/memory/cache.cpp: device_alloc and device_free: the thread's cache first, then the device's,
// then what can be trimmed.
#include "core/memory/cache.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/memory/capture.hpp"

namespace adjoin {
namespace {

// AddressSanitizer sees the bounds of a host block only when it comes from malloc.
constexpr bool kPlainHeap = !kSmallLists;

ThreadCache* new_cache(DeviceMemory* m) {
  register_thread();
  auto* c = new ThreadCache{};
  c->memory = m;
  c->owner = &tls;
  c->next = static_cast<ThreadCache*>(tls.memory_cache);
  std::lock_guard held(m->lock);
  m->caches.push_back(c);
  tls.memory_cache = c;
  return c;
}

ThreadCache* cache_of(DeviceMemory* m) {
  auto* first = static_cast<ThreadCache*>(tls.memory_cache);
  if (__builtin_expect(first && first->memory == m, 1)) return first;
  for (ThreadCache **at = &first, *c; (c = *at); at = &c->next) {
    if (c->memory != m) continue;
    *at = c->next;  // to the front
    c->next = first == c ? c->next : first;
    return static_cast<ThreadCache*>(tls.memory_cache = c);
  }
  return new_cache(m);
}

void add_used(ThreadCache* c, int64_t bytes) {  // only the owner writes
  c->used.store(c->used.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

// Everything that this device, then the other ones of the host, then the languages can spare.
void recover(DeviceMemory& m, int step) {
  if (step == 0) trim();
  if (step == 1) collect_garbage();
  {
    std::lock_guard held(m.lock);
    poll_pending(m, true);
    for (auto* c = static_cast<ThreadCache*>(tls.memory_cache); c; c = c->next)
      if (c->memory == &m) flush_cache(m, c, 1);
    reclaim_slabs(m);
    cool_all(m);
  }
  if (!m.host) return;
  small_trim();
  Memories& all = memories();
  for (uint32_t i = 0, n = all.count.load(std::memory_order_acquire); i < n; i++) {
    DeviceMemory* other = all.at[i].load(std::memory_order_relaxed);
    if (other == &m || !other->host) continue;
    std::lock_guard held(other->lock);
    reclaim_slabs(*other);
    cool_all(*other);
  }
}

// The device's own error is told as it is, not as a lack of memory.
aj_status* refused(const DeviceMemory& m, uint64_t asked, aj_status* why) {
  aj_status* s = fail(why->code, device_text(m.device->id), ": no memory of ", asked,
                      " bytes: ", why->message);
  free_status(why);
  return s;
}

// attempt(&why) runs under the lock and says whether it succeeded.
template <class F>
aj_status* with_recovery(DeviceMemory& m, uint64_t asked, F attempt) {
  aj_status* why = nullptr;
  for (int step = 0;; step++) {
    bool hopeless;  // more than there is: nothing that is freed could make room
    {
      std::lock_guard held(m.lock);
      if (!m.pending.empty()) poll_pending(m, false);
      if (attempt(&why)) {
        if (why) free_status(why);
        if (m.host)
          apply_policy(m, memory_ticks());
        else
          m.peak = std::max(m.peak, m.in_use());  // what was in use lately is asked of the host
        return nullptr;
      }
      hopeless = asked > m.limit();
    }
    if (std::lock_guard held(m.lock); step == 2 || hopeless)
      m.refusals++;
    else
      m.retries++;
    if (step == 2 || hopeless)
      return why && why->code != AJ_OUT_OF_MEMORY ? refused(m, asked, why)
                                                  : out_of_memory(m, asked, why);
    recover(m, step);
  }
}

aj_status* alloc_large(DeviceMemory& m, void* stream, uint64_t bytes, void** out, uint64_t* got) {
  return with_recovery(m, bytes, [&](aj_status** why) {
    Place at = take_chunks(m, stream, bytes, Use::block, why);
    if (!at.segment) return false;
    Chunk& c = at.chunk();
    c.op = tls.running_op;
    c.line = tls.grad_off ? 0 : tls.site ? tls.site : tls.line;
    *out = at.segment->base + at.index * m.segments.granule();
    *got = c.length * m.segments.granule();
    m.large_used += *got;
    m.allocations++;
    if (!m.host) m.come(*got);
    return true;
  });
}

aj_status* alloc_medium(DeviceMemory& m, void* stream, uint64_t bytes, void** out, uint64_t* got) {
  // Multiples of 512, so that every block of a slab is aligned as devices like it.
  int cls = medium_class((bytes + 511) / 512 * 512 + (bytes == 0) * 512);
  return with_recovery(m, bytes, [&](aj_status** why) {
    *out = take_medium(m, stream, cls, why);
    if (!*out) return false;
    *got = medium_size(cls);
    m.medium_used += *got;
    m.allocations++;
    m.come(*got);
    return true;
  });
}

// Some blocks of a class into the thread's cache; the first is the caller's.
[[gnu::noinline]] aj_status* refill(ThreadCache* c, int cls, uint64_t bytes, void** out) {
  DeviceMemory& m = *c->memory;
  return with_recovery(m, bytes, [&](aj_status** why) {
    *out = take_medium(m, nullptr, cls, why);
    if (!*out) return false;
    FreeList& list = c->lists[cls];
    uint64_t size = medium_size(cls);
    auto& free = m.central_of(nullptr).free[cls];
    for (uint64_t more = std::min<uint64_t>(31, (256 << 10) / size); more > 0 && !free.empty();
         more--) {
      *static_cast<void**>(free.back()) = list.head;
      list.head = free.back();
      list.count++;
      c->bytes += size;
      free.pop_back();
    }
    return true;
  });
}

aj_status* alloc_cached(DeviceMemory* m, uint64_t bytes, void** out, uint64_t* got) {
  ThreadCache* c = cache_of(m);
  int cls = medium_class(bytes);
  uint64_t size = *got = medium_size(cls);
  FreeList& list = c->lists[cls];
  if (void* p = list.head; __builtin_expect(p != nullptr, 1)) {
    __atomic_store_n(&list.head, *static_cast<void**>(p), __ATOMIC_RELEASE);
    list.count--;
    c->bytes -= size;
    *out = p;
  } else {
    AJ_TRY(refill(c, cls, bytes, out));
  }
  add_used(c, int64_t(size));
  c->allocations.store(c->allocations.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
  return nullptr;
}

[[gnu::noinline]] void free_cached(DeviceMemory* m, void* p, uint64_t got) {
  ThreadCache* c = cache_of(m);
  FreeList& list = c->lists[medium_class(got)];
  *static_cast<void**>(p) = list.head;
  __atomic_store_n(&list.head, p, __ATOMIC_RELEASE);
  list.count++;
  add_used(c, -int64_t(got));
  c->bytes += got;
  if (__builtin_expect(c->bytes > kThreadCacheBytes, 0)) {
    std::lock_guard held(m->lock);
    flush_cache(*m, c, 2);
  }
}

aj_status* alloc_plain(DeviceMemory& m, uint64_t bytes, void** out, uint64_t* got) {
  *got = bytes;
  if (posix_memalign(out, 64, bytes ? bytes : 1) != 0) return out_of_memory(m, bytes, nullptr);
  std::lock_guard held(m.lock);
  m.medium_used += bytes;
  m.allocations++;
  m.note_peak(memory_ticks());
  return nullptr;
}

// An allocation that is never cut serves requests of up to an eighth less.
uint64_t whole_size(uint64_t bytes) {
  uint64_t step = std::max<uint64_t>(std::bit_floor(bytes) / 8, 512);
  return (std::max<uint64_t>(bytes, 1) + step - 1) / step * step;
}

aj_status* alloc_direct(DeviceMemory& m, uint64_t bytes, void** out, uint64_t* got) {
  Device* d = m.device;
  *got = m.handles ? whole_size(bytes) : bytes ? bytes : 1;
  return with_recovery(m, bytes, [&](aj_status** why) {
    // Once there are several streams, mem_free waits for each block instead.
    bool one_stream = !streams_in_use.load(std::memory_order_relaxed);
    if (auto kept = m.whole.find(*got);
        one_stream && kept != m.whole.end() && !kept->second.empty()) {
      *out = kept->second.back();
      kept->second.pop_back();
      m.whole_bytes -= *got;
      m.large_used += *got;
      m.allocations++;
      m.come(*got);
      m.note_peak(memory_ticks());
      return true;
    }
    uint64_t enough = std::max<uint64_t>({m.peak, m.large_used + *got, 64ull << 20});
    if (m.whole_bytes && (!one_stream || m.large_used + m.whole_bytes + *got > enough))
      drop_whole(m);
    if (m.large_used + m.whole_bytes + *got > m.limit()) return false;
    if (*why) free_status(*why);
    *why = raw_alloc(d, *got, out);
    if (*why) return false;
    m.large_used += *got;
    m.allocations++;
    m.system_allocations++;
    m.taken.come(*got);
    m.come(*got);
    m.note_peak(memory_ticks());
    return true;
  });
}

void free_direct(DeviceMemory& m, void* p, uint64_t got) {
  Device* d = m.device;
  // With one stream, queued work is before whatever is queued on the block later.
  if (m.handles && !streams_in_use.load(std::memory_order_relaxed)) {
    m.whole[got].push_back(p);
    m.whole_bytes += got;
    m.large_used -= got;
    return;
  }
  aj_status* s = d->vtbl.mem_free
                     ? d->vtbl.mem_free(d->vtbl.self, d->id.device_id, p, got, AJ_MEM_DEVICE)
                     : nullptr;
  if (s)
    free_status(s);
  else
    m.taken.go(got);
  m.large_used -= got;
}

[[gnu::noinline]] aj_status* alloc_host(DeviceMemory& m, uint64_t bytes, void** out,
                                        uint64_t* got) {
  if (bytes <= kSmallMax) {
    int cls = small_class(uint32_t(bytes));
    *got = kSmallSize[cls];
    *out = small_alloc(cls);
    return __builtin_expect(*out != nullptr, 1) ? nullptr : out_of_memory(m, bytes, nullptr);
  }
  if (bytes <= kMediumMax)
    return kPlainHeap ? alloc_plain(m, bytes, out, got) : alloc_cached(&m, bytes, out, got);
  return alloc_large(m, nullptr, bytes, out, got);
}

aj_status* alloc_any(Device* d, uint64_t bytes, void** out, uint64_t* got) {
  DeviceMemory* m = d->memory;
  if (m->host && !m->direct) return alloc_host(*m, bytes, out, got);
  if (!d->vtbl.mem_alloc)
    return fail(AJ_UNIMPLEMENTED, device_kind_name(d->id.device_type),
                ": the device has no memory of its own to allocate");
  if (m->direct) return alloc_direct(*m, bytes, out, got);
  void* stream = nullptr;
  AJ_TRY(stream_current(d->id, &stream));
  if (__builtin_expect(captures_open.load(std::memory_order_relaxed) != 0, 0)) {
    std::lock_guard held(m->lock);
    stream = pool_for(*m, stream);
  }
  return bytes <= kMediumMax ? alloc_medium(*m, stream, bytes, out, got)
                             : alloc_large(*m, stream, bytes, out, got);
}

void free_any(DeviceMemory* m, void* p, uint64_t got) {
  if (m->host && !m->direct) {
    if (got <= kSmallMax) return small_free(small_class(uint32_t(got)), p);
    if (got <= kMediumMax && !kPlainHeap) return free_cached(m, p, got);
    if (got <= kMediumMax) {
      std::free(p);
      std::lock_guard held(m->lock);
      m->medium_used -= got;
      return;
    }
  }
  std::lock_guard held(m->lock);
  if (!m->host || m->direct) m->go(got);
  if (m->direct) return free_direct(*m, p, got);
  if (!m->host && defer_free(*m, p, got)) return;
  give_block(*m, p, got);
}

[[gnu::noinline]] aj_status* alloc_telling(Device* d, uint64_t bytes, void** out, uint64_t* got) {
  AJ_TRY(alloc_any(d, bytes, out, got));
  if (MemoryTold tell = memory_told.load(std::memory_order_relaxed)) tell(d, *out, int64_t(*got));
  return nullptr;
}

[[gnu::noinline]] void free_telling(Device* d, void* p, uint64_t got) {
  free_any(d->memory, p, got);
  if (MemoryTold tell = memory_told.load(std::memory_order_relaxed)) tell(d, p, -int64_t(got));
}

}  // namespace

aj_status* device_alloc(Device* d, uint64_t bytes, void** out, uint64_t* got) {
  DeviceMemory* m = d->memory;
  if (__builtin_expect(!m, 0)) {  // meta
    *out = nullptr;
    *got = 0;
    return nullptr;
  }
  if (m->quick.load(std::memory_order_relaxed)) return alloc_host(*m, bytes, out, got);
  return alloc_telling(d, bytes, out, got);
}

void device_free(Device* d, void* p, uint64_t got) {
  DeviceMemory* m = d->memory;
  if (!p || !m) return;
  if (!kPlainHeap && m->quick.load(std::memory_order_relaxed) && got <= kMediumMax)
    return got <= kSmallMax ? small_free(small_class(uint32_t(got)), p) : free_cached(m, p, got);
  free_telling(d, p, got);
}

void memory_thread_end() {
  while (auto* c = static_cast<ThreadCache*>(tls.memory_cache)) {
    tls.memory_cache = c->next;
    std::lock_guard held(c->memory->lock);
    flush_cache(*c->memory, c, 1);
    c->memory->medium_used += uint64_t(c->used.load());
    c->memory->allocations += c->allocations.load();
    std::erase(c->memory->caches, c);
    delete c;
  }
}

void memory_fork_prepare() {
  Memories& all = memories();
  for (uint32_t i = 0, n = all.count.load(std::memory_order_acquire); i < n; i++)
    all.at[i].load()->lock.lock();
  small_fork_prepare();
}

void memory_fork_parent() {
  small_fork_parent();
  Memories& all = memories();
  for (uint32_t i = 0, n = all.count.load(std::memory_order_acquire); i < n; i++)
    all.at[i].load()->lock.unlock();
}

void memory_fork_child() {
  small_fork_child();
  Memories& all = memories();
  for (uint32_t i = 0, n = all.count.load(std::memory_order_acquire); i < n; i++) {
    DeviceMemory& m = *all.at[i].load();
    for (ThreadCache* c : m.caches) {
      if (c->owner == &tls) continue;
      flush_cache(m, c, 1);
      m.medium_used += uint64_t(c->used.load());
      m.allocations += c->allocations.load();
    }
    std::erase_if(m.caches, [](ThreadCache* c) { return c->owner != &tls; });
    m.lock.unlock();
  }
}

}  // namespace adjoin
