// core/call/plan.hpp: builds the walk over operands: broadcast, order, coalesce, cut for threads.
#pragma once
#include <bit>

#include "core/op/kinds.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

struct Plan {
  aj_plan plan;
  aj_operand ops[kMaxOperands];
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxOperands][kMaxDims];
  alignas(16) char numbers[kMaxOperands][16];
  int kept = 0;  // reductions: dimensions [reduced, ndim) are kept; sorted and coalesced apart

  explicit Plan(int compute);
  // An operand; `at` is its place. shape/strides of a tensor are aligned to the right of `shape`.
  void add_tensor(int at, aj_tensor* t, bool write);
  void add_number(int at, const aj_value& v, int compute);
  void add_absent(int at);
  // Dimensions of `shape`, innermost first.
  void walk(std::span<const int64_t> shape, int nops);
  void sort_dims(int from, int to, int by_operand);
  void coalesce(int from);
  void finish(bool ordered);
  // Instead of walk() and finish(), for tensors that are all dense and of one shape: one dimension.
  void finish_dense(int64_t numel);
};

inline void Plan::add_tensor(int at, aj_tensor* t, bool write) {
  uint32_t aligned =
      reinterpret_cast<uintptr_t>(t->dl.data) % 64 ? 0u : uint32_t(AJ_OPERAND_ALIGNED64);
  ops[at] = {t->dl.data, strides[at], t, t->dl.dtype,
             (write ? uint32_t(AJ_OPERAND_WRITE) : 0u) | aligned};
}

inline void Plan::finish_dense(int64_t numel) {
  plan.ndim = 1;
  plan.numel = sizes[0] = numel;
  uint32_t want = std::bit_cast<uint32_t>(plan.compute), different = 0;
  for (uint32_t i = 0; i < plan.nops; i++) {
    strides[i][0] = ops[i].tensor ? ops[i].dtype.bits / 8 : 0;
    if (ops[i].tensor) different |= std::bit_cast<uint32_t>(ops[i].dtype) ^ want;
  }
  const aj_operand& last = ops[plan.nops - 1];
  plan.flags =
      AJ_PLAN_FLAT | (different ? 0u : uint32_t(AJ_PLAN_SAME_DTYPE)) |
      (!last.tensor && last.data && plan.nops > plan.nout ? uint32_t(AJ_PLAN_LAST_NUMBER) : 0u);
}

void store_number(char* to, int dtype, const aj_value& v);
// Reads a 0-dim tensor in host memory as a number.
aj_value read_number(const aj_tensor* t, double* complex_buffer);

uint64_t plan_estimate_ns(const aj_op* op, const aj_plan& p);
// Calls the kernel for the whole plan, or for parts of it from the pool's threads where that is
// allowed and worth it.
aj_status* run_plan(const aj_op* op, const Kernel* k, aj_call* call, Device* d, Plan* p);

}  // namespace adjoin
