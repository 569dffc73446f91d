// frontends/cli/doctor/machine.cpp: processor, threads, memory, GPUs and caches of this machine.
#include <adjoin/abi/tuner.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "doctor.hpp"

namespace adjoin::cli::doctor {
namespace {

namespace fs = std::filesystem;

// The value of "key   : value" or "key: value".
std::string entry(const std::string& file, const std::string& key) {
  std::ifstream from(file);
  for (std::string line; std::getline(from, line);)
    if (line.starts_with(key)) {
      size_t at = line.find(':');
      at = at == line.npos ? at : line.find_first_not_of(" \t", at + 1);
      if (at != line.npos) return line.substr(at);
    }
  return {};
}

std::string features() {
  std::string all = " " + entry("/proc/cpuinfo", "flags") + " ", known;
  for (const char* one : {"sse4_2", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_vnni",
                          "amx_bf16", "amx_int8"})
    if (all.find(std::string(" ") + one + " ") != all.npos)
      known += (known.empty() ? "" : " ") + std::string(one);
  return known;
}

// Processors that the control group of this process grants, 0 for no limit.
double cpu_quota() {
  std::string max = first_line("/sys/fs/cgroup/cpu.max");
  size_t space = max.find(' ');
  double quota = std::atof(max.c_str()),
         period = space == max.npos ? 0 : std::atof(max.c_str() + space);
  if (max.empty()) {
    quota = std::atof(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").c_str());
    period = std::atof(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us").c_str());
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

double memory_limit() {
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    double bytes = std::atof(first_line(file).c_str());
    if (bytes > 0 && bytes < 1e18) return bytes;
  }
  return 0;
}

void judge_threads(Findings& out) {
  cpu_set_t set;
  int granted = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  std::string text = std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " online, " +
                     std::to_string(granted) + " allowed to this process";
  if (double quota = cpu_quota(); quota > 0) {
    char amount[32];
    std::snprintf(amount, sizeof amount, "%.2g", quota);
    text += std::string(", the control group grants ") + amount;
    granted = std::clamp(int(std::ceil(quota)), 1, granted);
  }
  out.fine("processors", text);
  int used = core().num_threads();
  text = std::to_string(used) + (used == 1 ? " is used" : " are used");
  if (used > granted)
    out.complaint(
        "threads", text + ", more than there are processors: they wait for each other",
        "unset ADJOIN_NUM_THREADS and OMP_NUM_THREADS, or set " + std::to_string(granted));
  else if (used < granted)
    out.note("threads", text + " of " + std::to_string(granted),
             "unset ADJOIN_NUM_THREADS and OMP_NUM_THREADS to use all");
  else
    out.fine("threads", text);
}

}  // namespace

void look_at_processor(Findings out) {
  std::string model = entry("/proc/cpuinfo", "model name");
  out.fine("model", model.empty() ? "unknown" : model);
  if (std::string known = features(); !known.empty()) out.fine("features", known);
  judge_threads(out);
}

void look_at_gpus(Findings out) {
  bool served[2] = {};
  for (const aj_plugin_info& p : list_plugins()) {
    served[0] |= text(p.provides).find("device:cuda") != std::string::npos;
    served[1] |= text(p.provides).find("device:hip") != std::string::npos;
  }
  std::string nvidia = first_line("/proc/driver/nvidia/version");
  if (!nvidia.empty() && !served[0])
    out.note("GPU", "a driver of NVIDIA is here (" + nvidia + "), and no plugin for it",
             "pip install . -Csetup-args=-Dcuda=enabled, with the CUDA toolkit");
  else if (!nvidia.empty())
    out.fine("GPU", nvidia);
  if (fs::exists("/dev/kfd") && !served[1])
    out.note("GPU", "a driver of AMD is here (/dev/kfd), and no plugin for it",
             "pip install . -Csetup-args=-Dhip=enabled");
}

void look_at_memory(Findings out) {
  double total = std::atof(entry("/proc/meminfo", "MemTotal").c_str()) * 1024,
         free = std::atof(entry("/proc/meminfo", "MemAvailable").c_str()) * 1024;
  out.fine("memory", size_text(total) + ", " + size_text(free) + " available");
  if (double limit = memory_limit(); limit > 0 && limit < total)
    out.fine("limit", size_text(limit) + " for the control group");
  struct statvfs shm;
  if (statvfs("/dev/shm", &shm) != 0)
    out.note("/dev/shm", "there is none; our own workers need none, other programs may");
  else
    out.fine("/dev/shm", size_text(double(shm.f_blocks) * double(shm.f_frsize)) + ", " +
                             size_text(double(shm.f_bavail) * double(shm.f_frsize)) +
                             " free; our own workers need none of it");
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 256)
    out.note("descriptors", std::to_string(files.rlim_cur) + " at most", "ulimit -n 1024");
}

void look_at_caches(Findings out) {
  auto* services = static_cast<const aj_services*>(aj_get_interface("aj.service", AJ_ABI_MAJOR));
  aj_service_def def = {};
  def.struct_size = sizeof def;
  if (!services || services->count(borrow("aj.tuner/cpu")) == 0) return;
  check(services->at(borrow("aj.tuner/cpu"), 0, &def));
  auto* tuner = static_cast<const aj_tuner*>(def.table);
  std::string place = text(tuner->place(tuner->self));
  if (place.empty()) return out.fine("products", "no file is looked for");
  if (std::error_code none; !fs::exists(place, none))
    return out.fine("products", place + ": absent, our own choice serves (adjoin tune measures)");
  aj_object* told = nullptr;
  check(tuner->show(tuner->self, 0, &told));
  for (const std::string& line : split(take(told), '\n'))
    if (line.starts_with("state: ")) {
      if (line == "state: used")
        out.fine("products", place + ": used");
      else
        out.complaint(
            "products", place + ": " + line.substr(7),
            secure_getenv("ADJOIN_TUNING")
                ? "adjoin tune, if it may be overwritten; else another file in ADJOIN_TUNING"
                : "adjoin tune, or remove the file");
    }
}

}  // namespace adjoin::cli::doctor
