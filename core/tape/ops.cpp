// core/tape/ops.cpp: the tape's own calls; they are dispatched, so they record when recording
// is on.
#include "core/tape/ops.hpp"

#include <algorithm>

#include "core/tape/wrap.hpp"

namespace adjoin::tape {
namespace {

Op op_add("add"), op_copy("copy_"), op_fill("fill_"), op_clone("clone"), op_to("to"),
    op_real("real"), op_reshape("reshape"), op_sum("sum"), op_strided("as_strided"),
    op_isnan("isnan"), op_any("any");

}  // namespace

aj_status* Op::run(std::span<const aj_value> args, aj_tensor** out, aj_tensor* into) {
  const aj_op* op = op_.load(std::memory_order_acquire);
  if (__builtin_expect(!op, 0)) {
    op = find_op(name_);
    if (!op)
      return fail(AJ_INTERNAL, "autograd: there is no op '", name_, "', which backward needs");
    op_.store(op, std::memory_order_release);
  }
  aj_value ret = value(into);
  AJ_TRY(call(op, args.data(), uint32_t(args.size()), &ret, 1));
  if (out) {
    *out = ret.v.tensor;
  } else {
    release(ret.v.tensor);
  }
  return nullptr;
}

aj_status* add(aj_tensor* a, aj_tensor* b, aj_tensor** out) {
  return op_add.run({value(a), value(b), value(int64_t(1))}, out);
}
aj_status* add_into(aj_tensor* a, aj_tensor* b) {
  return op_add.run({value(a), value(b), value(int64_t(1))}, nullptr, a);
}
aj_status* copy_into(aj_tensor* to, aj_tensor* from) {
  return op_copy.run({value(to), value(from)}, nullptr, to);
}
aj_status* zero(aj_tensor* t) { return op_fill.run({value(t), value(int64_t(0))}, nullptr, t); }
aj_status* clone(aj_tensor* t, aj_tensor** out) { return op_clone.run({value(t)}, out); }
aj_status* cast(aj_tensor* t, int dtype, aj_tensor** out) {
  return op_to.run({value(t), value(dt(dtype))}, out);
}
aj_status* real(aj_tensor* t, aj_tensor** out) { return op_real.run({value(t)}, out); }

aj_status* reshape(aj_tensor* t, std::span<const int64_t> shape, aj_tensor** out) {
  return op_reshape.run({value(t), value(shape)}, out);
}

aj_status* sum(aj_tensor* t, std::span<const int64_t> dims, bool keep, aj_tensor** out) {
  return op_sum.run({value(t), value(dims), value(keep)}, out);
}

bool expands_to(std::span<const int64_t> small, std::span<const int64_t> big) {
  if (small.size() > big.size()) return false;
  size_t lead = big.size() - small.size();
  for (size_t i = 0; i < small.size(); i++)
    if (small[i] != 1 && small[i] != big[i + lead]) return false;
  return true;
}

aj_status* sum_to(aj_tensor* t, std::span<const int64_t> shape, aj_tensor** out) {
  std::span<const int64_t> from = adjoin::shape(t);
  size_t lead = from.size() - shape.size();
  int64_t dims[kMaxDims];
  size_t n = 0;
  for (size_t i = 0; i < from.size(); i++)
    if (i < lead || (shape[i - lead] == 1 && from[i] != 1)) dims[n++] = int64_t(i);
  if (n == 0) return retain(t), *out = t, nullptr;
  Ref summed;
  bool keep = lead == 0;
  AJ_TRY(sum(t, {dims, n}, keep, summed.out()));
  if (!keep && summed->dl.ndim != int32_t(shape.size())) return reshape(summed.get(), shape, out);
  *out = summed.take();
  return nullptr;
}

aj_status* strided(aj_tensor* t, std::span<const int64_t> shape, std::span<const int64_t> strides,
                   int64_t offset, aj_tensor** out) {
  int64_t begin = (place(t) - static_cast<char*>(storage(t).data)) / dt(priv(t).dtype).bytes;
  return op_strided.run({value(t), value(shape), value(strides), value(begin + offset)}, out);
}

aj_status* filled(Device* d, int dtype, std::span<const int64_t> shape, double number,
                  aj_tensor** out) {
  Ref made;
  AJ_TRY(tensor_new(d, dt(dtype), shape, made.out()));
  NoGrad off;
  AJ_TRY(op_fill.run({value(made.get()), value(number)}, nullptr, made.get()));
  *out = made.take();
  return nullptr;
}

aj_status* zeros_for(aj_tensor* g, int dtype, std::span<const int64_t> shape, aj_tensor** out) {
  if (is_strided(g)) return filled(device(g), dtype, shape, 0, out);
  static Op op_zeros("new_zeros");
  NoGrad off;
  return op_zeros.run({value(g), value(shape), value(dt(dtype))}, out);
}

aj_status* has_nan(aj_tensor* t, bool* out) {
  NoGrad off;
  Ref each, any;
  AJ_TRY(op_isnan.run({value(t)}, each.out()));
  AJ_TRY(op_any.run({value(each.get())}, any.out()));
  AJ_TRY(settle_memory(any.get(), "isnan"));
  uint8_t byte = 0;
  Device* d = device(any.get());
  AJ_TRY(device_synchronize(d));
  Device host = *d;
  host.flags |= AJ_DEV_HOST_MEMORY;
  AJ_TRY(device_copy({&host, &byte, 0}, bytes_of(any.get()), 1));
  *out = byte != 0;
  return nullptr;
}

}  // namespace adjoin::tape
