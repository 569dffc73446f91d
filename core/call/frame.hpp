// core/call/frame.hpp: a call under way, as kernels see it and as the core keeps it; calling the
// kernel.
#pragma once
#include "core/base/tls.hpp"
#include "core/call/failure.hpp"
#include "core/op/kinds.hpp"
#include "core/op/settings.hpp"
#include "core/op/tables.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

// The call as kernels see it, and what the core keeps beside it. `call` stands first: declare()
// finds the rest from it.
struct Frame {
  aj_call call;
  aj_op* op;
  Device* device;
  aj_value made[kMaxResults];    // what the kernel fills
  aj_value given[kMaxResults];   // out= tensors that must wait for a copy
  std::vector<aj_value>* views;  // results of a view op that returns a list
  Frame(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, uint32_t nrets);
};

inline Frame::Frame(aj_op* o, uint64_t keys, const aj_value* args, uint32_t nargs, uint32_t nrets) {
  call.struct_size = sizeof(aj_call);
  call.flags = settings.deterministic ? AJ_CALL_DETERMINISTIC : 0;
  call.core = &core_table;
  call.op = o;
  call.args = args;
  call.rets = made;
  call.nargs = nargs;
  call.nrets = nrets;
  call.keys = keys;
  call.stream = nullptr;
  call.plan = nullptr;
  op = o;
  device = nullptr;
  views = nullptr;
  // Each by itself: copying one from the other would read what was just written in halves.
  for (uint32_t i = 0; i < nrets; i++) made[i].tag = AJ_NONE, made[i].aux = 0, made[i].v.i = 0;
  for (uint32_t i = 0; i < nrets; i++) given[i].tag = AJ_NONE, given[i].aux = 0, given[i].v.i = 0;
}

// Calls a kernel, and says so while it runs: see watch.hpp.
inline aj_status* invoke(const aj_op* op, const Kernel* k, aj_call* call) {
  const Kernel* before = tls.running_kernel;
  if (__builtin_expect(before == k, 0) && stack_is_short()) return leads_back(op, k);
  // Atomic, for the watchdog's thread reads both.
  __atomic_store_n(&tls.running_kernel, k, __ATOMIC_RELAXED);
  __atomic_store_n(&tls.kernels, tls.kernels + 1, __ATOMIC_RELAXED);
  aj_status* s;
  try {
    s = k->fn(k->self, call);
  } catch (...) {
    s = kernel_threw(op, k, call);
  }
  __atomic_store_n(&tls.running_kernel, before, __ATOMIC_RELAXED);
  return __builtin_expect(!s, 1) ? nullptr : kernel_failed(op, k, call, s);
}

}  // namespace adjoin
