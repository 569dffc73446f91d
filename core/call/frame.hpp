// core/call/frame.hpp: a call under way: what kernels see of it and what the core keeps beside it,
// its operands and a walk over them; calling the kernel. plan.hpp has walks over several
// dimensions.
#pragma once
#include <cstring>

#include "core/base/tls.hpp"
#include "core/base/value.hpp"
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
  Device* device = nullptr;
  aj_value made[kMaxResults];              // what the kernel fills
  aj_value given[kMaxResults];             // out= tensors, for declare()
  std::vector<aj_value>* views = nullptr;  // results of a view op that returns a list
  Frame(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, uint32_t nrets);
};

inline Frame::Frame(aj_op* o, uint64_t keys, const aj_value* args, uint32_t nargs, uint32_t nrets)
    : call{.struct_size = sizeof call,
           .flags = settings.deterministic ? uint32_t(AJ_CALL_DETERMINISTIC) : 0,
           .core = &core_table,
           .op = o,
           .args = args,
           .rets = made,
           .nargs = nargs,
           .nrets = nrets,
           .keys = keys},
      op(o) {
  for (uint32_t i = 0; i < nrets; i++) made[i] = none(), given[i] = none();
}

void store_number(char* to, int dtype, const aj_value& v);

// Operands and a walk over them: N at most, of at most D dimensions. Filled in place, each field
// once and whole: a kernel that reads a word which was just written in parts waits for it.
template <int N, int D>
struct Walk {
  aj_plan plan;
  aj_operand ops[N];
  int64_t sizes[D];
  int64_t strides[N][D];
  alignas(16) char numbers[N][16];

  // One dimension of so many elements; operands are added.
  [[gnu::always_inline]] void begin(int compute, int nops, int64_t numel) {
    plan = {.struct_size = sizeof plan,
            .flags = AJ_PLAN_FLAT,
            .ndim = 1,
            .nout = 1,
            .nops = uint32_t(nops),
            .compute = dt(compute).dl,
            .numel = numel,
            .sizes = sizes,
            .ops = ops};
    sizes[0] = numel;
  }
  // A tensor as operand `at`, dense in one dimension.
  [[gnu::always_inline]] void add_tensor(int at, aj_tensor* t, uint32_t flags) {
    aj_operand& o = ops[at];
    const bool aligned = reinterpret_cast<uintptr_t>(t->dl.data) % 64 == 0;
    o.data = t->dl.data;
    o.strides = strides[at];
    o.tensor = t;
    std::memcpy(&o.dtype, &t->dl.dtype, sizeof o.dtype);
    o.flags = flags | (aligned ? uint32_t(AJ_OPERAND_ALIGNED64) : 0u);
    strides[at][0] = t->dl.dtype.bits / 8;
  }
  void add_number(int at, const aj_value& v, int dtype) {
    add_without_tensor(at, numbers[at], dtype);
    store_number(numbers[at], dtype, v);
  }
  void add_absent(int at, int dtype) { add_without_tensor(at, nullptr, dtype); }
  void add_without_tensor(int at, void* data, int dtype) {
    ops[at] = {data, strides[at], nullptr, {}, AJ_OPERAND_NUMBER};
    std::memcpy(&ops[at].dtype, &dt(dtype).dl, sizeof ops[at].dtype);
    strides[at][0] = 0;
  }
};

// May t stand beside `first` in a walk over one dimension: dense, of its shape, of this dtype, on
// d?
[[gnu::always_inline]] inline bool alike(const aj_tensor* t, const aj_tensor* first, int dtype,
                                         const Device* d) {
  if (priv(t).dtype != dtype || !is_dense(t) || device(t) != d || t->dl.ndim != first->dl.ndim)
    return false;
  for (int i = 0; i < first->dl.ndim; i++)
    if (t->dl.shape[i] != first->dl.shape[i]) return false;
  return true;
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
