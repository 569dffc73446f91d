// core/dispatch/kinds.hpp: the ways in which an op is run: pointwise, reduce, scan, view, generic.
#pragma once
#include "core/dispatch/op.hpp"
#include "core/dispatch/settings.hpp"
#include "core/interfaces.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* run_pointwise(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t);
// What run_pointwise does not serve at once.
aj_status* run_planned(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t);
aj_status* run_reduce(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t);
aj_status* run_scan(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t);
aj_status* run_view(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t);
aj_status* run_generic(aj_op*, const Kernel*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t);

aj_status* set_kind(aj_op* op);              // from kind_name
RunFn kind_run(Kind kind);                   // how its ops are run
bool has_own_shapes(const aj_op* op);        // the kind says the shapes, no infer needed
extern const Kernel meta_kernel;             // serves the meta device: shapes were all

constexpr int kMaxOperands = 16;
constexpr int kMaxResults = 8;

// The call as kernels see it, and what the core keeps beside it. `call` stands first: declare() finds the rest from it.
struct Frame {
  aj_call call;
  aj_op* op;
  Device* device;
  aj_value made[kMaxResults];   // what the kernel fills
  aj_value given[kMaxResults];  // out= tensors that must wait for a copy
  std::vector<aj_value>* views; // results of a view op that returns a list
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

// The device that serves: that of the tensors, else of a device argument, else the default.
aj_status* device_of(const aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, Device** out);
// All tensors must be on d; 0-dim host tensors may join, `moved` then holds their copies.
// args are those of the parameters from `first` on.
aj_status* check_devices(const aj_op* op, Device* d, const aj_value* args, uint32_t nargs, uint32_t first = 0);

// The dtype of the first tensor; -1 where there is none.
int compute_dtype(const aj_value* args, uint32_t nargs);

// Picks the first candidate that takes the compute dtype and agrees; the error lists what there is.
aj_status* pick_kernel(const aj_op* op, const Kernel* head, int compute, const aj_call* call, const Kernel** out);
// A candidate whose can_run looks at more than the signature is asked once the plan is there, where the kind has one.
inline bool asked_with_plan(const aj_op* op, const Kernel* k) {
  return (k->flags & AJ_KERNEL_CALL_DEPENDENT) && k->can_run && op->kind <= Kind::scan;
}

// failure.cpp: what a kernel has done wrong, told with op, plugin and device.
aj_status* kernel_threw(const aj_op* op, const Kernel* k, const aj_call* call);  // in a handler: what it let out, as an error
aj_status* kernel_failed(const aj_op* op, const Kernel* k, const aj_call* call, aj_status* steal);
aj_status* kernel_declines(const aj_op* op, const Kernel* k, const aj_call* call);  // by can_run, asked with the plan
aj_status* nobody_takes(const aj_op* op, const Kernel* head, int compute, const aj_call* call);  // every candidate has declined
aj_status* infer_failed(const aj_op* op, aj_status* steal);
bool agrees(const Kernel* k, const aj_call* call);  // its can_run; one that throws declines
// Was the call declined? *by is the kernel that did, after which others may follow; NULL: there is no other.
bool is_declined(const aj_status* s, const Kernel** by);
// Every result is there and of its declared type; else an error, and *made is empty.
aj_status* wrong_results(const aj_op* op, const Kernel* k, const aj_call* call, aj_value* made, uint32_t n);
inline aj_status* check_results(const aj_op* op, const Kernel* k, const aj_call* call, aj_value* made, uint32_t n) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < n; i++)
    bad |= (tag_bit(made[i].tag) & ~op->results_ok[i]) | (made[i].tag == AJ_TENSOR && !made[i].v.tensor) | (made[i].tag == AJ_OBJECT);
  return __builtin_expect(bad != 0, 0) ? wrong_results(op, k, call, made, n) : nullptr;
}

// Calls a kernel, and says so while it runs: see watch.hpp.
inline aj_status* invoke(const aj_op* op, const Kernel* k, aj_call* call) {
  const Kernel* before = tls.running_kernel;
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
// The same, and parks the frontend's lock if it may take long.
aj_status* run_kernel(const aj_op* op, const Kernel* k, aj_call* call, uint64_t estimate_ns);

aj_status* declare(aj_call* call, uint32_t i, DLDataType dtype, int32_t ndim, const int64_t* shape, const int64_t* strides);
aj_status* declare_view(aj_call* call, uint32_t i, uint32_t count, uint32_t arg, DLDataType dtype, int32_t ndim,
                        const int64_t* shape, const int64_t* strides, int64_t offset);

// A given tensor must have the result's shape; an empty one gets it.
aj_status* check_cast(const aj_op* op, int from, const aj_tensor* given);  // may the result be cast to what is to be written?
aj_status* fit_given(const aj_op* op, aj_tensor* given, std::span<const int64_t> shape);

// An output of this shape: new, or the given one checked (and resized when it is empty). `direct` says that the kernel may
// write it; otherwise *out is a new tensor to be copied into the given one afterwards.
aj_status* prepare_output(const aj_op* op, Device* d, const DType& dtype, std::span<const int64_t> shape,
                          const int64_t* strides, const aj_value& given, bool casts, aj_tensor** out, bool* direct);
aj_status* run_copy_across(const aj_value* args, uint32_t nargs, aj_value* rets);  // copy_ between devices
bool arranges_copies(Device* d);                        // has it a kernel for copy_?
aj_status* copy_by_host(aj_tensor* to, aj_tensor* from);  // where one of the devices has none
aj_status* copy_into(aj_tensor* to, aj_tensor* from);  // copy_ without recording
aj_status* cast_to(aj_tensor* t, const DType& dtype, aj_tensor** out);  // without recording

}  // namespace adjoin
