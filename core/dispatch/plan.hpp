// core/dispatch/plan.hpp: builds the walk over operands: broadcast, order, coalesce, cut for threads.
#pragma once
#include "core/dispatch/kinds.hpp"

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
  // One dimension over the whole of dense operands.
  void flat(int64_t numel);
  // Dimensions of `shape`, innermost first.
  void walk(std::span<const int64_t> shape, int nops);
  void sort_dims(int from, int to, int by_operand);
  void coalesce(int from);
  void finish(bool ordered);
};

void store_number(char* to, int dtype, const aj_value& v);
// Reads a 0-dim tensor in host memory as a number.
aj_value read_number(const aj_tensor* t, double* complex_buffer);

uint64_t plan_estimate_ns(const aj_op* op, const aj_plan& p);
// Calls the kernel for the whole plan, or for parts of it from the pool's threads where that is allowed and worth it.
aj_status* run_plan(const aj_op* op, const Kernel* k, aj_call* call, Device* d, Plan* p);

}  // namespace adjoin
