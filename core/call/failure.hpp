// core/call/failure.hpp: what a kernel has done wrong, told with op, plugin and device.
#pragma once
#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* kernel_threw(const aj_op* op, const Kernel* k,
                        const aj_call* call);  // in a handler: what it let out, as an error
aj_status* kernel_failed(const aj_op* op, const Kernel* k, const aj_call* call, aj_status* steal);
aj_status* kernel_declines(const aj_op* op, const Kernel* k,
                           const aj_call* call);  // by can_run, asked with the plan
aj_status* nobody_takes(const aj_op* op, const Kernel* head, int compute,
                        const aj_call* call);             // every candidate has declined
aj_status* leads_back(const aj_op* op, const Kernel* k);  // to itself, until the stack ends
aj_status* infer_failed(const aj_op* op, aj_status* steal);
bool agrees(const Kernel* k, const aj_call* call);  // its can_run; one that throws declines
// Was the call declined? *by is the kernel that did, after which others may follow; NULL: there is
// no other.
bool is_declined(const aj_status* s, const Kernel** by);
// Every result is there and of its declared type; else an error, and *made is empty.
aj_status* wrong_results(const aj_op* op, const Kernel* k, const aj_call* call, aj_value* made,
                         uint32_t n);
inline aj_status* check_results(const aj_op* op, const Kernel* k, const aj_call* call,
                                aj_value* made, uint32_t n) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < n; i++)
    bad |= (tag_bit(made[i].tag) & ~op->results_ok[i]) |
           (made[i].tag == AJ_TENSOR && !made[i].v.tensor) | (made[i].tag == AJ_OBJECT);
  return __builtin_expect(bad != 0, 0) ? wrong_results(op, k, call, made, n) : nullptr;
}

// After a kernel with a plan, which writes the tensors that are there. Where it put another one,
// the one that was there is gone, by the rule of who owns a ret, and nobody has filled what was
// asked for.
aj_status* other_results(const aj_op* op, const Kernel* k, aj_call* call, Ref* outs, uint32_t n,
                         aj_status* steal);
inline aj_status* kept_results(const aj_op* op, const Kernel* k, aj_call* call, Ref* outs,
                               uint32_t n, aj_status* steal) {
  bool kept = true;
  for (uint32_t i = 0; i < n; i++)
    kept &= call->rets[i].tag == AJ_TENSOR && call->rets[i].v.tensor == outs[i].get();
  return __builtin_expect(kept, 1) ? steal : other_results(op, k, call, outs, n, steal);
}

}  // namespace adjoin
