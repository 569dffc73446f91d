// core/memory/capture.cpp: between the begin and the end of a capture a stream's memory comes from
// a pool. The pool lives as long as the graphs that were captured with it, so what a replay writes
// to belongs to nobody else.
#include "core/memory/capture.hpp"

#include <adjoin/kit/philox.hpp>
#include <algorithm>

#include "core/base/tls.hpp"
#include "core/guest/object.hpp"
#include "core/memory/cache.hpp"
#include "core/random/generator.hpp"

namespace adjoin {

namespace {

struct Graph {
  Device* device;
  void* native;
  Pool* pool;
  std::vector<Draws>* draws;
};
constexpr uint64_t kPlaceBytes = 2 * sizeof(uint64_t), kPlaces = 64;

Pool* open_pool(DeviceMemory& m, void* stream) {
  auto at = std::ranges::find_if(m.pools, [&](auto& p) { return p->open && p->stream == stream; });
  return at == m.pools.end() ? nullptr : at->get();
}

// The capture that this thread's work on a device is kept for: that of the current stream, or one
// that the thread has begun, whose other streams follow it.
Pool* thread_pool(DeviceMemory& m, void* stream) {
  if (Pool* pool = open_pool(m, stream)) return pool;
  auto at = std::ranges::find_if(m.pools, [](auto& p) { return p->open && p->thread == &tls; });
  return at == m.pools.end() ? nullptr : at->get();
}

void forget(DeviceMemory& m, const std::vector<Draws>& draws) {
  for (const Draws& d : draws) any_release(d.generator);
  std::lock_guard held(m.lock);
  for (const Draws& d : draws) m.places.push_back(d.place);
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
  forget(*g->device->memory, *g->draws);
  delete g->draws;
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
    pool->thread = &tls;
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
  std::vector<Draws> draws;
  {
    std::lock_guard held(m.lock);
    pool = open_pool(m, native);
    if (!pool)
      return fail(AJ_PRECONDITION, "capture_end: no capture has begun on this stream of ", device);
    pool->open = false;
    draws.swap(pool->draws);
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
    forget(m, draws);
    leave(m, pool);
    return s;
  }
  *static_cast<Graph*>(payload) = {d, graph, pool, new std::vector(std::move(draws))};
  return nullptr;
}

aj_status* graph_launch(aj_object* o, void* native) {
  Graph* g = graph_of(o);
  if (!g) return fail(AJ_WRONG_TYPE, "graph_launch: the object is no graph");
  const aj_device_vtbl& v = g->device->vtbl;
  int32_t device = g->device->id.device_id;
  for (const Draws& d : *g->draws) {
    uint64_t from[2];
    static_assert(sizeof from == kPlaceBytes);
    AJ_TRY(generator_draw(d.generator, d.blocks, &from[0], &from[1]));
    AJ_TRY(v.fill(v.self, device, d.place, 0, from, sizeof from, sizeof from, native));
  }
  return v.graph_launch(v.self, device, g->native, native);
}

aj_status* draw_or_capture(aj_object* g, uint64_t blocks, uint64_t* seed, uint64_t* offset) {
  if (__builtin_expect(captures_open.load(std::memory_order_relaxed) == 0, 1))
    return generator_draw(g, blocks, seed, offset);
  DLDevice id = generator_device(g);
  Device* d = nullptr;
  if (id.device_type) AJ_TRY(device_open(id, &d));
  if (!d || !d->memory || d->memory->handles || !d->vtbl.fill)
    return generator_draw(g, blocks, seed, offset);
  DeviceMemory& m = *d->memory;
  void* stream = nullptr;
  AJ_TRY(stream_current(id, &stream));
  for (;;) {
    {
      std::lock_guard held(m.lock);
      Pool* pool = thread_pool(m, stream);
      if (!pool) break;
      auto at = std::ranges::find(pool->draws, g, &Draws::generator);
      if (at == pool->draws.end() && !m.places.empty()) {
        any_retain(g);
        at = pool->draws.insert(at, {g, m.places.back(), 0});
        m.places.pop_back();
      }
      if (at != pool->draws.end()) {
        *seed = reinterpret_cast<uint64_t>(at->place);
        *offset = kit::kInGraph | at->blocks;
        at->blocks += blocks;
        return nullptr;
      }
    }
    void* room = nullptr;
    uint64_t got = 0;
    AJ_TRY(device_alloc(d, kPlaces * kPlaceBytes, &room, &got));
    std::lock_guard held(m.lock);
    for (uint64_t i = 0; i < kPlaces; ++i)
      m.places.push_back(static_cast<char*>(room) + i * kPlaceBytes);
  }
  return generator_draw(g, blocks, seed, offset);
}

}  // namespace adjoin
