// plugins/gpu/vendor/findings.cpp: places in which kernels note what they found wrong, each with
// the op and the user's line that it is for.
#include "findings.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "../fault.hpp"
#include "../line.hpp"
#include "launches.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kSlots = 512;    // calls that can find something, under way at once
constexpr size_t kOfGraphs = 64;  // places of graphs that are made at once

struct Origin {
  const aj_op* op;
  uint32_t line;  // the user's
};
struct Kept {  // of a graph: its kernels may run at any time
  gpu::Fault* slot;
  const void* owner = nullptr;  // the stream while it is captured, then the graph; null: free
  Origin origin = {};
};

struct Findings {
  gpu::Fault* slots = nullptr;  // pinned: kernels write through, the host reads without a copy
  std::array<Origin, kSlots> origin = {};
  size_t next = 0;
  std::vector<Kept> of_graphs;
  std::vector<void*> capturing;                     // streams
  std::vector<std::pair<Origin, gpu::Fault>> kept;  // of slots that were needed again

  void keep(gpu::Fault& slot, const Origin& from) {
    if (__atomic_load_n(&slot.code, __ATOMIC_ACQUIRE) <= 0)
      return;  // nothing, or not yet all of it
    kept.emplace_back(from, slot);
    slot = {};
  }
  // The stream that is captured; another one that the capture has taken in counts as its last.
  void* capture_of(void* stream) const {
    if (capturing.empty()) return nullptr;
    bool itself = std::find(capturing.begin(), capturing.end(), stream) != capturing.end();
    return itself ? stream : capturing.back();
  }
  Kept* free_place() {
    auto it = std::find_if(of_graphs.begin(), of_graphs.end(), [](auto& p) { return !p.owner; });
    return it == of_graphs.end() ? nullptr : &*it;
  }
  void pass(const void* from, const void* to) {
    for (Kept& p : of_graphs)
      if (p.owner == from) p.owner = to;
  }
};

std::mutex lock;
std::atomic<int> captures_open{0};
std::map<int32_t, Findings>& findings() {
  static auto* all = new std::map<int32_t, Findings>;
  return *all;
}

// Room for n findings. Nothing is waited for under the lock: an error's text may want the
// language's.
gpu::Fault* make_slots(int32_t device, size_t n) {
  void* room = nullptr;
  auto get = [&](const Runtime& r) {
    return r.HostAlloc(&room, n * sizeof(gpu::Fault), kHostAllocPortable);
  };
  kit::check(on(device, "room for findings of kernels", get));
  auto* slots = static_cast<gpu::Fault*>(room);
  std::fill_n(slots, n, gpu::Fault{});
  return slots;
}

void make_ring(int32_t device) {
  {
    std::lock_guard held(lock);
    if (findings()[device].slots) return;
  }
  gpu::Fault* slots = make_slots(device, kSlots);
  {
    std::lock_guard held(lock);
    if (!findings()[device].slots) std::swap(findings()[device].slots, slots);
  }
  if (!slots) return;  // else another thread was first
  kit::check(on(device, "room for findings of kernels",
                [&](const Runtime& r) { return r.FreeHost(slots); }));
}

// Null where nothing is captured.
gpu::Fault* place_of_graph(const aj_call* call) {
  int32_t device = call->device.device_id;
  for (;;) {
    {
      std::lock_guard held(lock);
      Findings& f = findings()[device];
      void* owner = f.capture_of(call->stream);
      if (!owner) return nullptr;
      if (Kept* p = f.free_place()) {
        *p->slot = {};
        p->owner = owner;
        p->origin = {call->op, gpu::line_now()};
        return p->slot;
      }
    }
    gpu::Fault* more = make_slots(device, kOfGraphs);
    std::lock_guard held(lock);
    for (size_t i = 0; i < kOfGraphs; ++i) findings()[device].of_graphs.push_back({more + i});
  }
}

}  // namespace

void capture_opens(int32_t device, void* stream) {
  std::lock_guard held(lock);
  findings()[device].capturing.push_back(stream);
  captures_open.fetch_add(1, std::memory_order_relaxed);
}

void capture_closes(int32_t device, void* stream, void* graph) {
  std::lock_guard held(lock);
  Findings& f = findings()[device];
  if (std::erase(f.capturing, stream) == 0) return;
  f.pass(stream, graph);
  captures_open.fetch_sub(1, std::memory_order_relaxed);
}

void graph_ends(int32_t device, void* graph) {
  std::lock_guard held(lock);
  findings()[device].pass(graph, nullptr);
}

aj_status* take_fault(int32_t device) {
  std::pair<Origin, gpu::Fault> first;
  {
    std::lock_guard held(lock);
    auto it = findings().find(device);
    if (it == findings().end()) return nullptr;
    Findings& f = it->second;
    for (size_t i = 0; f.slots && i < kSlots; ++i) {
      size_t at = (f.next + i) % kSlots;
      f.keep(f.slots[at], f.origin[at]);
    }
    for (const Kept& p : f.of_graphs) f.keep(*p.slot, p.origin);
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
  if (captures_open.load(std::memory_order_relaxed))
    if (Fault* slot = place_of_graph(call)) return slot;
  make_ring(call->device.device_id);
  std::lock_guard held(lock);
  Findings& f = findings()[call->device.device_id];
  size_t at = f.next++ % kSlots;
  f.keep(f.slots[at], f.origin[at]);
  f.slots[at] = {};
  f.origin[at] = {call->op, line_now()};
  return &f.slots[at];
}

}  // namespace adjoin::gpu
