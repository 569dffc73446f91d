// plugins/emulated/launch.cpp: kernels into streams, and what they found wrong out of them.
#include <memory>

#include "../gpu/fault.hpp"
#include "orders.hpp"
#include "stream.hpp"
#include "target.hpp"

namespace adjoin::gpu {
namespace {

Fault fault;  // grids run one at a time, and it is looked at after each

}  // namespace

Fault* fault_of(const aj_call*) { return &fault; }

aj_status* enqueue(const aj_call* call, unsigned gx, unsigned gy, unsigned gz, unsigned tx,
                   unsigned ty, void (*body)(const void*), const void* argument, size_t bytes) {
  using emulated::Dim3;
  // Aligned as the widest element.
  std::shared_ptr<void> kept(::operator new(bytes, std::align_val_t(64)),
                             [](void* p) { ::operator delete(p, std::align_val_t(64)); });
  std::memcpy(kept.get(), argument, bytes);
  std::string name(kit::op_name(call->op));
  int32_t device = call->device.device_id;
  auto run = [=]() -> aj_status* {
    if (emulated::orders.fail_kernel.due())
      return kit::fail(AJ_INTERNAL, name, ": its kernel on emulated:", device,
                       " has failed, as ordered");
    static std::mutex one;  // the fault is that of this grid
    std::lock_guard held(one);
    fault = {};
    std::string wrong = emulated::run_grid(Dim3{gx, gy, gz}, Dim3{tx, ty, 1}, body, kept.get());
    if (!wrong.empty())
      return kit::fail(AJ_INTERNAL, name, ": its kernel on emulated:", device,
                       " is wrong: ", wrong);
    return fault.code ? describe_fault(name, fault) : nullptr;
  };
  return emulated::stream_of(device, call->stream).submit({run, name, true, {}});
}

}  // namespace adjoin::gpu
