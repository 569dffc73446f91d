// tests/plugins/hip_on_cuda/runtime.cpp: a library with the functions that plugins/hip wants of
// HIP's runtime, over CUDA's: on a machine with an NVIDIA card the plugin hip runs there as a test.
#include <cuda_runtime_api.h>

#include <cstring>

#define AJ_FORWARD(name, parameters, arguments) \
  extern "C" int hip##name parameters { return int(cuda##name arguments); }

AJ_FORWARD(GetDeviceCount, (int* n), (n))
AJ_FORWARD(GetDevice, (int* d), (d))
AJ_FORWARD(SetDevice, (int d), (d))
AJ_FORWARD(GetLastError, (), ())
AJ_FORWARD(DeviceGetPCIBusId, (char* to, int n, int d), (to, n, d))
AJ_FORWARD(RuntimeGetVersion, (int* v), (v))
AJ_FORWARD(DeviceSynchronize, (), ())
AJ_FORWARD(DeviceCanAccessPeer, (int* can, int a, int b), (can, a, b))
AJ_FORWARD(DeviceEnablePeerAccess, (int d, unsigned flags), (d, flags))
AJ_FORWARD(DeviceGetStreamPriorityRange, (int* low, int* high), (low, high))
AJ_FORWARD(MemGetInfo, (size_t * unused, size_t* all), (unused, all))
AJ_FORWARD(Malloc, (void** p, size_t n), (p, n))
AJ_FORWARD(MallocManaged, (void** p, size_t n, unsigned flags), (p, n, flags))
AJ_FORWARD(Free, (void* p), (p))
AJ_FORWARD(MemcpyAsync, (void* to, const void* from, size_t n, int kind, cudaStream_t s),
           (to, from, n, cudaMemcpyKind(kind), s))
AJ_FORWARD(Memcpy2DAsync,
           (void* to, size_t to_pitch, const void* from, size_t pitch, size_t width, size_t height,
            int kind, cudaStream_t s),
           (to, to_pitch, from, pitch, width, height, cudaMemcpyKind(kind), s))
AJ_FORWARD(MemsetAsync, (void* p, int byte, size_t n, cudaStream_t s), (p, byte, n, s))
AJ_FORWARD(IpcGetMemHandle, (cudaIpcMemHandle_t * h, void* p), (h, p))
AJ_FORWARD(IpcOpenMemHandle, (void** p, cudaIpcMemHandle_t h, unsigned flags), (p, h, flags))
AJ_FORWARD(IpcCloseMemHandle, (void* p), (p))
AJ_FORWARD(StreamCreateWithPriority, (cudaStream_t * s, unsigned flags, int priority),
           (s, flags, priority))
AJ_FORWARD(StreamDestroy, (cudaStream_t s), (s))
AJ_FORWARD(StreamSynchronize, (cudaStream_t s), (s))
AJ_FORWARD(StreamQuery, (cudaStream_t s), (s))
AJ_FORWARD(StreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags), (s, e, flags))
AJ_FORWARD(StreamAddCallback, (cudaStream_t s, cudaStreamCallback_t f, void* data, unsigned flags),
           (s, f, data, flags))
AJ_FORWARD(EventCreateWithFlags, (cudaEvent_t * e, unsigned flags), (e, flags))
AJ_FORWARD(EventDestroy, (cudaEvent_t e), (e))
AJ_FORWARD(EventRecord, (cudaEvent_t e, cudaStream_t s), (e, s))
AJ_FORWARD(EventQuery, (cudaEvent_t e), (e))
AJ_FORWARD(EventSynchronize, (cudaEvent_t e), (e))
AJ_FORWARD(EventElapsedTime, (float* ms, cudaEvent_t a, cudaEvent_t b), (ms, a, b))
AJ_FORWARD(StreamBeginCapture, (cudaStream_t s, int mode), (s, cudaStreamCaptureMode(mode)))
AJ_FORWARD(StreamEndCapture, (cudaStream_t s, cudaGraph_t* g), (s, g))
AJ_FORWARD(GraphInstantiateWithFlags,
           (cudaGraphExec_t * e, cudaGraph_t g, unsigned long long flags), (e, g, flags))
AJ_FORWARD(GraphLaunch, (cudaGraphExec_t e, cudaStream_t s), (e, s))
AJ_FORWARD(GraphDestroy, (cudaGraph_t g), (g))
AJ_FORWARD(GraphExecDestroy, (cudaGraphExec_t e), (e))

extern "C" {
const char* hipGetErrorName(int e) { return cudaGetErrorName(cudaError_t(e)); }
const char* hipGetErrorString(int e) { return cudaGetErrorString(cudaError_t(e)); }
int hipHostMalloc(void** p, size_t n, unsigned flags) { return int(cudaHostAlloc(p, n, flags)); }
int hipHostFree(void* p) { return int(cudaFreeHost(p)); }

// Numbers of hipDeviceAttribute_t.
int hipDeviceGetAttribute(int* value, int attribute, int device) {
  cudaDeviceAttr what = attribute == 63   ? cudaDevAttrMultiProcessorCount
                        : attribute == 23 ? cudaDevAttrComputeCapabilityMajor
                                          : cudaDevAttrComputeCapabilityMinor;
  return int(cudaDeviceGetAttribute(value, what, device));
}
int hipDeviceGetName(char* to, int n, int device) {
  cudaDeviceProp p;
  int result = int(cudaGetDeviceProperties(&p, device));
  if (result == 0) std::strncpy(to, p.name, size_t(n));
  return result;
}
int hipDeviceTotalMem(size_t* bytes, int device) {
  cudaDeviceProp p;
  int result = int(cudaGetDeviceProperties(&p, device));
  if (result == 0) *bytes = p.totalGlobalMem;
  return result;
}
// Code objects of hipcc are none of CUDA's.
int hipModuleLoadData(void**, const void*) { return 209; }
int hipModuleGetFunction(void**, void*, const char*) { return 500; }
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, cudaStream_t, void**, void**) {
  return 98;
}

// Wanted only where memory is shared between processes.
int hipMemGetAddressRange(void**, size_t*, void*) { return 801; }
}
