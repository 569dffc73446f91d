// core/call/plan.hpp: the walk over operands of any shapes: broadcast, ordered, coalesced, cut for
// threads. One that is flat needs no more than frame.hpp.
#pragma once
#include <bit>

#include "core/call/frame.hpp"

namespace adjoin {

// Reads a 0-dim tensor in host memory as a number.
aj_value read_number(const aj_tensor* t, double* complex_buffer);

struct Plan : Walk<kMaxOperands, kMaxDims> {
  explicit Plan(int compute) { begin(compute, 0, 0); }
  // Dimensions of `shape`, innermost first. Those of operands are aligned to the right of it.
  void walk(std::span<const int64_t> shape, int nops);
  void sort_dims(int from, int to, int by_operand);
  void coalesce(int from);
  void finish(bool ordered);
  // Instead of walk() and finish(), for tensors that are all dense and of one shape.
  void finish_dense(int64_t numel);
  uint32_t last_is_number() const {
    const aj_operand& last = ops[plan.nops - 1];
    return !last.tensor && last.data && plan.nops > plan.nout ? uint32_t(AJ_PLAN_LAST_NUMBER) : 0u;
  }
};

inline void Plan::finish_dense(int64_t numel) {
  uint32_t want = std::bit_cast<uint32_t>(plan.compute), different = 0;
  for (uint32_t i = 0; i < plan.nops; i++)
    if (ops[i].tensor) different |= std::bit_cast<uint32_t>(ops[i].dtype) ^ want;
  plan.numel = sizes[0] = numel;
  plan.flags = AJ_PLAN_FLAT | (different ? 0u : uint32_t(AJ_PLAN_SAME_DTYPE)) | last_is_number();
}

uint64_t plan_estimate_ns(const aj_op* op, const aj_plan& p);
// Calls the kernel for the whole plan, or for parts of it from the pool's threads where that is
// allowed and worth it.
aj_status* run_plan(const aj_op* op, const Kernel* k, aj_call* call, Device* d, Plan* p);

}  // namespace adjoin
