// plugins/cuda/runtime.cpp: is there a driver, and how many devices are there? Both are asked
// without starting CUDA: a process that has started it cannot be forked any more.
#include "runtime.hpp"

#include <dlfcn.h>

#include <adjoin/kit/error.hpp>
#include <cstdlib>

#include "../gpu/vendor/status.hpp"

namespace adjoin::vendor {
namespace {

struct Driver {
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  std::string why = handle ? "" : last_error();
  static std::string last_error() {
    const char* text = dlerror();
    return text ? text : "unknown error";
  }
};
const Driver& driver() {
  static const auto* one = new Driver;
  return *one;
}

// The management library answers without CUDA's being started. -1: it is not there.
int32_t count_by_management() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return -1;
  auto start = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  auto end = reinterpret_cast<int (*)()>(dlsym(library, "nvmlShutdown"));
  auto ask = reinterpret_cast<int (*)(unsigned*)>(dlsym(library, "nvmlDeviceGetCount_v2"));
  unsigned n = 0;
  bool known = start && end && ask && start() == 0;
  if (known) {
    known = ask(&n) == 0;
    end();
  }
  dlclose(library);
  return known ? int32_t(n) : -1;
}

// How many of n devices CUDA_VISIBLE_DEVICES leaves: numbers count up to the first that is none.
// -1: it names devices in another way, which CUDA itself has to read.
int32_t visible_of(int32_t n, const char* list) {
  if (!list) return n;
  std::string_view rest(list);
  int32_t seen = 0;
  while (!rest.empty()) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    int32_t index = -1;
    auto [end, wrong] = std::from_chars(item.data(), item.data() + item.size(), index);
    if (wrong != std::errc() || end != item.data() + item.size())
      return item.starts_with("GPU-") || item.starts_with("MIG-") ? -1 : seen;
    if (index < 0 || index >= n) return seen;
    ++seen;
  }
  return seen;
}

Result count_by_runtime(int32_t* out) {
  int n = 0;
  Result result = cudaGetDeviceCount(&n);
  if (result != kSuccess) (void)cudaGetLastError();
  *out = result == kSuccess ? n : 0;
  if (*out) mark_used();  // this call has started CUDA
  return result;
}

std::string says(Result result) {
  return kit::text("CUDA says ", cudaGetErrorName(result), " (", int(result),
                   "): ", cudaGetErrorString(result));
}

// 0 with a reason, or the number of devices.
int32_t find_devices(std::string* why) {
  constexpr char because[] = "no device, because ";
  if (!driver().handle) {
    *why = kit::text(because, "the driver's library cannot be opened (", driver().why,
                     "); install NVIDIA's driver");
    return 0;
  }
  const char* list = secure_getenv("CUDA_VISIBLE_DEVICES");
  int32_t all = used() ? -1 : count_by_management();
  int32_t n = all < 0 ? -1 : visible_of(all, list);
  Result result = kSuccess;
  if (n < 0) result = count_by_runtime(&n);
  if (n == 0)
    *why = result != kSuccess ? because + says(result)
           : all > 0 ? kit::text(because, "CUDA_VISIBLE_DEVICES='", list, "' leaves none of ", all)
                     : std::string(because) + "the driver finds no NVIDIA GPU";
  return n;
}

}  // namespace

std::string missing() {
  std::string why;
  find_devices(&why);
  return why;
}

int32_t count_devices() {
  std::string why;
  return find_devices(&why);
}

Result describe(int32_t device, aj_device_props* out) {
  cudaDeviceProp p;
  Result result = cudaGetDeviceProperties(&p, device);
  if (result != kSuccess) return result;
  out->total_memory = p.totalGlobalMem;
  out->multiprocessors = uint32_t(p.multiProcessorCount);
  std::strncpy(out->name, p.name, sizeof out->name - 1);
  std::string arch = kit::text("sm_", p.major, p.minor);
  std::strncpy(out->arch, arch.c_str(), sizeof out->arch - 1);
  return cudaDeviceGetPCIBusId(out->bus_id, sizeof out->bus_id, device);
}

Result begin_of_allocation(void* p, void** out) {
  using Range = int (*)(unsigned long long*, size_t*, unsigned long long);
  auto range = reinterpret_cast<Range>(dlsym(driver().handle, "cuMemGetAddressRange_v2"));
  unsigned long long base = 0;
  size_t bytes = 0;
  if (!range || range(&base, &bytes, reinterpret_cast<uintptr_t>(p)) != 0)
    return cudaErrorInvalidValue;
  *out = reinterpret_cast<void*>(base);
  return kSuccess;
}

std::string driver_where() {
  return driver().handle ? "CUDA driver: libcuda.so.1" : "CUDA driver: not found: " + driver().why;
}

}  // namespace adjoin::vendor
