// plugins/hip/runtime.cpp: opens HIP's runtime and says how many devices there are. The latter
// without starting it: a process that has started it cannot be forked any more.
#include "runtime.hpp"

#include <dirent.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "../gpu/vendor/capture.hpp"
#include "../gpu/vendor/libraries.hpp"
#include "../gpu/vendor/status.hpp"

namespace adjoin::vendor {
namespace {

// Numbers of hipDeviceAttribute_t, the same since ROCm 4.5.
enum : int { kMajor = 23, kMinor = 61, kMultiprocessors = 63 };

Runtime table;

// hipLaunchHostFunc is younger than what Debian 12 has.
Result launch_by_callback(Stream stream, void (*fn)(void*), void* arg) {
  struct Job {
    void (*fn)(void*);
    void* arg;
  };
  auto* job = new Job{fn, arg};
  auto run = [](Stream, Result, void* data) {
    auto* j = static_cast<Job*>(data);
    j->fn(j->arg);
    delete j;
  };
  Result result = table.StreamAddCallback(stream, run, job, 0);
  if (result != kSuccess) delete job;
  return result;
}

std::string bind_all(const SharedLibrary& from) {
#define AJ_BIND_(name, symbol, parameters) \
  if (!from.bind("hip" #symbol, &table.name)) return "it has no hip" #symbol;
  AJ_HIP_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
  if (!from.bind("hipGetErrorName", &table.GetErrorName) ||
      !from.bind("hipGetErrorString", &table.GetErrorString))
    return "it has no hipGetErrorString";
  if (!from.bind("hipLaunchHostFunc", &table.LaunchHostFunc))
    table.LaunchHostFunc = launch_by_callback;
  return {};
}

SharedLibrary& library() {
  static SharedLibrary& one = []() -> SharedLibrary& {
    auto* made = new SharedLibrary("HIP", "ADJOIN_HIP_RUNTIME",
                                   {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                    "/opt/rocm/lib/libamdhip64.so"},
                                   {"_rocm_sdk_core/lib", "torch/lib"});
    if (made->open())
      if (std::string why = bind_all(*made); !why.empty()) made->close_for(why);
    return *made;
  }();
  return one;
}

// What the kernel's driver shows: nodes with a GPU have a number that is not 0.
int32_t count_by_driver() {
  const char* nodes = "/sys/class/kfd/kfd/topology/nodes";
  DIR* folder = opendir(nodes);
  if (!folder) return -1;
  int32_t n = 0;
  while (dirent* entry = readdir(folder)) {
    std::ifstream file(std::string(nodes) + "/" + entry->d_name + "/gpu_id");
    unsigned long id = 0;
    n += entry->d_name[0] != '.' && file >> id && id != 0;
  }
  closedir(folder);
  return n;
}

// Which of them a process sees is the runtime's to say.
bool restricted() {
  for (const char* variable : {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                               "CUDA_VISIBLE_DEVICES", "ADJOIN_HIP_RUNTIME", "GPU_DEVICE_ORDINAL"})
    if (secure_getenv(variable)) return true;
  return false;
}

int32_t find_devices(std::string* why) {
  constexpr char because[] = "no device, because ";
  if (!library().usable()) {
    *why = kit::text(because, "HIP's runtime cannot be used (", library().where(),
                     "); install ROCm (apt-get install hip-runtime-amd of AMD, libamdhip64-5 of "
                     "Debian 12), or name the library in ADJOIN_HIP_RUNTIME");
    return 0;
  }
  // A runtime that was named may need another driver.
  if (!secure_getenv("ADJOIN_HIP_RUNTIME") && access("/dev/kfd", F_OK) != 0) {
    *why = kit::text(because, "/dev/kfd is not there: the driver amdgpu is not loaded (found ",
                     library().path(),
                     "); modprobe amdgpu; for a container: docker run "
                     "--device /dev/kfd --device /dev/dri");
    return 0;
  }
  int32_t n = used() || restricted() ? -1 : count_by_driver();
  if (n < 0) {
    int found = 0;
    Result result = table.GetDeviceCount(&found);
    n = result == kSuccess ? found : 0;
    if (n) mark_used();  // this call has started HIP
    if (result != kSuccess) {
      const char* says = table.GetErrorString(result);
      *why = kit::text(because, "HIP says ", table.GetErrorName(result), " (", result,
                       "): ", says ? says : "nothing more");
      return 0;
    }
  }
  if (n == 0) *why = std::string(because) + "the driver finds no AMD GPU";
  return n;
}

// The struct of properties differs between majors; the name of the architecture is the only text in
// it that looks like this.
std::string architecture(int32_t device) {
  using Properties = Result (*)(void*, int);
  auto ask = reinterpret_cast<Properties>(library().symbol("hipGetDevicePropertiesR0600"));
  if (!ask) ask = reinterpret_cast<Properties>(library().symbol("hipGetDeviceProperties"));
  std::string room(8192, '\0');
  if (!ask || ask(room.data(), device) != kSuccess) return {};
  size_t at = room.find("gfx", 256);  // behind the product's name
  return at == std::string::npos ? std::string() : std::string(room.c_str() + at);
}

}  // namespace

const Runtime& runtime() { return table; }

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
  size_t total = 0;
  int processors = 0;
  Result result = table.DeviceTotalMem(&total, device);
  if (result == kSuccess) result = table.DeviceGetAttribute(&processors, kMultiprocessors, device);
  if (result == kSuccess) result = table.DeviceGetName(out->name, sizeof out->name, device);
  if (result == kSuccess) result = table.DeviceGetPCIBusId(out->bus_id, sizeof out->bus_id, device);
  out->total_memory = total;
  out->multiprocessors = uint32_t(processors);
  std::strncpy(out->arch, architecture(device).c_str(), sizeof out->arch - 1);
  return result;
}

Result begin_of_allocation(void* p, void** out) {
  size_t bytes = 0;
  return table.MemGetAddressRange(out, &bytes, p);
}

bool capturing(Stream stream) {
  static auto ask =
      reinterpret_cast<Result (*)(Stream, int*)>(library().symbol("hipStreamIsCapturing"));
  int status = 0;
  return stream && ask && ask(stream, &status) == kSuccess && status != 0;
}

std::string runtime_where() { return library().where(); }

}  // namespace adjoin::vendor
