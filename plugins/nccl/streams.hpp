// plugins/nccl/streams.hpp: what is needed of the device's runtime: streams, events, four bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace adjoin::nccl_engine {

using Stream = void*;
using Event = void*;

// Each raises with the runtime's words.
void use_device(int32_t device);  // the calling thread's calls go there from now on
Stream stream_new();
void stream_free(Stream s);
void stream_wait(Stream s, Event e);  // what is queued later waits
Event event_new();
void event_free(Event e);
void event_record(Event e, Stream s);
bool event_passed(Event e);
void* memory_new(size_t bytes);
void memory_free(void* p);

}  // namespace adjoin::nccl_engine
