// plugins/gpu/vendor/modules.cpp: finds a kernel by the function that stands for it on the host.
#include "modules.hpp"

#include <map>
#include <mutex>
#include <unordered_map>

namespace adjoin::vendor {
namespace {

struct Kernel {
  const Wrapper* from;
  const char* name;
  std::map<Place, void*> at;
};
struct Modules {
  std::mutex lock;
  std::unordered_map<const void*, Kernel> kernels;  // by the host's function
  std::map<std::pair<const Wrapper*, Place>, void*> loaded;
};
Modules& modules() {
  static auto* one = new Modules;  // constructors of other files use it before ours
  return *one;
}

// What the thread has launched lately, found without the lock: a function stays where it is.
struct Recent {
  const void* host_function;
  Place here;
  void* function;
};
constexpr size_t kRecent = 64;
thread_local Recent recent[kRecent];

Result look_up(const void* host_function, Place here, void** out) {
  Modules& m = modules();
  Result result = kSuccess;
  std::lock_guard held(m.lock);
  auto it = m.kernels.find(host_function);
  if (it == m.kernels.end()) return kNoSuchFunction;
  Kernel& kernel = it->second;
  void*& function = kernel.at[here];
  if (!function) {
    void*& module = m.loaded[{kernel.from, here}];
    if (!module) result = runtime().ModuleLoadData(&module, kernel.from->object);
    if (result == kSuccess) result = runtime().ModuleGetFunction(&function, module, kernel.name);
  }
  *out = function;
  return result;
}

Result find_kernel(const void* host_function, void** out) {
  Place here = kNowhere;
  Result result = runtime().GetCurrent(&here);
  if (result != kSuccess) return result;
  Recent& r = recent[reinterpret_cast<uintptr_t>(host_function) / 16 % kRecent];
  if (r.host_function != host_function || r.here != here) {
    result = look_up(host_function, here, out);
    if (result == kSuccess) r = {host_function, here, *out};
    return result;
  }
  *out = r.function;
  return kSuccess;
}

}  // namespace

void register_kernel(const void* host_function, const Wrapper* from, const char* name) {
  Modules& m = modules();
  std::lock_guard held(m.lock);
  m.kernels[host_function] = {from, name, {}};
}

Result launch_registered(const void* host_function, Size grid, Size block, void** arguments,
                         size_t shared, Stream stream) {
  void* function = nullptr;
  Result result = find_kernel(host_function, &function);
  if (result != kSuccess) return result;
  return runtime().ModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                      unsigned(shared), stream, arguments, nullptr);
}

}  // namespace adjoin::vendor
