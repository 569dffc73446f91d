// core/memory/capture.cpp: between the begin and the end of a capture a stream's memory comes from
// a pool. The pool lives as long as the graphs that were captured with it, so what a replay writes
// to belongs to nobody else.
#include "core/memory/capture.hpp"

#include <algorithm>

#include "core/guest/object.hpp"
#include "core/memory/cache.hpp"

namespace adjoin {

namespace {

struct Graph {
  Device* device;
  void* native;
  Pool* pool;
};

Pool* open_pool(DeviceMemory& m, void* stream) {
  auto at = std::ranges::find_if(m.pools, [&](auto& p) { return p->open && p->stream == stream; });
  return at == m.pools.end() ? nullptr : at->get();
}

// With the last graph of a pool its memory becomes as any other that is free, or will be.
void leave(DeviceMemory& m, Pool* pool) {
  std::lock_guard held(m.lock);
  if (--pool->graphs) return;
  reclaim_slabs(m);
  m.segments.release_from(pool);
  std::erase_if(m.pools, [&](auto& p) { return p.get() == pool; });
}

void graph_destroy(void* payload) {
  auto* g = static_cast<Graph*>(payload);
  if (!g->device) return;
  const aj_device_vtbl& v = g->device->vtbl;
  if (v.graph_free)
    if (aj_status* s = v.graph_free(v.self, g->device->id.device_id, g->native)) free_status(s);
  leave(*g->device->memory, g->pool);
}

int32_t graph_type() {
  static const int32_t type = [] {
    int32_t made = 0;
    if (aj_status* s = type_register(str("aj.graph"), sizeof(Graph), graph_destroy, &made))
      free_status(s);
    return made;
  }();
  return type;
}

Graph* graph_of(aj_object* o) {
  return o && o->type == graph_type() ? static_cast<Graph*>(object_payload(o)) : nullptr;
}

aj_status* capturing_device(DLDevice id, const char* who, void* native, Device** out) {
  AJ_TRY(device_open(id, out));
  const aj_device_vtbl& v = (*out)->vtbl;
  if (!v.capture_begin || !v.capture_end || !v.graph_launch || !v.graph_free || !(*out)->memory)
    return fail(AJ_UNIMPLEMENTED, who, ": device ", id, " captures no graphs: its plugin ",
                (*out)->plugin, " has no functions for it");
  if (!native)
    return fail(AJ_INVALID_ARGUMENT, who, ": the default stream of ", id,
                " cannot be captured; make another one current");
  return nullptr;
}

}  // namespace

std::atomic<int32_t> captures_open{0};

bool is_capturing(Device* d, void* stream) {
  if (!d->memory) return false;
  std::lock_guard held(d->memory->lock);
  return open_pool(*d->memory, stream) != nullptr;
}

void* pool_for(DeviceMemory& m, void* stream) {
  if (m.pools.empty()) return stream;
  Pool* pool = open_pool(m, stream);
  return pool ? pool : stream;
}

bool belongs_to(DeviceMemory& m, void* key, void* stream) {
  if (key == stream) return true;
  return std::ranges::any_of(m.pools,
                             [&](auto& p) { return p.get() == key && p->stream == stream; });
}

aj_status* capture_begin(DLDevice device, void* native, aj_object* share) {
  Device* d;
  AJ_TRY(capturing_device(device, "capture_begin", native, &d));
  Graph* with = graph_of(share);
  if (share && (!with || with->device != d))
    return fail(AJ_INVALID_ARGUMENT, "capture_begin: memory is shared with ",
                with ? "a graph of another device" : "an object that is no graph");
  DeviceMemory& m = *d->memory;
  AJ_TRY(device_synchronize(
      d));  // nothing that is queued may hold memory which the capture then takes
  Pool* pool;
  {
    std::lock_guard held(m.lock);
    if (open_pool(m, native))
      return fail(AJ_PRECONDITION, "capture_begin: this stream of ", device,
                  " is being captured already");
    if (with && with->pool->open)
      return fail(AJ_PRECONDITION, "capture_begin: the graph's memory serves another capture now");
    if (with)
      pool = with->pool;
    else
      pool = m.pools.emplace_back(std::make_unique<Pool>()).get();
    pool->stream = native;
    pool->graphs++;
    pool->open = true;
    m.segments.keep(pool);
  }
  captures_open.fetch_add(1);
  const aj_device_vtbl& v = d->vtbl;
  if (aj_status* s = v.capture_begin(v.self, device.device_id, native)) {
    captures_open.fetch_sub(1);
    pool->open = false;
    leave(m, pool);
    return s;
  }
  return nullptr;
}

aj_status* capture_end(DLDevice device, void* native, aj_object** out_graph) {
  Device* d;
  AJ_TRY(capturing_device(device, "capture_end", native, &d));
  DeviceMemory& m = *d->memory;
  Pool* pool;
  {
    std::lock_guard held(m.lock);
    pool = open_pool(m, native);
    if (!pool)
      return fail(AJ_PRECONDITION, "capture_end: no capture has begun on this stream of ", device);
    pool->open = false;
  }
  captures_open.fetch_sub(1);
  const aj_device_vtbl& v = d->vtbl;
  void *graph = nullptr, *payload = nullptr;
  aj_status* s = v.capture_end(v.self, device.device_id, native, &graph);
  if (!s) {
    s = type_object_new(graph_type(), out_graph, &payload);
    if (s) free_status(v.graph_free(v.self, device.device_id, graph));
  }
  if (s) {
    leave(m, pool);
    return s;
  }
  *static_cast<Graph*>(payload) = {d, graph, pool};
  return nullptr;
}

aj_status* graph_launch(aj_object* o, void* native) {
  Graph* g = graph_of(o);
  if (!g) return fail(AJ_WRONG_TYPE, "graph_launch: the object is no graph");
  const aj_device_vtbl& v = g->device->vtbl;
  return v.graph_launch(v.self, g->device->id.device_id, g->native, native);
}

}  // namespace adjoin
