// plugins/hip/modules.cpp: what hipcc's objects call to register and launch their kernels, over the
// runtime that was opened at run time. So nothing of AMD's is linked, and any major version serves.
//
// hipcc embeds a code object for every architecture in each object file and registers it from a
// constructor, under names of the runtime's. Those names are defined here instead, and hidden: a
// code object is loaded on each device where one of its kernels is first launched.
#include <map>
#include <mutex>
#include <unordered_map>

#include "../gpu/vendor/status.hpp"

namespace adjoin::vendor {
namespace {

constexpr Result kNoSuchFunction = 98;  // hipErrorInvalidDeviceFunction

struct Size {  // dim3
  uint32_t x, y, z;
};
struct Wrapper {  // what stands around an embedded code object
  uint32_t magic, version;
  const void* object;
  const void* unused;
};
struct Kernel {
  const Wrapper* from;
  const char* name;
  std::map<int, void*> on;  // by device
};
struct Modules {
  std::mutex lock;
  // By the function that stands for it on the host.
  std::unordered_map<const void*, Kernel> kernels;
  std::map<std::pair<const Wrapper*, int>, void*> loaded;
};
Modules& modules() {
  static auto* one = new Modules;  // constructors of other files use it before ours
  return *one;
}

Result find_kernel(const void* host_function, void** out) {
  Modules& m = modules();
  int device = 0;
  Result result = runtime().GetDevice(&device);
  if (result != kSuccess) return result;
  std::lock_guard held(m.lock);
  auto it = m.kernels.find(host_function);
  if (it == m.kernels.end()) return kNoSuchFunction;
  Kernel& kernel = it->second;
  void*& function = kernel.on[device];
  if (!function) {
    void*& module = m.loaded[{kernel.from, device}];
    if (!module) result = runtime().ModuleLoadData(&module, kernel.from->object);
    if (result == kSuccess) result = runtime().ModuleGetFunction(&function, module, kernel.name);
  }
  *out = function;
  return result;
}

}  // namespace
}  // namespace adjoin::vendor

extern "C" {

using adjoin::vendor::Result;
using adjoin::vendor::Size;
using adjoin::vendor::Stream;
using adjoin::vendor::Wrapper;

void** __hipRegisterFatBinary(const void* data) {
  return static_cast<void**>(const_cast<void*>(data));
}

void __hipUnregisterFatBinary(void**) {}  // the plugin stays as long as the process

void __hipRegisterFunction(void** wrapper, const void* host_function, char*, const char* name,
                           unsigned, void*, void*, void*, void*, int*) {
  auto& m = adjoin::vendor::modules();
  std::lock_guard held(m.lock);
  const void* from = wrapper;
  m.kernels[host_function] = {static_cast<const Wrapper*>(from), name, {}};
}

// Of launches as `kernel<<<...>>>()`, of which there are none.
Result __hipPopCallConfiguration(Size*, Size*, size_t*, Stream*) {
  return adjoin::vendor::kNoSuchFunction;
}

Result hipLaunchKernel(const void* host_function, Size grid, Size block, void** args, size_t shared,
                       Stream stream) {
  void* function = nullptr;
  Result result = adjoin::vendor::find_kernel(host_function, &function);
  if (result != adjoin::vendor::kSuccess) return result;
  return adjoin::vendor::runtime().ModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x,
                                                      block.y, block.z, unsigned(shared), stream,
                                                      args, nullptr);
}
}
