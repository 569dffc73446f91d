// core/memory/report.cpp: statistics of a device's memory, and who holds it when there is none
// left.
#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/plain.hpp"
#include "core/guest/frontend.hpp"
#include "core/memory/cache.hpp"
#include "core/memory/pinned.hpp"

namespace adjoin {
namespace {

std::string size_text(uint64_t bytes) {
  const char* unit[] = {"B", "KB", "MB", "GB", "TB"};
  double v = double(bytes);
  int u = 0;
  while (v >= 999.95 && u < 4) v /= 1000, u++;
  return fixed_text(v, u ? 1 : 0) + " " + unit[u];
}

struct Numbers {
  uint64_t in_use, peak, cached, limit, allocations, system_allocations;
};

// The host's small heap belongs to no device; it is counted with the one that serves the others.
Numbers numbers(Device* d) {
  DeviceMemory& m = *d->memory;
  Numbers n{};
  {
    std::lock_guard held(m.lock);
    m.note_peak(memory_ticks());
    n.in_use = m.in_use();
    n.peak = m.peak;
    uint64_t held_bytes =
        m.direct ? m.large_used + m.whole_bytes : m.segments.used() + m.segments.warm_free();
    n.cached = held_bytes > n.in_use ? held_bytes - n.in_use : 0;
    n.limit = m.limit() == UINT64_MAX ? 0 : m.limit();
    n.allocations = m.allocations;
    n.system_allocations = m.system_allocations;
    for (ThreadCache* c : m.caches) n.allocations += c->allocations.load(std::memory_order_relaxed);
  }
  if (m.host && d == host_fallback_device()) {
    uint64_t small = small_in_use(), reserved = small_reserved();
    n.in_use += small;
    n.peak = std::max(n.peak + small, n.in_use);
    n.cached += reserved > small ? reserved - small : 0;
  }
  return n;
}

aj_status* memory_of(DLDevice id, const char* who, Device** out) {
  AJ_TRY(device_open(id, out));
  if ((*out)->memory) return nullptr;
  return fail(AJ_INVALID_ARGUMENT, who, ": device ", id, " has no memory");
}

std::string largest_owners(DeviceMemory& m) {
  struct Sum {
    uint64_t count = 0;
  };
  std::map<std::tuple<const aj_op*, uint32_t, uint64_t>, Sum> owners;
  {
    std::lock_guard held(m.lock);
    m.segments.each_block([&](const Chunk& c, uint64_t bytes) {
      owners[{c.op, c.line, bytes}].count++;
    });
  }
  using Entry = decltype(owners)::value_type;
  std::vector<const Entry*> order;
  for (const Entry& e : owners) order.push_back(&e);
  auto total = [](const Entry* e) { return e->second.count * std::get<2>(e->first); };
  std::stable_sort(order.begin(), order.end(),
                   [&](auto* a, auto* b) { return total(a) > total(b); });
  if (order.size() > 10) order.resize(10);
  std::string out;
  for (const Entry* e : order) {
    auto [op, line, bytes] = e->first;
    out += out.empty() ? "; largest owners: " : "; ";
    out += op ? op_name(op) : "outside of ops";
    if (std::string where = frontend_line(line); !where.empty()) out += " at " + where;
    out += ": " + std::to_string(e->second.count) + " x " + size_text(bytes);
  }
  return out;
}

}  // namespace

void collect_garbage() {
  static thread_local bool collecting = false;  // the collector may allocate itself
  if (collecting) return;
  collecting = true;
  frontend_collect();
  collecting = false;
}

std::string memory_report(Device* d) {
  Numbers n = numbers(d);
  return "in use " + size_text(n.in_use) + ", cached " + size_text(n.cached) +
         (n.limit ? ", limit " + size_text(n.limit) : "") + largest_owners(*d->memory);
}

aj_status* out_of_memory(DeviceMemory& m, uint64_t asked, aj_status* steal_cause) {
  aj_status* s = fail(AJ_OUT_OF_MEMORY, device_text(m.device->id), ": out of memory: asked for ",
                      size_text(asked), "; ", memory_report(m.device));
  if (s->is_static) {
    if (steal_cause) free_status(steal_cause);
    return s;
  }
  s->cause = steal_cause;
  return s;
}

uint64_t memory_in_use(Device* d) { return numbers(d).in_use; }

aj_status* memory_stats(DLDevice device, aj_memory_stats* io) {
  Device* d;
  AJ_TRY(memory_of(device, "memory_stats", &d));
  Numbers n = numbers(d);
  aj_memory_stats all{};
  all.struct_size = io->struct_size;
  all.in_use = n.in_use;
  all.peak_in_use = n.peak;
  all.cached = n.cached;
  all.limit = n.limit;
  all.allocations = n.allocations;
  all.system_allocations = n.system_allocations;
  std::copy_n(reinterpret_cast<char*>(&all), std::min<size_t>(io->struct_size, sizeof all),
              reinterpret_cast<char*>(io));
  return nullptr;
}

aj_status* memory_release(DLDevice device) {
  Device* d;
  AJ_TRY(memory_of(device, "memory_release", &d));
  DeviceMemory& m = *d->memory;
  trim();
  pinned_release(d->id.device_type);
  if (m.host) small_trim();
  std::lock_guard held(m.lock);
  poll_pending(m, true);
  for (auto* c = static_cast<ThreadCache*>(tls.memory_cache); c; c = c->next)
    if (c->memory == &m) flush_cache(m, c, 1);
  reclaim_slabs(m);
  cool_all(m);
  return nullptr;
}

aj_status* memory_limit(DLDevice device, uint64_t bytes) {
  Device* d;
  AJ_TRY(memory_of(device, "memory_limit", &d));
  std::lock_guard held(d->memory->lock);
  d->memory->user_limit = bytes;
  return nullptr;
}

aj_status* memory_reset_peak(DLDevice device) {
  Device* d;
  AJ_TRY(memory_of(device, "memory_reset_peak", &d));
  std::lock_guard held(d->memory->lock);
  DeviceMemory& m = *d->memory;
  m.peak = m.in_use();
  for (Tallies* each : {&m.small, &m.large, &m.given, &m.taken})
    each->blocks.peak = each->blocks.current, each->bytes.peak = each->bytes.current;
  return nullptr;
}

}  // namespace adjoin
