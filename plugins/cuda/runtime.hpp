// plugins/cuda/runtime.hpp: CUDA's runtime under the names that plugins/gpu/vendor is written with.
// It is linked statically, so that the plugin loads where no CUDA is installed.
#ifndef ADJOIN_PLUGINS_CUDA_RUNTIME_HPP
#define ADJOIN_PLUGINS_CUDA_RUNTIME_HPP
#include <adjoin/abi/device.h>
#include <cuda_runtime_api.h>

#include <string>

namespace adjoin::vendor {

inline constexpr char kDevice[] = "cuda", kMaker[] = "CUDA",
                      kBlockingVariable[] = "CUDA_LAUNCH_BLOCKING", kBlasName[] = "cublasLt";
inline constexpr int32_t kDlpackType = kDLCUDA;

using Result = cudaError_t;
using Stream = cudaStream_t;
using Event = cudaEvent_t;
using Graph = cudaGraph_t;
using Executable = cudaGraphExec_t;
using IpcHandle = cudaIpcMemHandle_t;

inline constexpr Result kSuccess = cudaSuccess, kNotReady = cudaErrorNotReady;
inline constexpr auto kMemcpyDefault = cudaMemcpyDefault;
inline constexpr auto kCaptureRelaxed = cudaStreamCaptureModeRelaxed;
inline constexpr unsigned kHostAllocPortable = cudaHostAllocPortable,
                          kMemAttachGlobal = cudaMemAttachGlobal,
                          kStreamNonBlocking = cudaStreamNonBlocking,
                          kIpcLazyPeerAccess = cudaIpcMemLazyEnablePeerAccess;

// Every function that plugins/gpu/vendor calls, without its prefix.
#define AJ_CUDA_FUNCTIONS_(F)     \
  F(GetDeviceCount)               \
  F(GetDevice)                    \
  F(SetDevice)                    \
  F(GetLastError)                 \
  F(GetErrorName)                 \
  F(GetErrorString)               \
  F(DeviceSynchronize)            \
  F(DeviceCanAccessPeer)          \
  F(DeviceEnablePeerAccess)       \
  F(DeviceGetStreamPriorityRange) \
  F(MemGetInfo)                   \
  F(FreeHost)                     \
  F(Free)                         \
  F(MemcpyAsync)                  \
  F(Memcpy2DAsync)                \
  F(MemsetAsync)                  \
  F(IpcGetMemHandle)              \
  F(IpcOpenMemHandle)             \
  F(IpcCloseMemHandle)            \
  F(StreamCreateWithPriority)     \
  F(StreamDestroy)                \
  F(StreamSynchronize)            \
  F(StreamQuery)                  \
  F(StreamWaitEvent)              \
  F(LaunchHostFunc)               \
  F(EventCreateWithFlags)         \
  F(EventDestroy)                 \
  F(EventRecord)                  \
  F(EventQuery)                   \
  F(EventSynchronize)             \
  F(EventElapsedTime)             \
  F(StreamBeginCapture)           \
  F(StreamEndCapture)             \
  F(GraphInstantiateWithFlags)    \
  F(GraphLaunch)                  \
  F(GraphDestroy)                 \
  F(GraphExecDestroy)

struct Runtime {
#define AJ_POINTER_(name) decltype(&cuda##name) name = &cuda##name;
  AJ_CUDA_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  // In C++ the header overloads these.
  Result (*Malloc)(void**, size_t) = &cudaMalloc;
  Result (*MallocManaged)(void**, size_t, unsigned) = &cudaMallocManaged;
  Result (*HostAlloc)(void**, size_t, unsigned) = &cudaHostAlloc;
};
inline const Runtime& runtime() {
  static constexpr Runtime one;
  return one;
}

std::string missing();    // plugins/gpu/vendor/status.hpp says what they do
int32_t count_devices();  // once there is one
Result describe(int32_t device, aj_device_props* out);
Result begin_of_allocation(void* p, void** out);
std::string driver_where();  // whether the driver's library was found

}  // namespace adjoin::vendor
#endif
