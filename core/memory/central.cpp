// core/memory/central.cpp: the shared part of a device's memory: chunks, slabs, what stays warm.
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/limit.hpp"
#include "core/device/registry.hpp"
#include "core/guest/caught.hpp"
#include "core/memory/cache.hpp"

namespace adjoin {

std::atomic<uint32_t> memory_ticks_ahead{0};

uint32_t memory_ticks() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return uint32_t(uint64_t(t.tv_sec) * kTicksPerSecond +
                  uint64_t(t.tv_nsec) / (1'000'000'000 / kTicksPerSecond)) +
         memory_ticks_ahead.load(std::memory_order_relaxed) +
         kIdleTicks;  // so that "10 s ago" is never below 0
}

Memories& memories() {
  static auto* all = new Memories;
  return *all;
}

namespace {

// Each tensor's memory straight from its device, so that the device's own tools see its bounds.
bool cache_is_off() {
  const char* word = secure_getenv("ADJOIN_MEMORY_CACHE");
  return word && std::string_view(word) == "off";
}

}  // namespace

DeviceMemory::DeviceMemory(Device* d)
    : device(d),
      host(d->host()),
      handles((d->flags & AJ_DEV_OPAQUE_POINTERS) && !cache_is_off()),
      direct((d->flags & AJ_DEV_OPAQUE_POINTERS) || (!d->host() && cache_is_off())),
      segments(d->host() ? 2 << 20 : 512 << 10) {}

namespace {

std::mutex adding;  // held, too, while `quick` is decided: the last one sees what holds

void decide(DeviceMemory* m) {
  m->quick = m->host && !m->direct && !memory_told.load(std::memory_order_relaxed);
}

}  // namespace

DeviceMemory* memory_new(Device* d) {
  std::lock_guard held(adding);
  Memories& all = memories();
  uint32_t n = all.count.load(std::memory_order_relaxed);
  if (n == 64) return nullptr;
  auto* m = new DeviceMemory(d);
  all.at[n].store(m, std::memory_order_relaxed);
  all.count.store(n + 1, std::memory_order_release);
  decide(m);
  return m;
}

std::atomic<MemoryTold> memory_told{nullptr};
std::atomic<void (*)()> memory_trim{nullptr};

void memory_tell(MemoryTold whom) {
  std::lock_guard held(adding);
  memory_told = whom;
  Memories& all = memories();
  for (uint32_t i = 0, n = all.count.load(std::memory_order_acquire); i < n; i++)
    decide(all.at[i].load(std::memory_order_relaxed));
}

uint64_t DeviceMemory::limit() const {
  return user_limit ? user_limit : host ? host_memory_limit() : UINT64_MAX;
}

uint64_t DeviceMemory::in_use() const {
  int64_t bytes = int64_t(large_used + medium_used);
  for (ThreadCache* c : caches) bytes += c->used.load(std::memory_order_relaxed);
  return uint64_t(std::max<int64_t>(bytes, 0));
}

void DeviceMemory::note_peak(uint32_t now) {
  uint64_t bytes = in_use();
  peak = std::max(peak, bytes);
  uint32_t second = now / kTicksPerSecond;
  PeakSecond& p = peaks[second % 11];
  if (p.second != second) p = {second, 0};
  p.bytes = std::max(p.bytes, bytes);
}

uint64_t DeviceMemory::recent_peak(uint32_t now) const {
  uint64_t bytes = 0;
  for (const PeakSecond& p : peaks)
    if (now / kTicksPerSecond - p.second <= 10) bytes = std::max(bytes, p.bytes);
  return bytes;
}

namespace {

bool idle_pages(void* self, void* p, uint64_t bytes) {
  Device* d = static_cast<DeviceMemory*>(self)->device;
  aj_status* s = d->vtbl.mem_idle(d->vtbl.self, d->id.device_id, p, bytes);
  if (s) free_status(s);
  return !s;
}

bool free_raw(void* self, void* p, uint64_t bytes) {
  Device* d = static_cast<DeviceMemory*>(self)->device;
  if (!d->vtbl.mem_free) return false;
  aj_status* s = d->vtbl.mem_free(d->vtbl.self, d->id.device_id, p, bytes, AJ_MEM_DEVICE);
  if (s)
    free_status(s);
  else
    d->memory->taken.go(bytes);
  return !s;
}

// Bytes of real memory that all devices of the host hold, this one included.
uint64_t resident_with(const DeviceMemory& m) {
  uint64_t bytes = m.segments.used() + m.segments.warm_free();
  if (!m.host) return bytes;
  Memories& all = memories();
  uint32_t n = all.count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < n; i++) {
    DeviceMemory* other = all.at[i].load(std::memory_order_relaxed);
    if (other != &m && other->host) bytes += other->resident.load(std::memory_order_relaxed);
  }
  return bytes;
}

void publish(DeviceMemory& m) {
  m.resident.store(m.segments.used() + m.segments.warm_free(), std::memory_order_relaxed);
}

// Before growing past 90 % of the limit, free memory loses its pages; past the limit the answer is
// no.
bool within_limit(DeviceMemory& m, uint64_t bytes) {
  uint64_t limit = m.limit();
  if (limit == UINT64_MAX) return true;
  uint64_t most = limit - limit / 10, held = resident_with(m);
  if (held + bytes > most && m.segments.warm_free()) {
    uint64_t rest = held - m.segments.warm_free() + bytes;
    uint64_t keep = rest < most ? most - rest : 0;
    // What is about to be taken may be warm itself, and is then counted twice: keep that much more.
    keep = std::min(keep + bytes, m.segments.warm_free());
    if (m.host && m.device->vtbl.mem_idle)
      m.segments.cool(keep, 0, idle_pages, &m);
    else
      m.segments.drop_free_segments(keep, free_raw, &m);
    held = resident_with(m);
  }
  uint64_t used = held - m.segments.warm_free();
  return used + bytes <= limit;
}

bool grow(DeviceMemory& m, void* stream, uint64_t bytes, aj_status** why) {
  Device* d = m.device;
  uint64_t least = m.host ? 64ull << 20 : 8ull << 20, granule = m.segments.granule();
  for (uint64_t size : {std::max(least, bytes), bytes}) {
    size = (size + granule - 1) / granule * granule;
    if (m.limit() != UINT64_MAX && size > bytes && m.segments.reserved() + size > m.limit())
      continue;
    void* p = nullptr;
    aj_status* s = raw_alloc(d, size, &p);
    const char* wrong = s ? nullptr
                        : reinterpret_cast<uintptr_t>(p) % 64 != 0
                            ? "an address that is not aligned to 64 bytes"
                        : m.segments.overlaps(p, size) ? "memory that it has given before"
                                                       : nullptr;
    if (wrong) {
      if (!m.segments.overlaps(p, size)) m.taken.come(size), free_raw(&m, p, size);
      s = fail(AJ_INTERNAL, device_kind_name(d->id.device_type), ": mem_alloc of plugin '",
               d->plugin, "' gave ", wrong);
    }
    if (!s) {
      m.system_allocations++;
      m.taken.come(size);
      m.segments.add(p, size, stream, !m.host);
      return true;
    }
    if (*why) free_status(*why);
    *why = s;
  }
  return false;
}

}  // namespace

aj_status* raw_alloc(Device* d, uint64_t bytes, void** out) {
  *out = nullptr;
  const aj_device_vtbl& v = d->vtbl;
  if (aj_status* s = caught(own_table(v).mem_alloc, "mem_alloc", [&] {
        return v.mem_alloc(v.self, d->id.device_id, bytes, AJ_MEM_DEVICE, out);
      }))
    return s->placed ? s : prefix(s, text("mem_alloc of plugin '", d->plugin, "': "));
  if (*out) return nullptr;
  return fail(AJ_INTERNAL, device_kind_name(d->id.device_type), ": mem_alloc of plugin '",
              d->plugin, "' gave NULL and no status");
}

Place take_chunks(DeviceMemory& m, void* stream, uint64_t bytes, Use use, aj_status** why) {
  uint64_t granule = m.segments.granule(), chunks = (bytes + granule - 1) / granule;
  if (chunks > UINT32_MAX || !within_limit(m, chunks * granule)) return {nullptr, 0};
  Place at = m.segments.take(stream, uint32_t(chunks), use);
  if (!at.segment && grow(m, stream, chunks * granule, why))
    at = m.segments.take(stream, uint32_t(chunks), use);
  publish(m);
  return at;
}

void* take_medium(DeviceMemory& m, void* stream, int cls, aj_status** why) {
  auto& free = m.central_of(stream).free[cls];
  if (free.empty()) {
    Place at = take_chunks(m, stream, kSlab, Use::slab, why);
    if (!at.segment) return nullptr;
    at.chunk().slab_class = uint16_t(cls);
    char* base = at.segment->base + at.index * m.segments.granule();
    uint64_t size = medium_size(cls);
    for (uint64_t i = kSlab / size; i-- > 0;) free.push_back(base + i * size);
  }
  void* p = free.back();
  free.pop_back();
  return p;
}

void give_block(DeviceMemory& m, void* p, uint64_t got) {
  Place at = m.segments.find(p);
  if (got > kMediumMax) {
    m.large_used -= got;
    m.segments.give(at, memory_ticks());
    publish(m);
  } else {
    m.medium_used -= got;
    m.central_of(at.segment->stream).free[medium_class(got)].push_back(p);
  }
}

void flush_cache(DeviceMemory& m, ThreadCache* c, int divisor) {
  Central& central = m.central_of(nullptr);
  for (int cls = 0; cls < kMediumClasses; cls++) {
    FreeList& list = c->lists[cls];
    uint32_t n =
        divisor == 1 ? UINT32_MAX : (list.count + uint32_t(divisor) - 1) / uint32_t(divisor);
    for (; n > 0 && list.head; n--) {
      void* p = list.head;
      list.head = *static_cast<void**>(p);
      if (list.count) list.count--;
      c->bytes -= std::min(c->bytes, medium_size(cls));
      central.free[cls].push_back(p);
    }
  }
}

void reclaim_slabs(DeviceMemory& m) {
  uint32_t now = memory_ticks();
  for (auto& [stream, central] : m.central) {
    for (int cls = 0; cls < kMediumClasses; cls++) {
      auto& free = central.free[cls];
      uint64_t capacity = kSlab / medium_size(cls);
      if (free.size() < capacity) continue;
      std::sort(free.begin(), free.end());
      std::vector<void*> rest;
      for (size_t i = 0; i < free.size();) {
        Place slab = m.segments.find(free[i]);
        char* end = slab.segment->base + slab.index * m.segments.granule() + kSlab;
        size_t last = i;
        while (last < free.size() && free[last] < end) last++;
        if (last - i == capacity)
          m.segments.give(slab, now);
        else
          rest.insert(rest.end(), free.begin() + ptrdiff_t(i), free.begin() + ptrdiff_t(last));
        i = last;
      }
      free = std::move(rest);
    }
  }
  publish(m);
}

void apply_policy(DeviceMemory& m, uint32_t now) {
  m.note_peak(now);
  bool can_idle = m.device->vtbl.mem_idle;
  if (m.segments.warm_free() > kWarmFloor) {
    // A step of training frees what the next one takes: what the last seconds had in use stays
    // warm.
    uint64_t peak = m.recent_peak(now), used = m.in_use();
    uint64_t keep = std::max(kWarmFloor, peak > used ? peak - used : 0);
    if (m.segments.warm_free() > keep) {
      if (can_idle)
        m.segments.cool(keep, 0, idle_pages, &m);
      else
        m.segments.drop_free_segments(keep, free_raw, &m);
    }
  }
  if (can_idle && now - m.last_idle_scan >= kTicksPerSecond && m.segments.warm_free()) {
    m.last_idle_scan = now;
    m.segments.cool(UINT64_MAX, now - kIdleTicks + 1, idle_pages, &m);
  }
  if (now - m.last_reclaim >= kIdleTicks) {
    m.last_reclaim = now;
    reclaim_slabs(m);
  }
  publish(m);
}

void drop_whole(DeviceMemory& m) {
  for (auto& [bytes, free] : std::exchange(m.whole, {}))
    for (void* p : free) free_raw(&m, p, bytes);
  m.whole_bytes = 0;
}

void cool_all(DeviceMemory& m) {
  drop_whole(m);
  m.segments.drop_free_segments(0, free_raw, &m);
  if (m.host && m.device->vtbl.mem_idle) m.segments.cool(0, 0, idle_pages, &m);
  publish(m);
}

}  // namespace adjoin
