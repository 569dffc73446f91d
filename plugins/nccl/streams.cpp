// plugins/nccl/streams.cpp: CUDA's driver, or HIP's runtime, opened at run time.
#include "streams.hpp"

#include <adjoin/abi/base.h>

#include <adjoin/kit/error.hpp>

#include "../gpu/vendor/libraries.hpp"
#include "nccl.hpp"

namespace adjoin::nccl_engine {
namespace {

using vendor::SharedLibrary;

constexpr unsigned kNonBlocking = 1, kNoTiming = 2;
constexpr int kNotReady = 600;

// F(name here, name in the library, parameters)
#ifdef AJ_RCCL
#define AJ_RUNTIME_(F)                                                 \
  F(set_device, hipSetDevice, (int))                                   \
  F(stream_new, hipStreamCreateWithPriority, (Stream*, unsigned, int)) \
  F(stream_free, hipStreamDestroy, (Stream))                           \
  F(stream_wait, hipStreamWaitEvent, (Stream, Event, unsigned))        \
  F(event_new, hipEventCreateWithFlags, (Event*, unsigned))            \
  F(event_free, hipEventDestroy, (Event))                              \
  F(event_record, hipEventRecord, (Event, Stream))                     \
  F(event_query, hipEventQuery, (Event))                               \
  F(memory_new, hipMalloc, (void**, size_t))                           \
  F(memory_free, hipFree, (void*))
#else
#define AJ_RUNTIME_(F)                                                \
  F(init, cuInit, (unsigned))                                         \
  F(device_get, cuDeviceGet, (int*, int))                             \
  F(context, cuDevicePrimaryCtxRetain, (void**, int))                 \
  F(set_context, cuCtxSetCurrent, (void*))                            \
  F(stream_new, cuStreamCreateWithPriority, (Stream*, unsigned, int)) \
  F(stream_free, cuStreamDestroy_v2, (Stream))                        \
  F(stream_wait, cuStreamWaitEvent, (Stream, Event, unsigned))        \
  F(event_new, cuEventCreate, (Event*, unsigned))                     \
  F(event_free, cuEventDestroy_v2, (Event))                           \
  F(event_record, cuEventRecord, (Event, Stream))                     \
  F(event_query, cuEventQuery, (Event))                               \
  F(memory_new, cuMemAlloc_v2, (void**, size_t))                      \
  F(memory_free, cuMemFree_v2, (void*))
#endif

struct Runtime {
#define AJ_POINTER_(name, symbol, parameters) int(*name) parameters = nullptr;
  AJ_RUNTIME_(AJ_POINTER_)
#undef AJ_POINTER_
#ifdef AJ_RCCL
  SharedLibrary file{"HIP runtime",
                     "ADJOIN_HIP_RUNTIME",
                     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
                     {}};
#else
  SharedLibrary file{"CUDA driver", "ADJOIN_CUDA_DRIVER", {"libcuda.so.1"}, {}};
#endif
  std::string bind_all() {
#define AJ_BIND_(name, symbol, parameters) \
  if (!file.bind(#symbol, &name)) return "it has no " #symbol;
    AJ_RUNTIME_(AJ_BIND_)
#undef AJ_BIND_
    return "";
  }
  Runtime() {
    if (!file.open()) return;
    if (std::string why = bind_all(); !why.empty()) file.close_for(why);
  }
};
const Runtime& runtime() {
  static auto* one = new Runtime;
  if (!one->file.usable()) kit::raise(AJ_UNAVAILABLE, kEngine, ": ", one->file.where());
  return *one;
}

void must(int result, const char* doing) {
  if (result)
    kit::raise(AJ_INTERNAL, kEngine, ": the device's runtime: ", doing, ": error ", result);
}

}  // namespace

void use_device(int32_t device) {
#ifdef AJ_RCCL
  must(runtime().set_device(device), "choosing the device");
#else
  int number = 0;
  void* context = nullptr;
  must(runtime().init(0), "starting");
  must(runtime().device_get(&number, device), "choosing the device");
  must(runtime().context(&context, number), "choosing the device");
  must(runtime().set_context(context), "choosing the device");
#endif
}
Stream stream_new() {
  Stream s = nullptr;
  must(runtime().stream_new(&s, kNonBlocking, 0), "a new stream");
  return s;
}
void stream_free(Stream s) { runtime().stream_free(s); }
void stream_wait(Stream s, Event e) {
  must(runtime().stream_wait(s, e, 0), "waiting for an event");
}
Event event_new() {
  Event e = nullptr;
  must(runtime().event_new(&e, kNoTiming), "a new event");
  return e;
}
void event_free(Event e) { runtime().event_free(e); }
void event_record(Event e, Stream s) { must(runtime().event_record(e, s), "recording an event"); }
bool event_passed(Event e) {
  const int result = runtime().event_query(e);
  if (result != kNotReady) must(result, "work that was queued");
  return result == 0;
}
void* memory_new(size_t bytes) {
  void* p = nullptr;
  must(runtime().memory_new(&p, bytes), "memory");
  return p;
}
void memory_free(void* p) { runtime().memory_free(p); }

}  // namespace adjoin::nccl_engine
