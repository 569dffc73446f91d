// plugins/cuda/runtime.cpp: opens the driver's library and says how many devices there are. The
// latter without starting CUDA: a process that has started it cannot be forked any more.
#include "runtime.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <adjoin/kit/error.hpp>
#include <atomic>
#include <cstdlib>

#include "../gpu/vendor/capture.hpp"
#include "../gpu/vendor/libraries.hpp"
#include "../gpu/vendor/status.hpp"
#include "driver.hpp"

namespace adjoin::vendor {
namespace {

constexpr int kMostDevices = 64;
constexpr Result kInvalidDevice = CUDA_ERROR_INVALID_DEVICE;

Runtime table;

std::string bind_all(const SharedLibrary& from) {
#define AJ_BIND_(name, symbol, parameters)   \
  if (!from.bind("cu" #symbol, &table.name)) \
    return "it has no cu" #symbol ": the oldest driver that serves is that of CUDA 11.4 (470)";
  AJ_CUDA_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
  return {};
}

SharedLibrary& library() {
  static SharedLibrary& one = []() -> SharedLibrary& {
    auto* made = new SharedLibrary("CUDA driver", "ADJOIN_CUDA_DRIVER", {"libcuda.so.1"}, {});
    if (!made->open()) return *made;
    if (std::string why = bind_all(*made); !why.empty()) made->close_for(why);
    int version = 0;
    if (made->usable() && table.DriverGetVersion(&version) == kSuccess)
      made->set_version(version_text(version));
    return *made;
  }();
  return one;
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

Result count_by_driver(int32_t* out) {
  int n = 0;
  Result result = start();
  if (result == kSuccess) result = table.GetDeviceCount(&n);
  *out = result == kSuccess ? n : 0;
  if (*out) mark_used();  // this call has started CUDA
  return result;
}

std::string says(Result result) {
  const char *name = table.GetErrorName(result), *text = table.GetErrorString(result);
  return kit::text("CUDA says ", name ? name : "an unknown error", " (", result,
                   "): ", text ? text : "nothing more");
}

// 0 with a reason, or the number of devices.
int32_t find_devices(std::string* why) {
  constexpr char because[] = "no device, because ";
  if (!library().usable()) {
    *why = kit::text(because, "the driver's library cannot be used (", library().where(),
                     "); install NVIDIA's driver (apt-get install nvidia-driver; for a container: "
                     "docker run --gpus all), or name the library in ADJOIN_CUDA_DRIVER");
    return 0;
  }
  const char* list = secure_getenv("CUDA_VISIBLE_DEVICES");
  // The management library speaks of the driver that is installed, not of one that was named.
  bool asks = used() || secure_getenv("ADJOIN_CUDA_DRIVER");
  int32_t all = asks ? -1 : count_by_management();
  int32_t n = all < 0 ? -1 : visible_of(all, list);
  Result result = kSuccess;
  if (n < 0) result = count_by_driver(&n);
  if (n == 0)
    *why = result != kSuccess ? because + says(result)
           : all > 0 ? kit::text(because, "CUDA_VISIBLE_DEVICES='", list, "' leaves none of ", all)
                     : std::string(because) + "the driver finds no NVIDIA GPU";
  return n;
}

}  // namespace

const Runtime& runtime() { return table; }

Result Runtime::Memcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t pitch,
                              size_t width, size_t height, int, Stream stream) const {
  CUDA_MEMCPY2D how = {};
  how.srcMemoryType = how.dstMemoryType = CU_MEMORYTYPE_UNIFIED;  // addresses say where they are
  how.srcDevice = reinterpret_cast<uintptr_t>(from);
  how.dstDevice = reinterpret_cast<uintptr_t>(to);
  how.srcPitch = pitch;
  how.dstPitch = to_pitch;
  how.WidthInBytes = width;
  how.Height = height;
  return Copy2DAsync(&how, stream);
}

Result Runtime::DeviceEnablePeerAccess(int device, unsigned flags) const {
  Place peer = kNowhere;
  Result result = place_of(device, &peer);
  return result == kSuccess ? EnablePeerAccess(peer, flags) : result;
}

std::string missing() {
  std::string why;
  find_devices(&why);
  return why;
}

int32_t count_devices() {
  std::string why;
  return find_devices(&why);
}

Result start() { return table.Init(0); }

Result place_of(int32_t device, Place* out) {
  static std::atomic<Place> known[kMostDevices];
  if (device < 0 || device >= kMostDevices) return kInvalidDevice;
  *out = known[device].load(std::memory_order_acquire);
  if (*out) return kSuccess;
  int handle = 0;
  Result result = table.DeviceGet(&handle, device);
  if (result == kSuccess) result = table.PrimaryContext(out, handle);  // kept while the process is
  if (result == kSuccess) known[device].store(*out, std::memory_order_release);
  return result;
}

int driver_version() {
  int version = 0;
  bool known = library().usable() && table.DriverGetVersion(&version) == kSuccess;
  return known ? version : 0;
}

std::string version_text(int v) { return kit::text(v / 1000, ".", v % 1000 / 10); }

bool driver_serves(int version) {
  int has = driver_version();
  return has == 0 || has / 1000 >= version / 1000;
}

std::string why_no_image() {
  if (driver_serves(CUDA_VERSION)) return {};
  return kit::text(" (made by the compiler of CUDA ", version_text(CUDA_VERSION),
                   "; the driver serves up to ", version_text(driver_version()),
                   ": install a newer driver)");
}

std::string missing_driver() {
  if (driver_serves(CUDA_VERSION)) return {};
  return kit::text("missing: a driver of CUDA ", CUDA_VERSION / 1000,
                   ": our kernels were made by its compiler, and the driver serves up to ",
                   version_text(driver_version()), "; apt-get install nvidia-driver\n");
}

Result describe(int32_t device, aj_device_props* out) {
  int handle = 0, major = 0, minor = 0, processors = 0;
  size_t total = 0;
  Result result = start();
  if (result == kSuccess) result = table.DeviceGet(&handle, device);
  auto attribute = [&](int* to, CUdevice_attribute which) {
    if (result == kSuccess) result = table.DeviceGetAttribute(to, which, handle);
  };
  attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  attribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (result == kSuccess) result = table.DeviceTotalMem(&total, handle);
  if (result == kSuccess) result = table.DeviceGetName(out->name, sizeof out->name, handle);
  if (result == kSuccess) result = table.DeviceGetPCIBusId(out->bus_id, sizeof out->bus_id, handle);
  out->total_memory = total;
  out->multiprocessors = uint32_t(processors);
  std::string arch = kit::text("sm_", major, minor);
  std::strncpy(out->arch, arch.c_str(), sizeof out->arch - 1);
  return result;
}

Result begin_of_allocation(void* p, void** out) {
  size_t bytes = 0;
  return table.MemGetAddressRange(out, &bytes, p);
}

bool capturing(Stream stream) {
  int status = 0;
  return stream && table.StreamIsCapturing(stream, &status) == kSuccess && status != 0;
}

std::string driver_where() { return library().where(); }

}  // namespace adjoin::vendor
