// core/call/plan.hpp: the walk over a call's operands. One that is flat is made here; plan.cpp
// broadcasts, orders, coalesces, and cuts for threads.
#pragma once
#include <bit>
#include <cstring>

#include "core/op/kinds.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

void store_number(char* to, int dtype, const aj_value& v);
// Reads a 0-dim tensor in host memory as a number.
aj_value read_number(const aj_tensor* t, double* complex_buffer);

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

// Operands and a walk over them: N at most, of at most D dimensions. Filled in place, each field
// once and whole: a kernel that reads a word which was just written in parts waits for it.
template <int N, int D>
struct Walk {
  aj_plan plan;
  aj_operand ops[N];
  int64_t sizes[D];
  int64_t strides[N][D];
  alignas(16) char numbers[N][16];

  // All but flags, ndim, nops and numel.
  [[gnu::always_inline]] void begin(int compute) {
    plan.struct_size = sizeof plan;
    plan.nout = 1;
    plan.nreduced = 0;
    std::memcpy(&plan.compute, &dt(compute).dl, sizeof plan.compute);
    plan.reserved = {0, 0, 0};
    plan.first_index = 0;
    plan.sizes = sizes;
    plan.ops = ops;
  }
  // An operand; `at` is its place.
  [[gnu::always_inline]] void add_tensor(int at, aj_tensor* t, uint32_t flags) {
    aj_operand& o = ops[at];
    void* data = t->dl.data;
    o.data = data;
    o.strides = strides[at];
    o.tensor = t;
    std::memcpy(&o.dtype, &t->dl.dtype, sizeof o.dtype);
    o.flags =
        flags | (reinterpret_cast<uintptr_t>(data) % 64 ? 0u : uint32_t(AJ_OPERAND_ALIGNED64));
  }
  void add_number(int at, const aj_value& v, int dtype) {
    add_without_tensor(at, numbers[at], dtype);
    store_number(numbers[at], dtype, v);
  }
  void add_absent(int at, int dtype) { add_without_tensor(at, nullptr, dtype); }
  void add_without_tensor(int at, void* data, int dtype) {
    aj_operand& o = ops[at];
    o.data = data;
    o.strides = strides[at];
    o.tensor = nullptr;
    std::memcpy(&o.dtype, &dt(dtype).dl, sizeof o.dtype);
    o.flags = AJ_OPERAND_NUMBER;
  }
  // Every tensor operand is dense: one dimension is all.
  [[gnu::always_inline]] void flat(int64_t numel, bool same_dtype) {
    plan.ndim = 1;
    plan.numel = sizes[0] = numel;
    plan.flags = AJ_PLAN_FLAT | (same_dtype ? uint32_t(AJ_PLAN_SAME_DTYPE) : 0u) | last_is_number();
  }
  uint32_t last_is_number() const {
    const aj_operand& last = ops[plan.nops - 1];
    return !last.tensor && last.data && plan.nops > plan.nout ? uint32_t(AJ_PLAN_LAST_NUMBER) : 0u;
  }
};

struct Plan : Walk<kMaxOperands, kMaxDims> {
  explicit Plan(int compute);
  // Dimensions of `shape`, innermost first. Those of operands are aligned to the right of it.
  void walk(std::span<const int64_t> shape, int nops);
  void sort_dims(int from, int to, int by_operand);
  void coalesce(int from);
  void finish(bool ordered);
  // Instead of walk() and finish(), for tensors that are all dense and of one shape.
  void finish_dense(int64_t numel);
};

inline void Plan::finish_dense(int64_t numel) {
  uint32_t want = std::bit_cast<uint32_t>(plan.compute), different = 0;
  for (uint32_t i = 0; i < plan.nops; i++) {
    strides[i][0] = ops[i].tensor ? ops[i].dtype.bits / 8 : 0;
    if (ops[i].tensor) different |= std::bit_cast<uint32_t>(ops[i].dtype) ^ want;
  }
  flat(numel, different == 0);
}

uint64_t plan_estimate_ns(const aj_op* op, const aj_plan& p);
// Calls the kernel for the whole plan, or for parts of it from the pool's threads where that is
// allowed and worth it.
aj_status* run_plan(const aj_op* op, const Kernel* k, aj_call* call, Device* d, Plan* p);

}  // namespace adjoin
