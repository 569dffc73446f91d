// core/op/settings.hpp: what holds for the whole process: default device, deterministic mode, fallback policy.
#pragma once
#include <adjoin/abi/op.h>

#include <span>

#include "core/device/device.hpp"

namespace adjoin {

bool free_order_wanted();

struct Settings {
  std::atomic<bool> deterministic{false};
  bool free_order = free_order_wanted();  // ADJOIN_FREE_ORDER=0: results lie in memory as users see them, always
  std::atomic<Device*> default_device{nullptr};
};
extern Settings settings;

aj_status* default_host(Device** out);    // "cpu"
aj_status* default_device(Device** out);  // "cpu" unless set; loads its plugin at the first use
aj_status* resize(aj_tensor* t, std::span<const int64_t> shape);  // C order; grows the memory if needed

// What to do when a device lacks an op: AJ_OK with *host true to serve it by copies, or the error.
aj_status* set_fallback(aj_str op, aj_str device, aj_str policy);
uint32_t fallback_count();
aj_status* fallback_at(uint32_t i, aj_fallback_entry* io);
aj_status* serve_missing(aj_op* op, Device* d, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets);
aj_status* op_explain(const aj_op* op, aj_str device, aj_object** out);

}  // namespace adjoin
