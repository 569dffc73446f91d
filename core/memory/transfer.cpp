// core/memory/transfer.cpp: bytes between devices, waiting for devices, the streams that a thread
// works on.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/base/tls.hpp"
#include "core/device/registry.hpp"
#include "core/guest/caught.hpp"
#include "core/memory/pinned.hpp"

namespace adjoin {
namespace {

constexpr uint64_t kStage = 4 << 20;

// Only devices other than the one in tls: few threads use two devices that have streams.
using Streams = std::vector<std::pair<DLDevice, void*>>;
thread_local Streams* streams = nullptr;
struct StreamsEnd {
  ~StreamsEnd() { delete std::exchange(streams, nullptr); }
};

bool same(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

void** stream_slot(DLDevice id, bool make) {
  if (streams)
    for (auto& [device, stream] : *streams)
      if (same(device, id)) return &stream;
  if (!make) return nullptr;
  static thread_local StreamsEnd end;
  (void)end;
  if (!streams) streams = new Streams;
  return &streams->emplace_back(id, nullptr).second;
}

// For the default stream alone, where others may have work: NULL would mean the whole device.
aj_status* wait_for_default(Device* d) {
  const aj_device_vtbl& v = d->vtbl;
  void* event = nullptr;
  AJ_TRY(v.event_new(v.self, d->id.device_id, 0, &event));
  aj_status* s = v.event_record(v.self, d->id.device_id, event, nullptr);
  if (!s) s = event_wait_for(d, event);
  int32_t done = 0;  // what the event has told the stream need not tell again
  if (s && v.stream_query) free_status(v.stream_query(v.self, d->id.device_id, nullptr, &done));
  aj_status* freed = v.event_free(v.self, d->id.device_id, event);
  if (!s) return freed;
  free_status(freed);
  return s;
}

aj_status* wait_for_stream(Device* d) {
  const aj_device_vtbl& v = d->vtbl;
  if ((d->flags & AJ_DEV_SYNCHRONOUS) || !v.stream_sync) return nullptr;
  void* stream = nullptr;
  AJ_TRY(stream_current(d->id, &stream));
  bool others = streams_in_use.load(std::memory_order_relaxed);
  if (!stream && others && v.event_new && v.event_record && v.event_sync && v.event_free)
    return wait_for_default(d);
  return stream_wait_for(d, stream);
}

aj_status* copy_by(Device* worker, Bytes to, Bytes from, uint64_t bytes, uint32_t flags = 0,
                   void* stream = nullptr) {
  if (!worker->vtbl.copy)
    return !worker->plugin || !*worker->plugin
               ? fail(AJ_UNIMPLEMENTED, "copy: device ", worker->id,
                      " cannot copy: its tensors have shapes and no values; "
                      "make them on a device that has memory")
               : fail(AJ_UNIMPLEMENTED, "copy: device ", worker->id, " cannot copy: its plugin ",
                      worker->plugin, " has no 'copy'");
  aj_copy c{};
  c.struct_size = sizeof c;
  c.flags = flags;
  c.stream = stream;
  c.dst = to.data;
  c.dst_offset = to.offset;
  c.src = from.data;
  c.src_offset = from.offset;
  c.dst_device = to.device->id;
  c.src_device = from.device->id;
  c.width = c.dst_pitch = c.src_pitch = bytes;
  c.height = 1;
  return caught(own_table(worker->vtbl).copy, "copy",
                [&] { return worker->vtbl.copy(worker->vtbl.self, &c); });
}

bool host_pointer(const Device* d) { return d->host() && !(d->flags & AJ_DEV_OPAQUE_POINTERS); }

Bytes behind(Bytes at, uint64_t bytes) {
  if (at.device->flags & AJ_DEV_OPAQUE_POINTERS) return {at.device, at.data, at.offset + bytes};
  return {at.device, static_cast<char*>(at.data) + bytes, 0};
}

// In the table that copies, other devices are only "the host" or of the same kind, so a foreign
// host device is named as it is.
aj_status* staged(Bytes to, Bytes from, uint64_t bytes) {
  std::unique_ptr<char[]> stage(new (std::nothrow) char[std::min(bytes, kStage)]);
  if (!stage)
    return fail(AJ_OUT_OF_MEMORY, "copy: no memory to stage ", std::min(bytes, kStage), " bytes");
  Device host{};
  host.id = {kDLCPU, 0};
  if (Device* d = host_fallback_device()) host.id = d->id;
  for (uint64_t at = 0; at < bytes; at += kStage) {
    uint64_t n = std::min(kStage, bytes - at);
    AJ_TRY(copy_by(from.device, {&host, stage.get(), 0}, behind(from, at), n));
    AJ_TRY(copy_by(to.device, behind(to, at), {&host, stage.get(), 0}, n));
  }
  return nullptr;
}

// Between the host's pinned memory and a device, on the device's current stream.
aj_status* queue_copy(Device* worker, Bytes to, Bytes from, uint64_t bytes) {
  void* stream = nullptr;
  AJ_TRY(stream_current(worker->id, &stream));
  AJ_TRY(copy_by(worker, to, from, bytes, AJ_COPY_QUEUED, stream));
  return pinned_use(worker == to.device ? from.data : to.data, worker, stream);
}

// What is queued on a later than this waits for what is queued on b now.
aj_status* follow(Device* a, void* stream_a, Device* b, void* stream_b) {
  const aj_device_vtbl& v = b->vtbl;
  void* event = nullptr;
  AJ_TRY(v.event_new(v.self, b->id.device_id, 0, &event));
  aj_status* s = v.event_record(v.self, b->id.device_id, event, stream_b);
  if (!s) s = a->vtbl.stream_wait(a->vtbl.self, a->id.device_id, stream_a, event);
  aj_status* freed = v.event_free(v.self, b->id.device_id, event);
  if (!s) return freed;
  free_status(freed);
  return s;
}

bool are_peers(const Device* a, const Device* b) {
  const aj_device_vtbl& v = a->vtbl;
  return a->id.device_type == b->id.device_type && (a->flags & AJ_DEV_PEER_COPY) &&
         !(a->flags & AJ_DEV_SYNCHRONOUS) && v.event_new && v.event_record && v.event_free &&
         v.stream_wait;
}

// On the target's stream, in the order of both: the source is not written again before it is read.
aj_status* peer_copy(Bytes to, Bytes from, uint64_t bytes) {
  Device *dst = to.device, *src = from.device;
  void *here = nullptr, *there = nullptr;
  AJ_TRY(stream_current(dst->id, &here));
  AJ_TRY(stream_current(src->id, &there));
  AJ_TRY(follow(dst, here, src, there));
  AJ_TRY(copy_by(dst, to, from, bytes, AJ_COPY_QUEUED, here));
  return follow(src, there, dst, here);
}

}  // namespace

aj_status* device_copy(Bytes to, Bytes from, uint64_t bytes, bool queued) {
  Device *dst = to.device, *src = from.device;
  bool same_place = to.data == from.data && to.offset == from.offset;
  if (bytes == 0 || (same_place && dst == src)) return nullptr;
  if (host_pointer(dst) && host_pointer(src)) {
    std::memmove(to.data, from.data, bytes);
    return nullptr;
  }
  if (queued && host_pointer(src) && pinned_find(from.data))
    return queue_copy(dst, to, from, bytes);
  if (queued && host_pointer(dst) && pinned_find(to.data)) return queue_copy(src, to, from, bytes);
  if (dst != src && are_peers(dst, src)) return peer_copy(to, from, bytes);
  AJ_TRY(wait_for_stream(src));
  if (dst != src) AJ_TRY(wait_for_stream(dst));
  if (dst == src || host_pointer(src)) return copy_by(dst, to, from, bytes);
  if (host_pointer(dst)) return copy_by(src, to, from, bytes);
  if (dst->id.device_type == src->id.device_type && (dst->flags & AJ_DEV_PEER_COPY))
    return copy_by(dst, to, from, bytes);
  return staged(to, from, bytes);
}

aj_status* device_synchronize(Device* d) { return stream_wait_for(d, nullptr); }

aj_status* stream_follows(Device* d, void* stream) {
  if (d->flags & AJ_DEV_SYNCHRONOUS) return nullptr;
  void* here = nullptr;
  AJ_TRY(stream_current(d->id, &here));
  if (here == stream) return nullptr;
  const aj_device_vtbl& v = d->vtbl;
  if (v.event_new && v.event_record && v.event_free && v.stream_wait)
    return follow(d, stream, d, here);
  return v.stream_sync ? v.stream_sync(v.self, d->id.device_id, here) : nullptr;
}

std::atomic<bool> streams_in_use{false};

aj_status* stream_current(DLDevice id, void** out_native) {
  if (!same(tls.stream_device, id)) {
    void** slot = stream_slot(id, false);
    tls.stream_device = id;
    tls.stream = slot ? *slot : nullptr;
  }
  *out_native = tls.stream;
  return nullptr;
}

aj_status* stream_set(DLDevice id, void* native) {
  Device* d;
  AJ_TRY(device_open(id, &d));
  if (native && !d->vtbl.stream_sync)
    return fail(AJ_UNIMPLEMENTED, "stream_set: device ", id, " has no streams");
  if (native) streams_in_use.store(true, std::memory_order_relaxed);
  *stream_slot(id, true) = native;
  if (same(tls.stream_device, id)) tls.stream = native;
  return nullptr;
}

namespace {

// A disabled one may be unmapped, unless its device is open.
bool asks(const DeviceRegistry& r, const Provider& p) {
  if (p.on) return true;
  for (auto& kind : r.kinds)
    if (DeviceKind* k = kind.load(); k && k->opened && k->provider.get() == &p) return true;
  return false;
}

}  // namespace

void devices_fork_prepare() {
  DeviceRegistry& r = device_registry();
  r.lock.lock();
  for (auto& p : r.providers)
    if (asks(r, *p) && p->vtbl.fork_prepare)
      if (aj_status* s = p->vtbl.fork_prepare(p->vtbl.self))
        free_status(s);  // a fork cannot be refused
}

void devices_fork_parent() {
  DeviceRegistry& r = device_registry();
  for (auto& p : r.providers)
    if (asks(r, *p) && p->vtbl.fork_parent) p->vtbl.fork_parent(p->vtbl.self);
  r.lock.unlock();
}

void devices_fork_child() {
  DeviceRegistry& r = device_registry();
  for (auto& p : r.providers)
    if (asks(r, *p) && p->vtbl.fork_child) p->vtbl.fork_child(p->vtbl.self);
  r.lock.unlock();
}

}  // namespace adjoin
