// plugins/gpu/vendor/device.cpp: a vendor's GPU as the contract wants a device: streams, events,
// captured graphs, forks; memory is in memory.cpp.
#include "device.hpp"

#include "findings.hpp"
#include "launches.hpp"
#include "memory.hpp"

namespace adjoin::vendor {
namespace {

Stream queue_of(void* stream) { return static_cast<Stream>(stream); }
Event mark_of(void* event) { return static_cast<Event>(event); }

// Who has waited is told what kernels found meanwhile.
aj_status* and_faults(aj_status* waited, int32_t dev) { return waited ? waited : take_fault(dev); }

aj_status* count(void*, int32_t* out) {
  *out = 0;
  if (std::string why = missing(); !why.empty()) return kit::fail(AJ_UNAVAILABLE, why);
  *out = count_devices();
  return nullptr;
}

aj_status* props(void*, int32_t dev, aj_device_props* io) {
  if (aj_status* s = ready()) return s;
  aj_device_props known = {};
  known.struct_size = io->struct_size;
  known.min_alignment = 256;
  Result result = describe(dev, &known);
  if (result != kSuccess) return status_of(result, "props");
  std::memcpy(io, &known, std::min<size_t>(io->struct_size, sizeof known));
  return nullptr;
}

aj_status* stream_new(void*, int32_t dev, int32_t priority, void** out) {
  return on(dev, "stream_new", [&](const Runtime& r) {
    int lowest = 0, highest = 0;  // numbers fall as urgency rises
    Result result = r.DeviceGetStreamPriorityRange(&lowest, &highest);
    if (result != kSuccess) return result;
    int wanted = std::max(highest, std::min(lowest, int(priority)));
    Stream stream = nullptr;
    result = r.StreamCreateWithPriority(&stream, kStreamNonBlocking, wanted);
    *out = stream;
    return result;
  });
}
aj_status* stream_free(void*, int32_t dev, void* stream) {
  return on(dev, "stream_free",
            [&](const Runtime& r) { return r.StreamDestroy(queue_of(stream)); });
}
aj_status* stream_sync(void*, int32_t dev, void* stream) {
  aj_status* waited = on(dev, "stream_sync", [&](const Runtime& r) {
    return stream ? r.StreamSynchronize(queue_of(stream)) : r.DeviceSynchronize();
  });
  return and_faults(waited, dev);
}
aj_status* stream_query(void*, int32_t dev, void* stream, int32_t* done) {
  return on(dev, "stream_query", [&](const Runtime& r) {
    Result result = r.StreamQuery(queue_of(stream));
    *done = result != kNotReady;
    if (result == kNotReady) (void)r.GetLastError();
    return *done ? result : kSuccess;
  });
}
aj_status* stream_wait(void*, int32_t dev, void* stream, void* event) {
  return on(dev, "stream_wait", [&](const Runtime& r) {
    return r.StreamWaitEvent(queue_of(stream), mark_of(event), 0);
  });
}
aj_status* stream_host_fn(void*, int32_t dev, void* stream, void (*fn)(void*), void* arg) {
  return on(dev, "stream_host_fn",
            [&](const Runtime& r) { return r.LaunchHostFunc(queue_of(stream), fn, arg); });
}

aj_status* event_new(void*, int32_t dev, uint32_t, void** out) {
  return on(dev, "event_new", [&](const Runtime& r) {
    Event event = nullptr;
    Result result = r.EventCreateWithFlags(&event, 0);
    *out = event;
    return result;
  });
}
aj_status* event_free(void*, int32_t dev, void* event) {
  return on(dev, "event_free", [&](const Runtime& r) { return r.EventDestroy(mark_of(event)); });
}
aj_status* event_record(void*, int32_t dev, void* event, void* stream) {
  return on(dev, "event_record",
            [&](const Runtime& r) { return r.EventRecord(mark_of(event), queue_of(stream)); });
}
aj_status* event_query(void*, int32_t dev, void* event, int32_t* done) {
  return on(dev, "event_query", [&](const Runtime& r) {
    Result result = r.EventQuery(mark_of(event));
    *done = result != kNotReady;
    if (result == kNotReady) (void)r.GetLastError();
    return *done ? result : kSuccess;
  });
}
aj_status* event_sync(void*, int32_t dev, void* event) {
  aj_status* waited =
      on(dev, "event_sync", [&](const Runtime& r) { return r.EventSynchronize(mark_of(event)); });
  return and_faults(waited, dev);
}
aj_status* event_elapsed(void*, int32_t dev, void* start, void* stop, double* out_ms) {
  if (aj_status* s = ready()) return s;
  On here(dev);
  if (here.failed()) return status_of(here.result(), "event_elapsed");
  float ms = 0;
  Result result = runtime().EventElapsedTime(&ms, mark_of(start), mark_of(stop));
  *out_ms = ms;
  if (result == kNotReady) {
    (void)runtime().GetLastError();
    return kit::fail(AJ_PRECONDITION, kDevice,
                     ": the time between two events is asked for before both have passed; "
                     "synchronize with the second one");
  }
  return result == kSuccess ? nullptr : status_of(result, "event_elapsed");
}

// Relaxed: the core may take memory from the driver while a stream is captured.
aj_status* capture_begin(void*, int32_t dev, void* stream) {
  if (!stream)
    return kit::fail(AJ_PRECONDITION, kDevice,
                     ": the default stream cannot be captured; make another one current");
  aj_status* s = on(dev, "capture_begin", [&](const Runtime& r) {
    return r.StreamBeginCapture(queue_of(stream), kCaptureRelaxed);
  });
  if (!s) capture_opens(dev, stream);
  return s;
}
aj_status* capture_end(void*, int32_t dev, void* stream, void** out_graph) {
  *out_graph = nullptr;
  aj_status* s = on(dev, "capture_end", [&](const Runtime& r) {
    Graph graph = nullptr;
    Executable ready_to_run = nullptr;
    Result result = r.StreamEndCapture(queue_of(stream), &graph);
    if (result == kSuccess) result = r.GraphInstantiateWithFlags(&ready_to_run, graph, 0);
    if (graph) (void)r.GraphDestroy(graph);
    *out_graph = ready_to_run;
    return result;
  });
  capture_closes(dev, stream, *out_graph);
  return s;
}
aj_status* graph_launch(void*, int32_t dev, void* graph, void* stream) {
  return on(dev, "graph_launch", [&](const Runtime& r) {
    return r.GraphLaunch(static_cast<Executable>(graph), queue_of(stream));
  });
}
aj_status* graph_free(void*, int32_t dev, void* graph) {
  graph_ends(dev, graph);
  return on(dev, "graph_free",
            [&](const Runtime& r) { return r.GraphExecDestroy(static_cast<Executable>(graph)); });
}

void fork_child(void*) { poison_after_fork(); }

}  // namespace

constexpr aj_device_vtbl device_table = [] {
  aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_PEER_COPY;
  v.name = aj_str{kDevice, sizeof kDevice - 1};
  v.dlpack_type = kDlpackType;
  v.count = count;
  v.props = props;
  v.mem_alloc = mem_alloc;
  v.mem_free = mem_free;
  v.mem_info = mem_info;
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

}  // namespace adjoin::vendor
