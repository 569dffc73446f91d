// plugins/cuda/runtime.hpp: CUDA under the names that plugins/gpu/vendor is written with.
//
// It is the driver's interface, libcuda.so.1, opened at run time. The driver brings that file, so
// nothing else has to be installed, and its functions keep their prototypes under their names: one
// build serves every driver from CUDA 11.4 on. The runtime library, libcudart, would have to match
// the driver (that of CUDA 13 refuses all before 580), and comes with a toolkit or with PyTorch
// alone. Contexts are the devices' primary ones, which the runtime library in other code shares.
#ifndef ADJOIN_PLUGINS_CUDA_RUNTIME_HPP
#define ADJOIN_PLUGINS_CUDA_RUNTIME_HPP
#include <adjoin/abi/device.h>

#include <string>

namespace adjoin::vendor {

inline constexpr char kDevice[] = "cuda", kMaker[] = "CUDA",
                      kBlockingVariable[] = "CUDA_LAUNCH_BLOCKING", kBlasName[] = "cublasLt";
inline constexpr int32_t kDlpackType = kDLCUDA;

// Handles and results as the driver's binary interface has them.
using Result = int;
using Stream = void*;
using Event = void*;
using Graph = void*;
using Executable = void*;
using Place = void*;  // a context: where a thread's calls go
struct IpcHandle {
  char bytes[64];
};

inline constexpr Place kNowhere = nullptr;  // of a thread that has called nothing of CUDA
inline constexpr Result kSuccess = 0, kNotReady = 600;
inline constexpr int kMemcpyDefault = 4, kCaptureRelaxed = 2;
inline constexpr unsigned kHostAllocPortable = 1, kMemAttachGlobal = 1, kStreamNonBlocking = 1,
                          kIpcLazyPeerAccess = 1;

// F(name here, name in the library without "cu", parameters)
#define AJ_CUDA_FUNCTIONS_(F)                                                                     \
  F(Init, Init, (unsigned))                                                                       \
  F(DriverGetVersion, DriverGetVersion, (int*))                                                   \
  F(ErrorName, GetErrorName, (Result, const char**))                                              \
  F(ErrorString, GetErrorString, (Result, const char**))                                          \
  F(GetDeviceCount, DeviceGetCount, (int*))                                                       \
  F(DeviceGet, DeviceGet, (int*, int))                                                            \
  F(DeviceGetAttribute, DeviceGetAttribute, (int*, int, int))                                     \
  F(DeviceGetName, DeviceGetName, (char*, int, int))                                              \
  F(DeviceTotalMem, DeviceTotalMem_v2, (size_t*, int))                                            \
  F(DeviceGetPCIBusId, DeviceGetPCIBusId, (char*, int, int))                                      \
  F(DeviceCanAccessPeer, DeviceCanAccessPeer, (int*, int, int))                                   \
  F(PrimaryContext, DevicePrimaryCtxRetain, (Place*, int))                                        \
  F(GetCurrent, CtxGetCurrent, (Place*))                                                          \
  F(SetCurrent, CtxSetCurrent, (Place))                                                           \
  F(EnablePeerAccess, CtxEnablePeerAccess, (Place, unsigned))                                     \
  F(DeviceSynchronize, CtxSynchronize, ())                                                        \
  F(DeviceGetStreamPriorityRange, CtxGetStreamPriorityRange, (int*, int*))                        \
  F(MemGetInfo, MemGetInfo_v2, (size_t*, size_t*))                                                \
  F(MemGetAddressRange, MemGetAddressRange_v2, (void**, size_t*, void*))                          \
  F(Malloc, MemAlloc_v2, (void**, size_t))                                                        \
  F(MallocManaged, MemAllocManaged, (void**, size_t, unsigned))                                   \
  F(HostAlloc, MemHostAlloc, (void**, size_t, unsigned))                                          \
  F(FreeHost, MemFreeHost, (void*))                                                               \
  F(Free, MemFree_v2, (void*))                                                                    \
  F(CopyAsync, MemcpyAsync, (void*, const void*, size_t, Stream))                                 \
  F(Copy2DAsync, Memcpy2DAsync_v2, (const void*, Stream))                                         \
  F(MemsetAsync, MemsetD8Async, (void*, unsigned char, size_t, Stream))                           \
  F(IpcGetMemHandle, IpcGetMemHandle, (IpcHandle*, void*))                                        \
  F(IpcOpenMemHandle, IpcOpenMemHandle_v2, (void**, IpcHandle, unsigned))                         \
  F(IpcCloseMemHandle, IpcCloseMemHandle, (void*))                                                \
  F(StreamCreateWithPriority, StreamCreateWithPriority, (Stream*, unsigned, int))                 \
  F(StreamDestroy, StreamDestroy_v2, (Stream))                                                    \
  F(StreamSynchronize, StreamSynchronize, (Stream))                                               \
  F(StreamQuery, StreamQuery, (Stream))                                                           \
  F(StreamWaitEvent, StreamWaitEvent, (Stream, Event, unsigned))                                  \
  F(LaunchHostFunc, LaunchHostFunc, (Stream, void (*)(void*), void*))                             \
  F(EventCreateWithFlags, EventCreate, (Event*, unsigned))                                        \
  F(EventDestroy, EventDestroy_v2, (Event))                                                       \
  F(EventRecord, EventRecord, (Event, Stream))                                                    \
  F(EventQuery, EventQuery, (Event))                                                              \
  F(EventSynchronize, EventSynchronize, (Event))                                                  \
  F(EventElapsedTime, EventElapsedTime, (float*, Event, Event))                                   \
  F(StreamBeginCapture, StreamBeginCapture_v2, (Stream, int))                                     \
  F(StreamIsCapturing, StreamIsCapturing, (Stream, int*))                                         \
  F(StreamEndCapture, StreamEndCapture, (Stream, Graph*))                                         \
  F(GraphInstantiateWithFlags, GraphInstantiateWithFlags,                                         \
    (Executable*, Graph, unsigned long long))                                                     \
  F(GraphLaunch, GraphLaunch, (Executable, Stream))                                               \
  F(GraphDestroy, GraphDestroy, (Graph))                                                          \
  F(GraphExecDestroy, GraphExecDestroy, (Executable))                                             \
  F(ModuleLoadData, ModuleLoadData, (void**, const void*))                                        \
  F(ModuleGetFunction, ModuleGetFunction, (void**, void*, const char*))                           \
  F(ModuleLaunchKernel, LaunchKernel,                                                             \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, \
     void**))

struct Runtime {
#define AJ_POINTER_(name, symbol, parameters) Result(*name) parameters = nullptr;
  AJ_CUDA_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  // As HIP says it.
  Result GetLastError() const { return kSuccess; }  // the driver keeps none
  const char* GetErrorName(Result result) const { return text(ErrorName, result); }
  const char* GetErrorString(Result result) const { return text(ErrorString, result); }
  Result MemcpyAsync(void* to, const void* from, size_t bytes, int, Stream stream) const {
    return CopyAsync(to, from, bytes, stream);  // addresses say where they are
  }
  Result Memcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t pitch, size_t width,
                       size_t height, int, Stream stream) const;
  Result DeviceEnablePeerAccess(int device, unsigned flags) const;

 private:
  static const char* text(Result (*ask)(Result, const char**), Result result) {
    const char* found = nullptr;
    return ask(result, &found) == kSuccess ? found : nullptr;
  }
};

// To be called after missing() was empty.
const Runtime& runtime();

// plugins/gpu/vendor/status.hpp says what these do.
std::string missing();
int32_t count_devices();  // once there is one
Result start();
Result place_of(int32_t device, Place* out);
std::string why_no_image();

Result describe(int32_t device, aj_device_props* out);
Result begin_of_allocation(void* p, void** out);
std::string driver_where();  // where the driver's library was found; or what was tried

}  // namespace adjoin::vendor
#endif
