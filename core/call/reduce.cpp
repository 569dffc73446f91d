// core/call/reduce.cpp: ops that fold dimensions (sum, max, argmax) and ops that run along one
// (cumsum).
#include <algorithm>
#include <cmath>

#include "core/call/copy.hpp"
#include "core/call/output.hpp"
#include "core/call/plan.hpp"
#include "core/op/call.hpp"

namespace adjoin {
namespace {

// Bit d: dimension d is reduced. The dimensions have been wrapped already.
aj_status* reduced_dims(const aj_op* op, const aj_value* args, int ndim, uint64_t* mask) {
  const aj_value v = op->p_dim < 0 ? none() : args[op->p_dim];
  uint64_t all = ndim == 64 ? ~0ull : (1ull << ndim) - 1;
  *mask = 0;
  if (v.tag == AJ_NONE || (v.tag == AJ_INTS && v.aux == 0)) {
    *mask = v.tag == AJ_NONE || op->kind != Kind::reduce_bool
                ? all
                : 0;  // any, all over no dimension: each for itself
    return nullptr;
  }
  uint32_t n = v.tag == AJ_INTS ? v.aux : 1;
  for (uint32_t i = 0; i < n; i++) {
    int64_t d = v.tag == AJ_INTS ? v.v.ints[i] : v.v.i;
    if (*mask >> d & 1)
      return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": dimension ", d,
                  " appears twice in dim");
    *mask |= 1ull << d;
  }
  *mask &= all;
  return nullptr;
}

aj_status* wants_float(const aj_op* op, const aj_tensor* t) {
  return fail(AJ_UNIMPLEMENTED, op->schema.ident, ": input is ", t->dl.dtype,
              ", a floating or complex dtype is needed; cast it, as in .to(adjoin.float32)",
              op->p_dtype >= 0 ? ", or pass dtype=" : "");
}

// What to compute in and what the first result is.
aj_status* dtypes_of(const aj_op* op, const aj_value* args, const aj_tensor* t, int* compute,
                     int* result) {
  int in = priv(t).dtype;
  const DType* asked = op->p_dtype >= 0 && args[op->p_dtype].tag == AJ_DTYPE
                           ? find_dtype(args[op->p_dtype].v.dtype)
                           : nullptr;
  *compute = asked ? asked->index : in;
  switch (op->kind) {
    case Kind::reduce_float:
      if (dt(*compute).cls <= AJ_CLASS_INTEGER) return wants_float(op, t);
      break;
    case Kind::reduce_bool:
      *result = in == AJ_DT_UINT8 ? in : int(AJ_DT_BOOL);
      return nullptr;
    case Kind::reduce_index:
      *result = op->schema.results.size() > 1 ? in : int(AJ_DT_INT64);
      break;
    default:
      if (!asked && op->p_dtype >= 0 && dt(in).cls <= AJ_CLASS_INTEGER) *compute = AJ_DT_INT64;
  }
  if (op->kind != Kind::reduce_index) *result = op->real_result ? real_of(*compute) : *compute;
  if (*compute == AJ_DT_FLOAT16 || *compute == AJ_DT_BFLOAT16) *compute = AJ_DT_FLOAT32;
  return nullptr;
}

aj_status* nothing_to_reduce(const aj_op* op, const aj_value* args, const aj_tensor* t) {
  bool named = op->kind == Kind::reduce_index ||
               (op->kind != Kind::reduce_float && op->p_dim >= 0 && args[op->p_dim].tag != AJ_NONE);
  return fail_kind(AJ_INVALID_ARGUMENT, named ? "IndexError" : "RuntimeError", op->schema.ident,
                   ": input is ", shape(t),
                   ": Expected reduction dim with at least one element: "
                   "a dimension of size 0 has no ",
                   op->schema.ident);
}

// Sum of nothing is 0; the largest of nothing is nothing, and so is the norm that takes it.
bool has_identity(const aj_op* op, const aj_value* args) {
  for (size_t i = 0; op->kind == Kind::reduce_float && i < op->schema.params.size(); i++) {
    if (op->schema.params[i].name != "ord") continue;
    double ord = args[i].tag == AJ_FLOAT ? args[i].v.f
                 : args[i].tag == AJ_INT ? double(args[i].v.i)
                                         : 0;
    return ord >= 0 && ord < HUGE_VAL;
  }
  return op->p_dtype >= 0 || op->kind == Kind::reduce_bool || op->kind == Kind::reduce_float;
}

// Puts the reduced dimensions first (innermost), both groups in the input's memory order unless
// order matters.
void arrange(Plan* p, const aj_tensor* t, uint64_t mask, bool ordered) {
  int n = t->dl.ndim, at = 0, nout = int(p->plan.nout);
  int64_t bytes = dt(priv(t).dtype).bytes;
  for (int pass = 0; pass < 2; pass++)
    for (int d = n - 1; d >= 0; d--) {
      bool reduced = mask >> d & 1;
      if (reduced != (pass == 0)) continue;
      p->sizes[at] = t->dl.shape[d];
      p->strides[nout][at] = t->dl.shape[d] == 1 ? 0 : t->dl.strides[d] * bytes;
      for (int o = 0; o < nout; o++) p->strides[o][at] = d;  // the dimension, to be replaced below
      at++;
    }
  p->plan.nreduced = uint32_t(__builtin_popcountll(mask));
  for (int o = 0; o < nout; o++) {
    const aj_tensor* out = p->ops[o].tensor;
    bool kept_dims = out->dl.ndim == n;
    for (int i = 0; i < at; i++) {
      int d = int(p->strides[o][i]);
      if (mask >> d & 1) {
        p->strides[o][i] = 0;
        continue;
      }
      int od = kept_dims ? d : d - __builtin_popcountll(mask & ((1ull << d) - 1));
      p->strides[o][i] =
          out->dl.shape[od] == 1 ? 0 : out->dl.strides[od] * dt(priv(out).dtype).bytes;
    }
  }
  if (at == 0 || p->plan.nreduced == 0) {  // a 0-dim input reduces one element
    for (int i = at; i > 0; i--) {
      p->sizes[i] = p->sizes[i - 1];
      for (int o = 0; o <= nout; o++) p->strides[o][i] = p->strides[o][i - 1];
    }
    p->sizes[0] = 1;
    for (int o = 0; o <= nout; o++) p->strides[o][0] = 0;
    p->plan.nreduced = 1;
    at++;
  }
  p->plan.ndim = uint32_t(at);
  int border = int(p->plan.nreduced);
  if (!ordered) p->sort_dims(0, border, nout);
  p->sort_dims(border, at, nout);
  p->coalesce(border);
}

aj_status* reduced_shape(const aj_tensor* t, uint64_t mask, bool keepdim, int64_t* out, int* n) {
  *n = 0;
  for (int d = 0; d < t->dl.ndim; d++) {
    bool reduced = mask >> d & 1;
    if (reduced && !keepdim) continue;
    out[(*n)++] = reduced ? 1 : t->dl.shape[d];
  }
  return nullptr;
}

// Sets the frame's device and chooses the kernel; where that one does not cast, *t becomes `cast`,
// which has its dtype.
aj_status* choose(aj_op* op, const Kernel* head, int compute, Frame* f, const Kernel** k,
                  aj_tensor** t, Ref* cast) {
  f->device = device(*t);
  f->call.device = f->device->id;
  if (f->device->id.device_type == kMetaType) f->call.flags |= AJ_CALL_META;
  *k = head;
  bool plain = !head->next && !head->can_run && (!head->dtypes || head->dtypes >> compute & 1) &&
               !settings.deterministic;
  if (!plain) AJ_TRY(pick_kernel(op, head, compute, &f->call, k));
  bool casts =
      (*k)->flags & AJ_KERNEL_CASTS &&
      (compute != AJ_DT_BOOL || op->p_dtype < 0);  // 0.5 is true, as a whole number it is 0
  if (casts || (*k)->flags & kKernelBody || priv(*t).dtype == compute) return nullptr;
  AJ_TRY(cast_to(*t, dt(compute), cast->out()));
  *t = cast->get();
  return nullptr;
}

struct Outputs {
  Ref made[2];
  Ref rounded;  // the first result, where the kernel writes a wider one
  bool direct[2] = {true, true};
};

// A kernel that does not cast writes halves as what it computes in: *made becomes such a tensor.
aj_status* widen(const Kernel* k, int compute, Device* d, std::span<const int64_t> shape,
                 Outputs* outs, aj_tensor** made) {
  int result = priv(*made).dtype;
  if ((k->flags & AJ_KERNEL_CASTS) || (result != AJ_DT_FLOAT16 && result != AJ_DT_BFLOAT16))
    return nullptr;
  outs->rounded = Ref(*made);
  return tensor_new(d, dt(compute), shape, made);
}

aj_status* finish(Outputs* outs, aj_value* rets, uint32_t n) {
  if (outs->rounded.get()) {
    AJ_TRY(copy_into(outs->rounded.get(), outs->made[0].get()));
    outs->made[0] = std::move(outs->rounded);
  }
  for (uint32_t i = 0; i < n; i++) {
    if (!outs->direct[i]) {
      aj_tensor* to = rets[i].v.tensor;
      AJ_TRY(copy_into(to, outs->made[i].get()));
      outs->made[i] = Ref::borrow(to);
    }
  }
  for (uint32_t i = 0; i < n; i++) rets[i] = value(outs->made[i].take());
  return nullptr;
}

}  // namespace

aj_status* run_reduce(aj_op* op, const Kernel* head, uint64_t keys, const aj_value* args,
                      uint32_t nargs, aj_value* rets, uint32_t nrets) {
  if (head->flags & kKernelBody) return run_generic(op, head, keys, args, nargs, rets, nrets);
  aj_tensor* t = args[0].v.tensor;
  uint64_t mask;
  int compute, result = 0, ndim;
  AJ_TRY(reduced_dims(op, args, t->dl.ndim, &mask));
  AJ_TRY(dtypes_of(op, args, t, &compute, &result));
  bool keepdim = op->p_keepdim >= 0 && args[op->p_keepdim].v.i;
  int64_t dims[kMaxDims];
  AJ_TRY(reduced_shape(t, mask, keepdim, dims, &ndim));
  if (priv(t).numel == 0 && !has_identity(op, args)) {
    bool empty = false;
    for (int d = 0; d < t->dl.ndim; d++) empty |= (mask >> d & 1) && t->dl.shape[d] == 0;
    if (empty) return nothing_to_reduce(op, args, t);
  }
  Frame f(op, keys, args, nargs, nrets);
  const Kernel* k;
  Ref cast;
  AJ_TRY(choose(op, head, compute, &f, &k, &t, &cast));
  if (k->flags & kKernelBody) return run_generic(op, k, keys, args, nargs, rets, nrets);
  for (uint32_t i = 0; i < nrets; i++)  // an empty one would change its shape while it is read
    if (rets[i].tag == AJ_TENSOR && rets[i].v.tensor == args[0].v.tensor)
      AJ_TRY(fit_given(op, rets[i].v.tensor, {dims, size_t(ndim)}, &f.call));
  Plan p(compute);
  p.plan.nout = nrets;
  p.plan.nops = nrets + 1;
  Outputs outs;
  for (uint32_t i = 0; i < nrets; i++) {
    aj_tensor* made;
    AJ_TRY(prepare_output(op, f.device, dt(i ? int(AJ_DT_INT64) : result), {dims, size_t(ndim)},
                          nullptr, rets[i], false, &made, &outs.direct[i]));
    if (i == 0) AJ_TRY(widen(k, compute, f.device, {dims, size_t(ndim)}, &outs, &made));
    if (outs.direct[i] && overlap(made, t)) {  // a result that lies in the input waits for its copy
      release(made);
      outs.direct[i] = false;
      AJ_TRY(tensor_new(f.device, dt(i ? int(AJ_DT_INT64) : result), {dims, size_t(ndim)}, &made));
    }
    outs.made[i] = Ref(made);
    p.add_tensor(int(i), made, AJ_OPERAND_WRITE);
    f.made[i] = value(made);
  }
  p.add_tensor(int(nrets), t, 0);
  if (is_dense(t) && t->dl.ndim &&
      __builtin_popcountll(mask) == t->dl.ndim) {  // everything, in one walk
    p.plan.ndim = p.plan.nreduced = 1;
    p.sizes[0] = priv(t).numel;
    for (uint32_t i = 0; i < nrets; i++) p.strides[i][0] = 0;
    p.strides[nrets][0] = dt(priv(t).dtype).bytes;
  } else {
    arrange(&p, t, mask, op->ordered);
  }
  p.finish(op->ordered);
  aj_status* failed = run_plan(op, k, &f.call, f.device, &p);
  AJ_TRY(kept_results(op, k, &f.call, outs.made, nrets, failed));
  return finish(&outs, rets, nrets);
}

aj_status* run_scan(aj_op* op, const Kernel* head, uint64_t keys, const aj_value* args,
                    uint32_t nargs, aj_value* rets, uint32_t nrets) {
  if (head->flags & kKernelBody) return run_generic(op, head, keys, args, nargs, rets, nrets);
  aj_tensor* t = args[0].v.tensor;
  int compute, result = 0;
  AJ_TRY(dtypes_of(op, args, t, &compute, &result));
  Frame f(op, keys, args, nargs, nrets);
  const Kernel* k;
  Ref cast;
  AJ_TRY(choose(op, head, compute, &f, &k, &t, &cast));
  if (k->flags & kKernelBody) return run_generic(op, k, keys, args, nargs, rets, nrets);
  Plan p(compute);
  p.plan.nout = nrets;
  p.plan.nops = nrets + 1;
  Outputs outs;
  bool in_place =
      rets[0].tag == AJ_TENSOR && args[0].tag == AJ_TENSOR && rets[0].v.tensor == args[0].v.tensor;
  for (uint32_t i = 0; i < nrets; i++) {
    aj_tensor* made;
    const DType& type = dt(i ? int(AJ_DT_INT64) : result);
    AJ_TRY(prepare_output(op, f.device, type, shape(t), nullptr, rets[i], false, &made,
                          &outs.direct[i]));
    if (i == 0) AJ_TRY(widen(k, compute, f.device, shape(t), &outs, &made));
    if (outs.direct[i] && overlap(made, t) && !(in_place && priv(made).dtype == compute)) {
      release(made);
      outs.direct[i] = false;
      AJ_TRY(tensor_new(f.device, type, shape(t), &made));
    }
    outs.made[i] = Ref(made);
    p.add_tensor(int(i), made, AJ_OPERAND_WRITE);
    f.made[i] = value(made);
  }
  p.add_tensor(int(nrets), t, 0);
  p.walk(shape(t), int(nrets) + 1);
  int64_t dim = op->p_dim >= 0 && args[op->p_dim].tag == AJ_INT ? args[op->p_dim].v.i : 0;
  int along = t->dl.ndim ? t->dl.ndim - 1 - int(dim) : 0;  // plan dimensions stand innermost first
  for (int i = along; i > 0; i--) {
    std::swap(p.sizes[i], p.sizes[i - 1]);
    for (uint32_t o = 0; o <= nrets; o++) std::swap(p.strides[o][i], p.strides[o][i - 1]);
  }
  p.plan.nreduced = 1;
  p.coalesce(1);
  p.finish(true);
  aj_status* failed = run_plan(op, k, &f.call, f.device, &p);
  AJ_TRY(kept_results(op, k, &f.call, outs.made, nrets, failed));
  return finish(&outs, rets, nrets);
}

}  // namespace adjoin
