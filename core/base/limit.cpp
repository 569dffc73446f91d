// core/base/limit.cpp: reads the limits of control groups, version 2 and 1, of this process's
// group and all above it.
#include "core/base/limit.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/log.hpp"
#include "core/base/plain.hpp"

namespace adjoin {
namespace {

constexpr uint64_t kNone = UINT64_MAX;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

uint64_t number(std::string_view text) {
  uint64_t v = kNone;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return v;
}

// Calls f(folder) for the group of `controller` and every group above it. In a container the
// group's own path is often not mounted, but the root of the mount is then the group itself, so
// missing folders are passed over.
template <class F>
void each_group(const char* root, const char* groups, std::string_view controller, F f) {
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {
    size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    std::string names = "," + line.substr(a + 1, b - a - 1) + ",";
    bool v2 = line.compare(0, a, "0") == 0 && b == a + 1;
    if (!v2 && names.find("," + std::string(controller) + ",") == std::string::npos) continue;
    std::string joined = names.substr(1, names.size() - 2), own(controller);
    const std::string mounts[] = {v2 ? "" : "/" + joined, v2 ? "/unified" : "/" + own};
    for (std::string path = line.substr(b + 1);;) {
      if (path == "/") path.clear();
      for (const std::string& mount : mounts) f(root + mount + path);
      if (path.empty()) break;
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
}

}  // namespace

uint64_t parse_bytes(std::string_view text) {
  std::string_view rest = text;
  double v = take_double(&rest);
  if (rest.size() == text.size() || !(v > 0)) return 0;
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::string unit;
  for (char c : rest) unit += char(c | 32);
  if (!unit.empty() && unit.back() == 'b') unit.pop_back();
  bool binary = unit.size() == 2 && unit[1] == 'i';
  if (unit.size() > 1 && !binary) return 0;
  double k = binary ? 1024 : 1000;
  size_t power = unit.empty() ? 0 : std::string_view("kmgt").find(unit[0]) + 1;
  if (!unit.empty() && power == 0) return 0;
  for (size_t i = 0; i < power; i++) v *= k;
  return v < 1.8e19 ? uint64_t(v) : 0;
}

uint64_t cgroup_memory_limit(const char* root, const char* groups) {
  uint64_t limit = kNone;
  each_group(root, groups, "memory", [&](const std::string& folder) {
    limit = std::min(limit, number(first_line(folder + "/memory.max")));  // "max" is no number
    limit = std::min(limit, number(first_line(folder + "/memory.limit_in_bytes")));
  });
  return limit >= kNone / 4 ? kNone : limit;  // version 1 says 2^63 less a page for none
}

int cgroup_cpu_limit(const char* root, const char* groups) {
  double cpus = 0;
  auto take = [&](double quota, double period) {
    if (quota > 0 && period > 0 && (cpus == 0 || quota / period < cpus)) cpus = quota / period;
  };
  each_group(root, groups, "cpu", [&](const std::string& folder) {
    std::string max = first_line(folder + "/cpu.max");
    size_t space = max.find(' ');
    if (space != std::string::npos && max.compare(0, 3, "max") != 0)
      take(read_double(max), read_double(max.substr(space + 1)));
    take(read_double(first_line(folder + "/cpu.cfs_quota_us")),
         read_double(first_line(folder + "/cpu.cfs_period_us")));
  });
  return cpus == 0 ? 0 : std::max(1, int(cpus + 0.999));
}

uint64_t host_memory_limit() {
  static const uint64_t found = [] {
    struct sysinfo info {};
    uint64_t limit = kNone;
    if (sysinfo(&info) == 0) limit = (uint64_t(info.totalram) + info.totalswap) * info.mem_unit;
    limit = std::min(limit, cgroup_memory_limit("/sys/fs/cgroup", "/proc/self/cgroup"));
    const char* user = secure_getenv("ADJOIN_MEMORY_LIMIT");
    if (uint64_t bytes = user ? parse_bytes(user) : 0)
      limit = std::min(limit, bytes);
    else if (user && *user)
      log_message(1, "memory",
                  std::string("ADJOIN_MEMORY_LIMIT is '") + user +
                      "', a size such as 512MB or 4GiB is wanted; not used");
    return limit;
  }();
  return found;
}

}  // namespace adjoin
