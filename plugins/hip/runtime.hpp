// plugins/hip/runtime.hpp: HIP's runtime under the names that plugins/gpu/vendor is written with.
// It is opened at run time, whichever of its major versions there is, so the prototypes are our
// own.
#ifndef ADJOIN_PLUGINS_HIP_RUNTIME_HPP
#define ADJOIN_PLUGINS_HIP_RUNTIME_HPP
#include <adjoin/abi/device.h>

#include <string>

namespace adjoin::vendor {

inline constexpr char kDevice[] = "hip", kMaker[] = "HIP",
                      kBlockingVariable[] = "HIP_LAUNCH_BLOCKING", kBlasName[] = "rocblas";
inline constexpr int32_t kDlpackType = kDLROCM;

// Handles and results as the runtime's binary interface has them since version 4.2.
using Result = int;
using Stream = void*;
using Event = void*;
using Graph = void*;
using Executable = void*;
using Place = int;  // a device: where a thread's calls go
struct IpcHandle {
  char bytes[64];
};

inline constexpr Place kNowhere = -1;
inline constexpr Result kSuccess = 0, kNotReady = 600;
inline constexpr int kMemcpyDefault = 4, kCaptureRelaxed = 2;
inline constexpr unsigned kHostAllocPortable = 1, kMemAttachGlobal = 1, kStreamNonBlocking = 1,
                          kIpcLazyPeerAccess = 1;

// F(name here, name in the library without "hip", parameters)
#define AJ_HIP_FUNCTIONS_(F)                                                                      \
  F(GetDeviceCount, GetDeviceCount, (int*))                                                       \
  F(GetCurrent, GetDevice, (Place*))                                                              \
  F(SetCurrent, SetDevice, (Place))                                                               \
  F(GetLastError, GetLastError, ())                                                               \
  F(DeviceGetAttribute, DeviceGetAttribute, (int*, int, int))                                     \
  F(DeviceGetName, DeviceGetName, (char*, int, int))                                              \
  F(DeviceTotalMem, DeviceTotalMem, (size_t*, int))                                               \
  F(DeviceGetPCIBusId, DeviceGetPCIBusId, (char*, int, int))                                      \
  F(RuntimeGetVersion, RuntimeGetVersion, (int*))                                                 \
  F(DeviceSynchronize, DeviceSynchronize, ())                                                     \
  F(DeviceCanAccessPeer, DeviceCanAccessPeer, (int*, int, int))                                   \
  F(DeviceEnablePeerAccess, DeviceEnablePeerAccess, (int, unsigned))                              \
  F(DeviceGetStreamPriorityRange, DeviceGetStreamPriorityRange, (int*, int*))                     \
  F(MemGetInfo, MemGetInfo, (size_t*, size_t*))                                                   \
  F(MemGetAddressRange, MemGetAddressRange, (void**, size_t*, void*))                             \
  F(Malloc, Malloc, (void**, size_t))                                                             \
  F(MallocManaged, MallocManaged, (void**, size_t, unsigned))                                     \
  F(HostAlloc, HostMalloc, (void**, size_t, unsigned))                                            \
  F(FreeHost, HostFree, (void*))                                                                  \
  F(Free, Free, (void*))                                                                          \
  F(MemcpyAsync, MemcpyAsync, (void*, const void*, size_t, int, Stream))                          \
  F(Memcpy2DAsync, Memcpy2DAsync,                                                                 \
    (void*, size_t, const void*, size_t, size_t, size_t, int, Stream))                            \
  F(MemsetAsync, MemsetAsync, (void*, int, size_t, Stream))                                       \
  F(IpcGetMemHandle, IpcGetMemHandle, (IpcHandle*, void*))                                        \
  F(IpcOpenMemHandle, IpcOpenMemHandle, (void**, IpcHandle, unsigned))                            \
  F(IpcCloseMemHandle, IpcCloseMemHandle, (void*))                                                \
  F(StreamCreateWithPriority, StreamCreateWithPriority, (Stream*, unsigned, int))                 \
  F(StreamDestroy, StreamDestroy, (Stream))                                                       \
  F(StreamSynchronize, StreamSynchronize, (Stream))                                               \
  F(StreamQuery, StreamQuery, (Stream))                                                           \
  F(StreamWaitEvent, StreamWaitEvent, (Stream, Event, unsigned))                                  \
  F(StreamAddCallback, StreamAddCallback,                                                         \
    (Stream, void (*)(Stream, Result, void*), void*, unsigned))                                   \
  F(EventCreateWithFlags, EventCreateWithFlags, (Event*, unsigned))                               \
  F(EventDestroy, EventDestroy, (Event))                                                          \
  F(EventRecord, EventRecord, (Event, Stream))                                                    \
  F(EventQuery, EventQuery, (Event))                                                              \
  F(EventSynchronize, EventSynchronize, (Event))                                                  \
  F(EventElapsedTime, EventElapsedTime, (float*, Event, Event))                                   \
  F(StreamBeginCapture, StreamBeginCapture, (Stream, int))                                        \
  F(StreamEndCapture, StreamEndCapture, (Stream, Graph*))                                         \
  F(GraphInstantiateWithFlags, GraphInstantiateWithFlags,                                         \
    (Executable*, Graph, unsigned long long))                                                     \
  F(GraphLaunch, GraphLaunch, (Executable, Stream))                                               \
  F(GraphDestroy, GraphDestroy, (Graph))                                                          \
  F(GraphExecDestroy, GraphExecDestroy, (Executable))                                             \
  F(ModuleLoadData, ModuleLoadData, (void**, const void*))                                        \
  F(ModuleGetFunction, ModuleGetFunction, (void**, void*, const char*))                           \
  F(ModuleLaunchKernel, ModuleLaunchKernel,                                                       \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, \
     void**))

struct Runtime {
#define AJ_POINTER_(name, symbol, parameters) Result(*name) parameters = nullptr;
  AJ_HIP_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  const char* (*GetErrorName)(Result) = nullptr;
  const char* (*GetErrorString)(Result) = nullptr;
  Result (*LaunchHostFunc)(Stream, void (*)(void*), void*) = nullptr;
};

// To be called after missing() was empty.
const Runtime& runtime();

// plugins/gpu/vendor/status.hpp says what these do.
std::string missing();
int32_t count_devices();                    // once there is one
inline Result start() { return kSuccess; }  // it starts by itself
inline Result place_of(int32_t device, Place* out) { return *out = device, kSuccess; }
inline std::string why_no_image() { return {}; }

Result describe(int32_t device, aj_device_props* out);
Result begin_of_allocation(void* p, void** out);
std::string runtime_where();  // which runtime was found, where; or what was tried

}  // namespace adjoin::vendor
#endif
