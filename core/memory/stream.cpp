// core/memory/stream.cpp: a block that a foreign stream has used is not handed out again before
// that stream has passed.
#include <algorithm>

#include "core/memory/cache.hpp"
#include "core/memory/capture.hpp"

namespace adjoin {
namespace {

void drop(aj_status* s) {
  if (s) free_status(s);
}

}  // namespace

void memory_use(Device* d, void* p, void* stream) {
  DeviceMemory* m = d->memory;
  if (!m || !p || (m->host && (d->flags & AJ_DEV_SYNCHRONOUS))) return;
  if (m->host || m->direct) return;
  std::lock_guard held(m->lock);
  Place at = m->segments.find(p);
  if (!at.segment || belongs_to(*m, at.segment->stream, stream)) return;
  auto& streams = m->foreign[p];
  if (std::find(streams.begin(), streams.end(), stream) != streams.end()) return;
  streams.push_back(stream);
  m->foreign_count.store(uint32_t(m->foreign.size()), std::memory_order_relaxed);
}

bool defer_free(DeviceMemory& m, void* p, uint64_t got) {
  if (!m.foreign_count.load(std::memory_order_relaxed)) return false;
  auto it = m.foreign.find(p);
  if (it == m.foreign.end()) return false;
  const aj_device_vtbl& v = m.device->vtbl;
  int32_t dev = m.device->id.device_id;
  Pending waiting{p, got, {}};
  for (void* stream : it->second) {
    void* event = nullptr;
    aj_status* s = v.event_new && v.event_record ? v.event_new(v.self, dev, 0, &event) : nullptr;
    if (!s && event) s = v.event_record(v.self, dev, event, stream);
    if (!s && event) {
      waiting.events.push_back(event);
      continue;
    }
    drop(s);  // a device without events: wait here and now
    if (event && v.event_free) drop(v.event_free(v.self, dev, event));
    if (v.stream_sync) drop(v.stream_sync(v.self, dev, stream));
  }
  m.foreign.erase(it);
  m.foreign_count.store(uint32_t(m.foreign.size()), std::memory_order_relaxed);
  if (waiting.events.empty()) return false;
  m.pending.push_back(std::move(waiting));
  return true;
}

void poll_pending(DeviceMemory& m, bool wait) {
  const aj_device_vtbl& v = m.device->vtbl;
  int32_t dev = m.device->id.device_id;
  // An event that answers with an error has passed too: whoever asks the stream next is told.
  auto passed = [&](void* event) {
    int32_t done = 1;
    if (wait && v.event_sync)
      drop(v.event_sync(v.self, dev, event));
    else if (v.event_query)
      if (aj_status* s = v.event_query(v.self, dev, event, &done)) drop(s), done = 1;
    if (done && v.event_free) drop(v.event_free(v.self, dev, event));
    return done != 0;
  };
  std::erase_if(m.pending, [&](Pending& waiting) {
    std::erase_if(waiting.events, passed);
    if (!waiting.events.empty()) return false;
    give_block(m, waiting.p, waiting.got);
    return true;
  });
}

}  // namespace adjoin
