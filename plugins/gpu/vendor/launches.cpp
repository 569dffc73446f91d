// plugins/gpu/vendor/launches.cpp: the ops that were queued last.
#include "launches.hpp"

#include <algorithm>

#include "../line.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kRecent = 8;

std::atomic<const aj_op*> recent[kRecent];
std::atomic<uint32_t> recent_line[kRecent];
std::atomic<size_t> launches{0};

}  // namespace

void note_launch(const aj_call* call) {
  // Threads that meet here may take one place: a message then lacks a name, and no launch pays.
  size_t n = launches.load(std::memory_order_relaxed);
  launches.store(n + 1, std::memory_order_relaxed);
  recent[n % kRecent].store(call->op, std::memory_order_relaxed);
  recent_line[n % kRecent].store(gpu::line_now(), std::memory_order_relaxed);
}

std::string last_launches() {
  std::string names;
  size_t n = launches.load(std::memory_order_relaxed);
  for (size_t i = 0; i < std::min(n, kRecent); ++i) {
    size_t at = (n - 1 - i) % kRecent;
    const aj_op* op = recent[at].load(std::memory_order_relaxed);
    if (!op) continue;
    names += (names.empty() ? "" : ", ") + std::string(kit::op_name(op));
    std::string place = gpu::line_text(recent_line[at].load(std::memory_order_relaxed));
    if (!place.empty()) names += " by " + place;
  }
  return names;
}

}  // namespace adjoin::vendor
