// plugins/emulated/device.cpp: memory, streams, events and copies of emulated devices, as the
// contract wants them.
#include "device.hpp"

#include <adjoin/kit/error.hpp>
#include <cstdlib>

#include "arena.hpp"
#include "orders.hpp"
#include "stream.hpp"

namespace adjoin::emulated {
namespace {

using kit::fail;

aj_status* count(void*, int32_t* out) {
  *out = int32_t(orders.devices.load());
  return nullptr;
}

aj_status* props(void*, int32_t, aj_device_props* io) {
  aj_device_props known = {};
  known.struct_size = io->struct_size;
  known.total_memory = uint64_t(orders.memory.load());
  known.min_alignment = 512;
  known.multiprocessors = 1;
  std::memcpy(known.name, "emulated GPU", 13);
  std::memcpy(known.arch, "fibres", 7);
  std::memcpy(io, &known, std::min<size_t>(io->struct_size, sizeof known));
  return nullptr;
}

aj_status* mem_alloc(void*, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  if (aj_status* s = check_alive()) return s;
  if (orders.alloc_fails())
    return fail(AJ_OUT_OF_MEMORY, "emulated:", dev, ": out of memory, as ordered: asked for ",
                bytes, " bytes");
  if (kind == AJ_MEM_PINNED) {
    *out = std::aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    return *out ? nullptr
                : fail(AJ_OUT_OF_MEMORY, "emulated: no pinned memory of ", bytes, " bytes");
  }
  if (kind != AJ_MEM_DEVICE) return fail(AJ_UNIMPLEMENTED, "emulated: there is no managed memory");
  if (aj_status* s = arena.open(int32_t(orders.devices), uint64_t(orders.memory.load()))) return s;
  return arena.take(dev, bytes, out);
}

aj_status* mem_free(void*, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  if (aj_status* s = check_alive()) return s;
  // What is queued may use it still.
  if (aj_status* s = wait_for_device(dev, Stream::Errors::leave)) return s;
  if (kind == AJ_MEM_PINNED)
    std::free(p);
  else
    arena.give(dev, p, bytes);
  return nullptr;
}

aj_status* mem_info(void*, int32_t dev, uint64_t* free_bytes, uint64_t* total_bytes) {
  if (aj_status* s = arena.open(int32_t(orders.devices), uint64_t(orders.memory.load()))) return s;
  *total_bytes = arena.size();
  *free_bytes = arena.size() - arena.used(dev);
  return nullptr;
}

aj_status* mem_idle(void*, int32_t, void* p, uint64_t bytes) {
  if (aj_status* s = check_alive()) return s;
  arena.forget(p, bytes);
  return nullptr;
}

aj_status* stream_new(void*, int32_t dev, int32_t, void** out) {
  if (aj_status* s = check_alive()) return s;
  *out = new Stream(dev);
  return nullptr;
}
aj_status* stream_free(void*, int32_t, void* stream) {
  if (aj_status* s = check_alive()) return s;
  return static_cast<Stream*>(stream)->end();
}
aj_status* stream_sync(void*, int32_t dev, void* stream) {
  if (!stream) return wait_for_device(dev);
  auto* s = static_cast<Stream*>(stream);
  if (s->captures())
    return fail(AJ_PRECONDITION, "emulated:", dev,
                ": the stream is being captured, so nothing runs that could be waited for; copy "
                "values to the host after the capture");
  return s->wait(s->queued());
}
aj_status* stream_query(void*, int32_t dev, void* stream, int32_t* done) {
  Stream& s = stream_of(dev, stream);
  if (aj_status* late = s.ask(s.queued(), done)) return late;
  // Who is told goes on with memory that the rest of the queue may use still, so it ends first.
  return *done ? s.take_error() : nullptr;
}
// A captured order between streams would have to be part of the graph, which is one stream's here.
aj_status* not_captured(Stream& s, const char* what) {
  if (!s.captures()) return nullptr;
  return fail(AJ_PRECONDITION, "emulated:", s.device(), ": ", what,
              " cannot be captured: a graph here is the work of one stream");
}

aj_status* stream_wait(void*, int32_t dev, void* stream, void* event) {
  auto* e = static_cast<Event*>(event);
  if (!e->stream) return nullptr;
  Stream* other = e->stream;
  uint64_t ticket = e->ticket;
  if (other == &stream_of(dev, stream)) return nullptr;
  if (aj_status* s = not_captured(stream_of(dev, stream), "a wait for an event")) return s;
  auto wait = [other, ticket]() -> aj_status* {
    while (!other->passed(ticket)) std::this_thread::sleep_for(std::chrono::microseconds(20));
    return nullptr;  // whoever waits for the other stream is told what went wrong there
  };
  return stream_of(dev, stream).submit({wait, "a wait for an event", false, {}});
}
aj_status* stream_host_fn(void*, int32_t dev, void* stream, void (*fn)(void*), void* arg) {
  auto call = [fn, arg]() -> aj_status* {
    fn(arg);
    return nullptr;
  };
  return stream_of(dev, stream).submit({call, "a function of the host", false, {}});
}

aj_status* event_new(void*, int32_t, uint32_t, void** out) {
  *out = new Event;
  return nullptr;
}
aj_status* event_free(void*, int32_t, void* event) {
  delete static_cast<Event*>(event);
  return nullptr;
}
aj_status* event_record(void*, int32_t dev, void* event, void* stream) {
  auto* e = static_cast<Event*>(event);
  Stream& s = stream_of(dev, stream);
  if (aj_status* wrong = not_captured(s, "an event")) return wrong;
  auto to = std::make_shared<Stamp>();
  auto stamp = [to]() -> aj_status* {
    std::lock_guard held(to->lock);
    to->when = std::chrono::steady_clock::now();
    return nullptr;
  };
  e->stream = &s;
  e->stamp = to;
  return s.submit({stamp, "an event", false, {}}, &e->ticket);
}
aj_status* event_query(void*, int32_t, void* event, int32_t* done) {
  auto* e = static_cast<Event*>(event);
  *done = 1;
  if (!e->stream || poisoned) return nullptr;
  if (aj_status* late = e->stream->ask(e->ticket, done)) return late;
  return *done ? e->stream->look_at_error(e->ticket) : nullptr;
}
aj_status* event_sync(void*, int32_t, void* event) {
  auto* e = static_cast<Event*>(event);
  return e->stream ? e->stream->wait(e->ticket, Stream::Errors::look) : nullptr;
}
aj_status* event_elapsed(void*, int32_t, void* start, void* stop, double* out_ms) {
  auto *a = static_cast<Event*>(start), *b = static_cast<Event*>(stop);
  if (!a->stream || !b->stream || !a->stream->passed(a->ticket) || !b->stream->passed(b->ticket))
    return fail(AJ_PRECONDITION,
                "emulated: the time between two events is asked for before both have passed; "
                "synchronize with the second one");
  std::scoped_lock held(a->stamp->lock, b->stamp->lock);
  *out_ms = std::chrono::duration<double, std::milli>(b->stamp->when - a->stamp->when).count();
  return nullptr;
}

bool own(DLDevice d) {
  aj_str name = kit::core().device_name(d.device_type);
  return kit::view_of(name).substr(0, 8) == "emulated";
}

aj_status* copy(void*, const aj_copy* c) {
  if (aj_status* s = check_alive()) return s;
  bool here = own(c->dst_device);
  int32_t dev = here ? c->dst_device.device_id : c->src_device.device_id;
  auto move = [d = *c]() -> aj_status* {
    if (orders.fail_copy.due())
      return fail(AJ_UNAVAILABLE, "emulated: a copy of ", d.width * d.height,
                  " bytes has failed, as ordered");
    char* to = arena.reach(static_cast<char*>(d.dst));
    const char* from = arena.reach(static_cast<const char*>(d.src));
    for (uint64_t row = 0; row < d.height; ++row)
      std::memmove(to + row * d.dst_pitch, from + row * d.src_pitch, d.width);
    return nullptr;
  };
  bool queued = c->stream || (c->flags & AJ_COPY_QUEUED);
  return queued ? stream_of(dev, c->stream).submit({move, "a copy", true, {}}) : move();
}

aj_status* fill(void*, int32_t dev, void* p, uint64_t offset, const void* pattern,
                uint64_t pattern_bytes, uint64_t bytes, void* stream) {
  if (pattern_bytes == 0)
    return fail(AJ_INVALID_ARGUMENT, "emulated: the pattern to fill with is empty");
  std::string kept(static_cast<const char*>(pattern), pattern_bytes);
  auto write = [=]() -> aj_status* {
    char* to = arena.reach(static_cast<char*>(p) + offset);
    for (uint64_t at = 0; at < bytes; at += kept.size())
      std::memcpy(to + at, kept.data(), std::min<uint64_t>(kept.size(), bytes - at));
    return nullptr;
  };
  return stream_of(dev, stream).submit({write, "a fill", true, {}});
}

aj_status* capture_begin(void*, int32_t dev, void* stream) {
  if (!stream)
    return fail(AJ_PRECONDITION, "emulated:", dev,
                ": the default stream cannot be captured; make another one current");
  return static_cast<Stream*>(stream)->capture();
}
aj_status* capture_end(void*, int32_t, void* stream, void** out_graph) {
  Graph* graph = nullptr;
  aj_status* s = static_cast<Stream*>(stream)->end_capture(&graph);
  *out_graph = graph;
  return s;
}
aj_status* graph_launch(void*, int32_t, void* graph, void* stream) {
  auto* g = static_cast<Graph*>(graph);
  for (const Work& work : g->work)
    if (aj_status* s = stream_of(g->device, stream).submit(work)) return s;
  return nullptr;
}
aj_status* graph_free(void*, int32_t, void* graph) {
  delete static_cast<Graph*>(graph);
  return nullptr;
}

aj_status* ipc_export(void*, int32_t dev, void* p, uint8_t out_handle[128]) {
  if (aj_status* s = wait_for_device(dev, Stream::Errors::leave)) return s;
  return arena.show(p, out_handle);
}
aj_status* ipc_open(void*, int32_t dev, const uint8_t handle[128], void** out) {
  if (aj_status* s = check_alive()) return s;
  if (aj_status* s = arena.open(int32_t(orders.devices), uint64_t(orders.memory.load()))) return s;
  (void)dev;
  return arena.adopt(handle, out);
}
aj_status* ipc_close(void*, int32_t dev, void* p) {
  if (aj_status* s = wait_for_device(dev, Stream::Errors::leave)) return s;
  return arena.part(p);
}

void fork_child(void*) {
  if (arena.size()) poisoned = true;
}

}  // namespace

constexpr aj_device_vtbl device_table = [] {
  aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_PEER_COPY;
  v.name = AJ_STR_LIT("emulated");
  v.count = count;
  v.props = props;
  v.mem_alloc = mem_alloc;
  v.mem_free = mem_free;
  v.mem_info = mem_info;
  v.mem_idle = mem_idle;
  v.stream_new = stream_new;
  v.stream_free = stream_free;
  v.stream_sync = stream_sync;
  v.stream_query = stream_query;
  v.stream_wait = stream_wait;
  v.stream_host_fn = stream_host_fn;
  v.event_new = event_new;
  v.event_free = event_free;
  v.event_record = event_record;
  v.event_query = event_query;
  v.event_sync = event_sync;
  v.event_elapsed = event_elapsed;
  v.copy = copy;
  v.fill = fill;
  v.ipc_export = ipc_export;
  v.ipc_open = ipc_open;
  v.ipc_close = ipc_close;
  v.fork_child = fork_child;
  v.capture_begin = capture_begin;
  v.capture_end = capture_end;
  v.graph_launch = graph_launch;
  v.graph_free = graph_free;
  return v;
}();

}  // namespace adjoin::emulated
