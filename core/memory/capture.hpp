// core/memory/capture.hpp: device graphs, and the memory that they keep.
#pragma once
#include <adjoin/abi/core.h>
#include <adjoin/abi/op.h>

#include <atomic>

#include "core/memory/memory.hpp"

namespace adjoin {

aj_status* capture_begin(DLDevice device, void* native, aj_object* share);
aj_status* capture_end(DLDevice device, void* native, aj_object** out_graph);
aj_status* graph_launch(aj_object* graph, void* native);
// generator_draw; what this thread draws for a graph that it captures is drawn at each launch.
aj_status* draw_or_capture(aj_object* g, uint64_t blocks, uint64_t* seed, uint64_t* offset);

extern std::atomic<int32_t> captures_open;  // of the whole process
bool is_capturing(Device* d, void* stream);

// A call's stream, and whether what is queued there is kept for a graph.
inline aj_status* set_stream(Device* d, aj_call* call) {
  AJ_TRY(stream_for(d, &call->stream));
  if (__builtin_expect(captures_open.load(std::memory_order_relaxed) != 0, 0) &&
      is_capturing(d, call->stream))
    call->flags |= AJ_CALL_CAPTURING;
  return nullptr;
}

// For the cache; each wants its lock. A pool is a name under which memory is kept, as a stream is.
void* pool_for(DeviceMemory& m,
               void* stream);  // the capture's on that stream, or the stream itself
bool belongs_to(DeviceMemory& m, void* key,
                void* stream);  // memory kept under key is used by that stream alone

}  // namespace adjoin
