// core/call/alike.cpp: pointwise ops on few elements of dense tensors that are alike, and numbers
// beside them: what small networks are made of. Nothing is looked for: one walk over one dimension,
// on this thread. All else is run_planned's.
#include "core/base/marks.hpp"
#include "core/call/output.hpp"
#include "core/call/plan.hpp"
#include "core/op/call.hpp"

namespace adjoin {
namespace {

constexpr int kOperands = 4;  // the output's and those of an op with alike_classes

// The call and its walk.
struct Straight {
  Frame frame;
  Walk<kOperands, 1> walk;
  Straight(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs)
      : frame(op, keys, args, nargs, 1) {}
};

[[gnu::always_inline]] inline void put_tensor(Straight* s, int at, aj_tensor* t, int dtype,
                                              uint32_t flags) {
  s->walk.add_tensor(at, t, flags);
  s->walk.strides[at][0] = dt(dtype).bytes;
}

bool put_number(Straight* s, int at, const aj_value& v, const aj_tensor* first, int work) {
  bool floats =
      dt(priv(first).dtype).cls == AJ_CLASS_FLOAT && !(priv(first).flags & kWrappedNumber);
  if (!floats || (v.tag != AJ_FLOAT && v.tag != AJ_INT && v.tag != AJ_BOOL && v.tag != AJ_NONE))
    return false;
  if (v.tag == AJ_NONE)
    s->walk.add_absent(at, work);
  else
    s->walk.add_number(at, v, work);
  s->walk.strides[at][0] = 0;
  return true;
}

// Operand `at` as it is given; false: it is not alike.
[[gnu::always_inline]] inline bool put(Straight* s, int at, const aj_value& v,
                                       const aj_tensor* first, Device* d, int work) {
  if (__builtin_expect(v.tag != AJ_TENSOR, 0)) return put_number(s, at, v, first, work);
  int dtype = priv(first).dtype;
  if (v.v.tensor != first && !alike(v.v.tensor, first, dtype, d)) return false;
  put_tensor(s, at, v.v.tensor, dtype, 0);
  return true;
}

inline aj_status* new_result(const aj_tensor* first, Device* d, int dtype, aj_tensor** out) {
  if (__builtin_expect(priv(first).numel * dt(dtype).bytes > int64_t(kInlineBytes), 0))
    return tensor_new(d, dt(dtype), shape(first), out);
  *out = tensor_new_small(first, d, dt(dtype));
  return __builtin_expect(*out != nullptr, 1) ? nullptr : no_tensor_memory();
}

// May the elements be left to one call on this thread? What run_plan would take them for is too
// little to park a frontend's lock or to wake another thread.
inline bool few(const aj_op* op, int64_t numel) {
  return uint64_t(numel - 1) < 4096 &&
         uint64_t(numel) * (uint64_t(op->cost) + 100 * 8 * kOperands) <= 6'000'000;
}

}  // namespace

bool may_write(const aj_op* op, const aj_value* args, const aj_tensor* target,
               const aj_tensor* first, int result, const Device* d) {
  if (!alike(target, first, result, d)) return false;
  for (int i = 0; i < op->noperands; i++) {
    const aj_value& v = args[op->operands[i]];
    if (v.tag != AJ_TENSOR || v.v.tensor == target) continue;
    if (priv(v.v.tensor).storage != priv(target).storage) continue;
    if (place(v.v.tensor) != place(target) || priv(v.v.tensor).dtype != result) return false;
  }
  return true;
}

aj_status* run_pointwise(aj_op* op, const Kernel* k, uint64_t keys, const aj_value* args,
                         uint32_t nargs, aj_value* rets, uint32_t nrets) {
  if (!(k->flags & kKernelPlain) || args[0].tag != AJ_TENSOR)
    return run_planned(op, k, keys, args, nargs, rets, nrets);
  aj_tensor* first = args[0].v.tensor;
  Device* d = device(first);
  const int dtype = priv(first).dtype;
  const int result = op->alike_bool ? int(AJ_DT_BOOL) : dtype;
  bool half = dtype == AJ_DT_FLOAT16 || dtype == AJ_DT_BFLOAT16;
  const int work = half && (k->flags & AJ_KERNEL_CASTS) ? int(AJ_DT_FLOAT32) : dtype;
  if (!(op->alike_classes >> dt(dtype).cls & 1) || !is_dense(first) ||
      first->dl.ndim > kInlineDims || !d->host() || !few(op, priv(first).numel) ||
      (k->dtypes && !(k->dtypes >> work & 1)))
    return run_planned(op, k, keys, args, nargs, rets, nrets);

  Straight s(op, keys, args, nargs);
  s.frame.device = d;
  s.frame.call.device = d->id;
  s.frame.call.stream = d->default_stream;
  s.frame.call.plan = &s.walk.plan;
  put_tensor(&s, 1, first, dtype, 0);
  const uint32_t n = op->noperands;
  if ((n > 1 && !put(&s, 2, args[op->operands[1]], first, d, work)) ||
      (n > 2 && !put(&s, 3, args[op->operands[2]], first, d, work)))
    return run_planned(op, k, keys, args, nargs, rets, nrets);
  s.walk.begin(work);
  s.walk.plan.nops = n + 1;
  s.walk.flat(priv(first).numel, work == dtype && result == dtype);
  aj_tensor* made = nullptr;
  if (__builtin_expect(rets[0].tag != AJ_NONE, 0)) {
    made = rets[0].v.tensor;
    if (!may_write(op, args, made, first, result, d))
      return run_planned(op, k, keys, args, nargs, rets, nrets);
    retain(made);
    if (made == first) s.frame.call.flags |= AJ_CALL_IN_PLACE;
  }
  AJ_MARK(plan);
  if (__builtin_expect(!made, 1)) AJ_TRY(new_result(first, d, result, &made));
  put_tensor(&s, 0, made, result, AJ_OPERAND_WRITE);
  s.frame.made[0].tag = AJ_TENSOR;
  s.frame.made[0].v.tensor = made;
  AJ_MARK(output);
  aj_status* failed = invoke(op, k, &s.frame.call);
  AJ_MARK(kernel);
  if (__builtin_expect(failed != nullptr, 0)) return release(made), failed;
  rets[0].tag = AJ_TENSOR;
  rets[0].aux = 0;
  rets[0].v.tensor = made;
  return nullptr;
}

}  // namespace adjoin
