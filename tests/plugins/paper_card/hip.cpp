// tests/plugins/paper_card/hip.cpp: the names of HIP's runtime that plugins/hip opens.
#include <cstring>

#include "card.hpp"

using namespace paper;

namespace {

struct IpcHandle {
  char bytes[64];
};

// A thread that has chosen no device uses the first.
int here() {
  if (current_device < 0) current_device = 0;
  warp_size = 64;
  return orders.devices ? int(kSuccess) : int(kNoDevice);
}
template <class F>
int on(F f) {
  int wrong = here();
  return wrong ? wrong : f();
}

}  // namespace

extern "C" {

const char* hipGetErrorName(int result) {
  thread_local std::string text;
  text = std::string("hipError_") + name_of(result);
  return text.c_str();
}
const char* hipGetErrorString(int result) { return text_of(result); }
int hipGetLastError() { return kSuccess; }
int hipRuntimeGetVersion(int* v) { return *v = 60000000, 0; }

int hipGetDeviceCount(int* n) {
  return *n = int(orders.devices), orders.devices ? 0 : int(kNoDevice);
}
int hipGetDevice(int* device) {
  return on([&] { return *device = current_device, 0; });
}
int hipSetDevice(int device) {
  if (device < 0 || device >= orders.devices) return kInvalidDevice;
  return current_device = device, 0;
}
int hipDeviceGetAttribute(int* out, int which, int) {
  return *out = which == 63 ? 104 : which == 23 ? 9 : 0, 0;
}
int hipDeviceGetName(char* to, int n, int) {
  return std::strncpy(to, "card of paper", size_t(n)), 0;
}
int hipDeviceTotalMem(size_t* out, int) { return *out = size_t(orders.memory), 0; }
int hipDeviceGetPCIBusId(char* to, int n, int) {
  return std::strncpy(to, "0000:01:00.0", size_t(n)), 0;
}
int hipDeviceCanAccessPeer(int* can, int a, int b) { return *can = a != b, 0; }
int hipDeviceEnablePeerAccess(int device, unsigned) {
  return on([&] { return enable_peer(device); });
}
int hipDeviceSynchronize() { return on(device_wait); }
int hipDeviceGetStreamPriorityRange(int* low, int* high) { return *low = 0, *high = -1, 0; }

int hipMemGetInfo(size_t* unused, size_t* all) {
  return on([&] { return memory_info(unused, all); });
}
int hipMemGetAddressRange(void** base, size_t* bytes, void* p) { return range_of(base, bytes, p); }
int hipMalloc(void** p, size_t n) {
  return on([&] { return allocate(p, n, Kind::device); });
}
int hipMallocManaged(void** p, size_t n, unsigned) {
  return on([&] { return allocate(p, n, Kind::managed); });
}
int hipHostMalloc(void** p, size_t n, unsigned) {
  return on([&] { return allocate(p, n, Kind::pinned); });
}
int hipHostFree(void* p) {
  return on([&] { return release(p); });
}
int hipFree(void* p) {
  return on([&] { return release(p); });
}
int hipMemcpyAsync(void* to, const void* from, size_t n, int, Stream* s) {
  return on([&] { return copy(to, from, n, s); });
}
int hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t pitch, size_t width,
                     size_t height, int, Stream* s) {
  return on([&] { return copy_rows(to, to_pitch, from, pitch, width, height, s); });
}
int hipMemsetAsync(void* p, int byte, size_t n, Stream* s) {
  return on([&] { return fill(p, (unsigned char)(byte), n, s); });
}
int hipIpcGetMemHandle(IpcHandle* handle, void* p) {
  return on([&] { return show_memory(handle, p); });
}
int hipIpcOpenMemHandle(void** out, IpcHandle handle, unsigned flags) {
  return on([&] { return flags == 1 ? open_memory(out, &handle) : int(kInvalidValue); });
}
int hipIpcCloseMemHandle(void* p) {
  return on([&] { return close_memory(p); });
}

int hipStreamCreateWithPriority(Stream** s, unsigned flags, int priority) {
  return on([&] { return stream_new(s, flags, priority); });
}
int hipStreamDestroy(Stream* s) {
  return on([&] { return stream_free(s); });
}
int hipStreamSynchronize(Stream* s) {
  return on([&] { return stream_wait(s); });
}
int hipStreamQuery(Stream* s) {
  return on([&] { return stream_query(s); });
}
int hipStreamWaitEvent(Stream* s, Event* e, unsigned) {
  return on([&] { return stream_wait_event(s, e); });
}
int hipStreamAddCallback(Stream* s, void (*f)(Stream*, int, void*), void* data, unsigned) {
  return on([&] { return submit(s, [=] { f(s, 0, data); }); });
}
int hipEventCreateWithFlags(Event** e, unsigned) {
  return on([&] { return event_new(e); });
}
int hipEventDestroy(Event* e) { return event_free(e); }
int hipEventRecord(Event* e, Stream* s) {
  return on([&] { return event_record(e, s); });
}
int hipEventQuery(Event* e) {
  return on([&] { return event_query(e); });
}
int hipEventSynchronize(Event* e) {
  return on([&] { return event_wait(e); });
}
int hipEventElapsedTime(float* ms, Event* a, Event* b) { return event_elapsed(ms, a, b); }
int hipStreamBeginCapture(Stream* s, int) {
  return on([&] { return capture_begin(s); });
}
int hipStreamIsCapturing(Stream* s, int* out) {
  return on([&] { return capture_status(s, out); });
}
int hipStreamEndCapture(Stream* s, Graph** g) {
  return on([&] { return capture_end(s, g); });
}
// The graph and what can be run of it are one thing here.
int hipGraphInstantiateWithFlags(Graph** out, Graph* g, unsigned long long) { return *out = g, 0; }
int hipGraphLaunch(Graph* g, Stream* s) {
  return on([&] { return graph_launch(g, s); });
}
int hipGraphDestroy(Graph*) { return kSuccess; }
int hipGraphExecDestroy(Graph* g) {
  return on([&] { return graph_free(g); });
}

int hipModuleLoadData(void** out, const void* image) {
  return on([&] { return load_module(out, image); });
}
int hipModuleGetFunction(void** out, void* module, const char* name) {
  return on([&] { return get_function(out, module, name); });
}
int hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, Stream* s, void** arguments, void**) {
  return on([&] { return launch(f, gx, gy, gz, bx, by, bz, shared, s, arguments); });
}
}
