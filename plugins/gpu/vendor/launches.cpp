// plugins/gpu/vendor/launches.cpp: findings of kernels, and the ops that were queued last.
#include "launches.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "../fault.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kSlots = 512;  // calls that can find something, under way at once
constexpr size_t kRecent = 8;

struct Findings {
  gpu::Fault* slots = nullptr;  // pinned: kernels write through, the host reads without a copy
  std::array<const aj_op*, kSlots> op = {};
  size_t next = 0;
  std::vector<std::pair<const aj_op*, gpu::Fault>> kept;  // of slots that were needed again

  void keep(size_t at) {
    gpu::Fault& slot = slots[at];
    if (__atomic_load_n(&slot.code, __ATOMIC_ACQUIRE) <= 0)
      return;  // nothing, or not yet all of it
    kept.emplace_back(op[at], slot);
    slot = {};
  }
};

std::mutex lock;
std::map<int32_t, Findings>& findings() {
  static auto* all = new std::map<int32_t, Findings>;
  return *all;
}

std::atomic<const aj_op*> recent[kRecent];
std::atomic<size_t> launches{0};

}  // namespace

void note_launch(const aj_call* call) {
  size_t n = launches.fetch_add(1, std::memory_order_relaxed);
  recent[n % kRecent].store(call->op, std::memory_order_relaxed);
}

std::string last_launches() {
  std::string names;
  size_t n = launches.load(std::memory_order_relaxed);
  for (size_t i = 0; i < std::min(n, kRecent); ++i)
    if (const aj_op* op = recent[(n - 1 - i) % kRecent].load(std::memory_order_relaxed))
      names += (names.empty() ? "" : ", ") + std::string(kit::op_name(op));
  return names;
}

aj_status* take_fault(int32_t device) {
  std::lock_guard held(lock);
  auto it = findings().find(device);
  if (it == findings().end() || !it->second.slots) return nullptr;
  Findings& f = it->second;
  for (size_t i = 0; i < kSlots; ++i) f.keep((f.next + i) % kSlots);
  if (f.kept.empty()) return nullptr;
  auto [op, first] = f.kept.front();
  f.kept.clear();
  return gpu::describe_fault(kit::op_name(op), first);
}

}  // namespace adjoin::vendor

namespace adjoin::gpu {

Fault* fault_of(const aj_call* call) {
  using namespace vendor;
  std::lock_guard held(lock);
  Findings& f = findings()[call->device.device_id];
  if (!f.slots) {
    void* room = nullptr;
    kit::check(on(call->device.device_id, "room for findings of kernels", [&](const Runtime& r) {
      return r.HostAlloc(&room, kSlots * sizeof(Fault), kHostAllocPortable);
    }));
    f.slots = static_cast<Fault*>(room);
    std::fill_n(f.slots, kSlots, Fault{});
  }
  size_t at = f.next++ % kSlots;
  f.keep(at);
  f.slots[at] = {};
  f.op[at] = call->op;
  return &f.slots[at];
}

}  // namespace adjoin::gpu
