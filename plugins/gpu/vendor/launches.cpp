// plugins/gpu/vendor/launches.cpp: findings of kernels, and the ops that were queued last.
#include "launches.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "../fault.hpp"
#include "../line.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kSlots = 512;  // calls that can find something, under way at once
constexpr size_t kRecent = 8;

struct Origin {
  const aj_op* op;
  uint32_t line;  // the user's
};

struct Findings {
  gpu::Fault* slots = nullptr;  // pinned: kernels write through, the host reads without a copy
  std::array<Origin, kSlots> origin = {};
  size_t next = 0;
  std::vector<std::pair<Origin, gpu::Fault>> kept;  // of slots that were needed again

  void keep(size_t at) {
    gpu::Fault& slot = slots[at];
    if (__atomic_load_n(&slot.code, __ATOMIC_ACQUIRE) <= 0)
      return;  // nothing, or not yet all of it
    kept.emplace_back(origin[at], slot);
    slot = {};
  }
};

std::mutex lock;
std::map<int32_t, Findings>& findings() {
  static auto* all = new std::map<int32_t, Findings>;
  return *all;
}

std::atomic<const aj_op*> recent[kRecent];
std::atomic<uint32_t> recent_line[kRecent];
std::atomic<size_t> launches{0};

// Room for findings on a device. Nothing is waited for under the lock: an error's text may want the
// language's.
void make_slots(int32_t device) {
  {
    std::lock_guard held(lock);
    if (findings()[device].slots) return;
  }
  void* room = nullptr;
  auto get = [&](const Runtime& r) {
    return r.HostAlloc(&room, kSlots * sizeof(gpu::Fault), kHostAllocPortable);
  };
  kit::check(on(device, "room for findings of kernels", get));
  auto* slots = static_cast<gpu::Fault*>(room);
  std::fill_n(slots, kSlots, gpu::Fault{});
  {
    std::lock_guard held(lock);
    if (!findings()[device].slots) std::swap(findings()[device].slots, slots);
  }
  if (!slots) return;  // else another thread was first
  kit::check(on(device, "room for findings of kernels",
                [&](const Runtime& r) { return r.FreeHost(slots); }));
}

}  // namespace

void note_launch(const aj_call* call) {
  size_t n = launches.fetch_add(1, std::memory_order_relaxed);
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

aj_status* take_fault(int32_t device) {
  std::pair<Origin, gpu::Fault> first;
  {
    std::lock_guard held(lock);
    auto it = findings().find(device);
    if (it == findings().end() || !it->second.slots) return nullptr;
    Findings& f = it->second;
    for (size_t i = 0; i < kSlots; ++i) f.keep((f.next + i) % kSlots);
    if (f.kept.empty()) return nullptr;
    first = f.kept.front();
    f.kept.clear();
  }
  return gpu::with_place(gpu::describe_fault(kit::op_name(first.first.op), first.second),
                         gpu::line_text(first.first.line));
}

}  // namespace adjoin::vendor

namespace adjoin::gpu {

Fault* fault_of(const aj_call* call) {
  using namespace vendor;
  make_slots(call->device.device_id);
  std::lock_guard held(lock);
  Findings& f = findings()[call->device.device_id];
  size_t at = f.next++ % kSlots;
  f.keep(at);
  f.slots[at] = {};
  f.origin[at] = {call->op, line_now()};
  return &f.slots[at];
}

}  // namespace adjoin::gpu
