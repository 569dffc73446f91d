// tests/plugins/paper_card/cuda.cpp: the names of CUDA's driver that plugins/cuda opens.
#include <cstring>

#include "card.hpp"

using namespace paper;

namespace {

bool started = false;
char contexts[16];  // the addresses are the handles
bool made[16] = {};

struct IpcHandle {
  char bytes[64];
};
struct Rows {  // CUDA_MEMCPY2D
  size_t from_x, from_y;
  int from_kind;
  const void* from_host;
  const void* from;
  void* from_array;
  size_t from_pitch, to_x, to_y;
  int to_kind;
  void* to_host;
  void* to;
  void* to_array;
  size_t to_pitch, width, height;
};
constexpr int kUnified = 4;

int about_device(int device) {
  return !started                                 ? int(kNotInitialized)
         : device < 0 || device >= orders.devices ? int(kInvalidDevice)
                                                  : 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
  if (flags) return kInvalidValue;
  if (orders.devices == 0) return kNoDevice;
  started = true;
  return kSuccess;
}
int cuDriverGetVersion(int* v) { return *v = int(orders.version), 0; }
int cuGetErrorName(int result, const char** out) {
  thread_local std::string text;
  text = std::string("CUDA_ERROR_") + name_of(result);
  return *out = text.c_str(), 0;
}
int cuGetErrorString(int result, const char** out) { return *out = text_of(result), 0; }

int cuDeviceGetCount(int* n) {
  return started ? (*n = int(orders.devices), 0) : int(kNotInitialized);
}
int cuDeviceGet(int* out, int device) { return *out = device, about_device(device); }
int cuDeviceGetAttribute(int* out, int which, int device) {
  *out = which == 75 ? 9 : which == 76 ? 0 : which == 16 ? 132 : which == 10 ? 32 : 1;
  return about_device(device);
}
int cuDeviceGetName(char* to, int n, int device) {
  std::strncpy(to, "card of paper", size_t(n));
  return about_device(device);
}
int cuDeviceTotalMem_v2(size_t* out, int device) {
  return *out = size_t(orders.memory), about_device(device);
}
int cuDeviceGetPCIBusId(char* to, int n, int device) {
  std::strncpy(to, device ? "0000:02:00.0" : "0000:01:00.0", size_t(n));
  return about_device(device);
}
int cuDeviceCanAccessPeer(int* can, int a, int b) {
  *can = a != b;
  int wrong = about_device(a);
  return wrong ? wrong : about_device(b);
}
int cuDevicePrimaryCtxRetain(void** out, int device) {
  if (int wrong = about_device(device)) return wrong;
  if (!made[device]) ++counts.contexts;
  made[device] = true;
  return *out = &contexts[device], 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return about_device(device); }
int cuDeviceGetUuid_v2(unsigned char* to, int device) {
  for (int i = 0; i < 16; ++i) to[i] = static_cast<unsigned char>(i + device);
  return about_device(device);
}
int cuProfilerStart() { return ++counts.recordings, check_device(); }
int cuProfilerStop() { return --counts.recordings, check_device(); }

int cuCtxGetCurrent(void** out) {
  if (!started) return kNotInitialized;
  return *out = current_device < 0 ? nullptr : &contexts[current_device], 0;
}
int cuCtxSetCurrent(void* context) {
  if (!started) return kNotInitialized;
  auto at = static_cast<char*>(context) - contexts;
  if (context && (at < 0 || at >= 16 || !made[at])) return kInvalidContext;
  current_device = context ? int(at) : -1;
  warp_size = 32;
  return kSuccess;
}
int cuCtxEnablePeerAccess(void* context, unsigned flags) {
  return flags ? int(kInvalidValue) : enable_peer(int(static_cast<char*>(context) - contexts));
}
int cuCtxSynchronize() { return device_wait(); }
int cuCtxGetStreamPriorityRange(int* low, int* high) {
  return *low = 0, *high = -5, check_device();
}

int cuMemGetInfo_v2(size_t* unused, size_t* all) { return memory_info(unused, all); }
int cuMemGetAddressRange_v2(void** base, size_t* bytes, void* p) {
  return range_of(base, bytes, p);
}
int cuMemAlloc_v2(void** p, size_t n) { return allocate(p, n, Kind::device); }
int cuMemAllocManaged(void** p, size_t n, unsigned) { return allocate(p, n, Kind::managed); }
int cuMemHostAlloc(void** p, size_t n, unsigned) { return allocate(p, n, Kind::pinned); }
int cuMemFreeHost(void* p) { return release(p); }
int cuMemFree_v2(void* p) { return release(p); }
int cuMemcpyAsync(void* to, const void* from, size_t n, Stream* s) { return copy(to, from, n, s); }
int cuMemcpy2DAsync_v2(const Rows* r, Stream* s) {
  if (r->from_kind != kUnified || r->to_kind != kUnified) return kInvalidValue;
  if (r->from_pitch < r->width || r->to_pitch < r->width) return kInvalidValue;
  return copy_rows(r->to, r->to_pitch, r->from, r->from_pitch, r->width, r->height, s);
}
int cuMemsetD8Async(void* p, unsigned char byte, size_t n, Stream* s) {
  return fill(p, byte, n, s);
}
int cuIpcGetMemHandle(IpcHandle* handle, void* p) { return show_memory(handle, p); }
int cuIpcOpenMemHandle_v2(void** out, IpcHandle handle, unsigned flags) {
  return flags == 1 ? open_memory(out, &handle) : int(kInvalidValue);
}
int cuIpcCloseMemHandle(void* p) { return close_memory(p); }

int cuStreamCreateWithPriority(Stream** s, unsigned flags, int priority) {
  return stream_new(s, flags, priority);
}
int cuStreamDestroy_v2(Stream* s) { return stream_free(s); }
int cuStreamSynchronize(Stream* s) { return stream_wait(s); }
int cuStreamQuery(Stream* s) { return stream_query(s); }
int cuStreamWaitEvent(Stream* s, Event* e, unsigned) { return stream_wait_event(s, e); }
int cuLaunchHostFunc(Stream* s, void (*f)(void*), void* data) {
  return submit(s, [=] { f(data); });
}
int cuEventCreate(Event** e, unsigned) { return event_new(e); }
int cuEventDestroy_v2(Event* e) { return event_free(e); }
int cuEventRecord(Event* e, Stream* s) { return event_record(e, s); }
int cuEventQuery(Event* e) { return event_query(e); }
int cuEventSynchronize(Event* e) { return event_wait(e); }
int cuEventElapsedTime(float* ms, Event* a, Event* b) { return event_elapsed(ms, a, b); }
int cuStreamBeginCapture_v2(Stream* s, int) { return capture_begin(s); }
int cuStreamIsCapturing(Stream* s, int* out) { return capture_status(s, out); }
int cuStreamEndCapture(Stream* s, Graph** g) { return capture_end(s, g); }
// The graph and what can be run of it are one thing here.
int cuGraphInstantiateWithFlags(Graph** out, Graph* g, unsigned long long) { return *out = g, 0; }
int cuGraphLaunch(Graph* g, Stream* s) { return graph_launch(g, s); }
int cuGraphDestroy(Graph*) { return kSuccess; }
int cuGraphExecDestroy(Graph* g) { return graph_free(g); }

int cuModuleLoadData(void** out, const void* image) { return load_module(out, image); }
int cuModuleGetFunction(void** out, void* module, const char* name) {
  return get_function(out, module, name);
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Stream* s, void** arguments, void**) {
  return launch(f, gx, gy, gz, bx, by, bz, shared, s, arguments);
}
}
