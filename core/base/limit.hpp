// core/base/limit.hpp: how much memory the machine, its control group and the user grant.
#pragma once
#include <cstdint>
#include <string_view>

namespace adjoin {

uint64_t parse_bytes(
    std::string_view text);  // "512MB", "2GiB", "1.5g", "4096"; 0 if it is none of these
uint64_t
host_memory_limit();  // the smallest of memory, control groups (v2, v1) and ADJOIN_MEMORY_LIMIT

// The limit that control groups set, read below `root` for the groups that `groups` (a file like
// /proc/self/cgroup) names.
uint64_t cgroup_memory_limit(const char* root, const char* groups);

// CPUs that a control group's quota grants, rounded up; 0 if there is no quota.
int cgroup_cpu_limit(const char* root, const char* groups);

}  // namespace adjoin
