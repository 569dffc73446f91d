// tests/plugins/hip_on_host/runtime.cpp: a library with the functions that plugins/hip wants of
// HIP's runtime, over the host's memory; kernels do nothing. What a device reports late is ordered
// by host_fail and host_find.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Finding {  // plugins/gpu/fault.hpp
  int code;
  long a, b, c;
};
Finding* findings = nullptr;  // what was first asked for as memory that both sides see
int next_failure = 0;

void copy_rows(char* to, size_t to_pitch, const char* from, size_t pitch, size_t width, size_t n) {
  for (size_t i = 0; i < n; ++i) std::memcpy(to + i * to_pitch, from + i * pitch, width);
}
int waited() {
  int result = next_failure;
  next_failure = 0;
  return result;
}

}  // namespace

extern "C" {
// The next wait fails with this result.
void host_fail(int result) { next_failure = result; }
// The first kernel that can find something has found this.
void host_find(int code, long a, long b, long c) {
  if (findings) findings[0] = {code, a, b, c};
}

int hipGetDeviceCount(int* n) { return *n = 1, 0; }
int hipGetDevice(int* d) { return *d = 0; }
int hipMalloc(void** p, size_t n) {
  return (*p = std::aligned_alloc(256, (n + 255) / 256 * 256)) ? 0 : 2;
}
int hipMallocManaged(void** p, size_t n, unsigned) { return hipMalloc(p, n); }
int hipHostMalloc(void** p, size_t n, unsigned) {
  int result = hipMalloc(p, n);
  if (!findings) findings = static_cast<Finding*>(*p);
  return result;
}
int hipFree(void* p) { return std::free(p), 0; }
int hipHostFree(void* p) { return hipFree(p); }
int hipMemGetInfo(size_t* unused, size_t* all) { return *unused = *all = size_t(1) << 30, 0; }
int hipDeviceTotalMem(size_t* all, int) { return *all = size_t(1) << 30, 0; }
int hipDeviceGetName(char* to, int n, int) { return std::snprintf(to, size_t(n), "host"), 0; }
int hipDeviceGetPCIBusId(char* to, int n, int) { return std::snprintf(to, size_t(n), "0"), 0; }
int hipDeviceGetAttribute(int* value, int, int) { return *value = 1, 0; }
int hipRuntimeGetVersion(int* v) { return *v = 60000000, 0; }
int hipDeviceCanAccessPeer(int* can, int, int) { return *can = 0; }
int hipDeviceGetStreamPriorityRange(int* low, int* high) { return *low = *high = 0; }
int hipMemcpyAsync(void* to, const void* from, size_t n, int, void*) {
  return std::memcpy(to, from, n), 0;
}
int hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t pitch, size_t width,
                     size_t height, int, void*) {
  copy_rows(static_cast<char*>(to), to_pitch, static_cast<const char*>(from), pitch, width, height);
  return 0;
}
int hipMemsetAsync(void* p, int byte, size_t n, void*) { return std::memset(p, byte, n), 0; }
int hipStreamSynchronize(void*) { return waited(); }
int hipDeviceSynchronize() { return waited(); }
int hipModuleLoadData(void** to, const void* from) { return *to = const_cast<void*>(from), 0; }
int hipModuleGetFunction(void** to, void* from, const char*) { return *to = from, 0; }
const char* hipGetErrorName(int) { return "hipErrorLaunchFailure"; }
const char* hipGetErrorString(int) { return "a kernel has failed"; }

// In C the rest may have any parameters: nothing is read.
#define AJ_NOTHING(name) \
  int hip##name() { return 0; }
AJ_NOTHING(SetDevice)
AJ_NOTHING(GetLastError)
AJ_NOTHING(DeviceEnablePeerAccess)
AJ_NOTHING(MemGetAddressRange)
AJ_NOTHING(IpcGetMemHandle)
AJ_NOTHING(IpcOpenMemHandle)
AJ_NOTHING(IpcCloseMemHandle)
AJ_NOTHING(StreamCreateWithPriority)
AJ_NOTHING(StreamDestroy)
AJ_NOTHING(StreamQuery)
AJ_NOTHING(StreamWaitEvent)
AJ_NOTHING(StreamAddCallback)
AJ_NOTHING(EventCreateWithFlags)
AJ_NOTHING(EventDestroy)
AJ_NOTHING(EventRecord)
AJ_NOTHING(EventQuery)
AJ_NOTHING(EventSynchronize)
AJ_NOTHING(EventElapsedTime)
AJ_NOTHING(StreamBeginCapture)
AJ_NOTHING(StreamEndCapture)
AJ_NOTHING(GraphInstantiateWithFlags)
AJ_NOTHING(GraphLaunch)
AJ_NOTHING(GraphDestroy)
AJ_NOTHING(GraphExecDestroy)
AJ_NOTHING(ModuleLaunchKernel)
}
