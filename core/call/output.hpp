// core/call/output.hpp: devices, kernels and results of a call.
#pragma once
#include "core/call/frame.hpp"

namespace adjoin {

// The device that serves: that of the tensors, else of a device argument, else the default.
aj_status* device_of(const aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                     Device** out);
// All tensors must be on d; 0-dim host tensors may join, `moved` then holds their copies.
// args are those of the parameters from `first` on.
aj_status* check_devices(const aj_op* op, Device* d, const aj_value* args, uint32_t nargs,
                         uint32_t first = 0);

// The dtype of the first tensor; -1 where there is none.
inline int compute_dtype(const aj_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR) return priv(args[i].v.tensor).dtype;
    if (args[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (args[i].v.tensors[j]) return priv(args[i].v.tensors[j]).dtype;
  }
  return -1;
}

// Picks the first candidate that takes the compute dtype and agrees; the error lists what there is.
aj_status* pick_kernel(const aj_op* op, const Kernel* head, int compute, const aj_call* call,
                       const Kernel** out);
// A candidate whose can_run looks at more than the signature is asked once the plan is there, where
// the kind has one.
inline bool asked_with_plan(const aj_op* op, const Kernel* k) {
  return (k->flags & AJ_KERNEL_CALL_DEPENDENT) && k->can_run && op->kind <= Kind::scan;
}

// Calls it, and parks the frontend's lock if it may take long.
aj_status* run_kernel(const aj_op* op, const Kernel* k, aj_call* call, uint64_t estimate_ns);

aj_status* declare(aj_call* call, uint32_t i, DLDataType dtype, int32_t ndim, const int64_t* shape,
                   const int64_t* strides);
aj_status* declare_view(aj_call* call, uint32_t i, uint32_t count, uint32_t arg, DLDataType dtype,
                        int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset);

aj_status* check_cast(const aj_op* op, int from,
                      const aj_tensor* given);  // may the result be cast to what is to be written?
// A given tensor must have the result's shape; an empty one gets it, but not one that the call
// writes in place.
aj_status* fit_given(const aj_op* op, aj_tensor* given, std::span<const int64_t> shape,
                     const aj_call* call = nullptr);

// May the kernel write the given tensor while it reads the operands, element by element, as it
// would write a new one of the shape of `first`? (pointwise.cpp)
bool may_write(const aj_op* op, const aj_value* args, const aj_tensor* target,
               const aj_tensor* first, int result, const Device* d);
// An output of this shape: new, or the given one checked (and resized when it is empty). `direct`
// says that the kernel may write it; otherwise *out is a new tensor to be copied into the given one
// afterwards.
aj_status* prepare_output(const aj_op* op, Device* d, const DType& dtype,
                          std::span<const int64_t> shape, const int64_t* strides,
                          const aj_value& given, bool casts, aj_tensor** out, bool* direct);

}  // namespace adjoin
