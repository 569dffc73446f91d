// core/call/failure.hpp: what a kernel has done wrong, told with op, plugin and device.
#pragma once
#include "core/op/op.hpp"

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

}  // namespace adjoin
