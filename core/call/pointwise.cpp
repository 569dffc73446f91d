// core/call/pointwise.cpp: ops that compute each element by itself.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/call/copy.hpp"
#include "core/call/output.hpp"
#include "core/call/plan.hpp"
#include "core/call/promote.hpp"
#include "core/op/call.hpp"
#include "core/op/kinds.hpp"
#include "core/op/numbers.hpp"

namespace adjoin {
namespace {

struct Inputs {
  const aj_op* op;
  const aj_value* args;
  Device* device = nullptr;
  aj_tensor* first = nullptr;  // first tensor with dimensions, else first tensor
  bool one_dtype = true;       // every tensor has it
  bool alike = true;           // every tensor dense, of one shape and dtype, on one device
};

// What is given to be written, if anything is.
struct Target {
  aj_tensor* tensor;
  bool is_first;  // it is the first argument of an op that has no result of its own
};

inline void look(Inputs* in, aj_tensor* t) {
  if (!in->first) {
    in->first = t;
    in->device = device(t);
    in->alike = is_dense(t);
    return;
  }
  const aj_tensor* f = in->first;
  in->one_dtype &= priv(t).dtype == priv(f).dtype;
  in->alike = in->alike && alike(t, f, priv(f).dtype, in->device);
  // Of two numbers the one that is not in host memory says the device, as in device_of.
  bool stays = f->dl.ndim || (!t->dl.ndim && (device(t) == in->device || !in->device->host()));
  if (!stays) in->first = t, in->device = device(t);
}

// Looks at the operands; *numbers: some are no tensors.
[[gnu::always_inline]] inline Target find_operands(Inputs* in, const aj_value& given,
                                                   bool* numbers) {
  const aj_op* op = in->op;
  *numbers = false;
  for (int i = 0; i < op->noperands; i++) {
    const aj_value& v = in->args[op->operands[i]];
    if (v.tag == AJ_TENSOR)
      look(in, v.v.tensor);
    else
      *numbers = true;
  }
  const bool is_first = op->schema.result_is_first;
  aj_tensor* target = is_first                 ? in->args[0].v.tensor
                      : given.tag == AJ_TENSOR ? given.v.tensor
                                               : nullptr;
  bool by_target =
      is_first || (target && in->first && in->first->dl.ndim == 0 && target->dl.ndim != 0);
  if (by_target) in->device = device(target);
  return {target, is_first};
}

aj_status* broadcast(const Inputs& in, int64_t* shape, int* ndim) {
  int n = 0;
  for (int i = 0; i < in.op->noperands; i++)
    if (in.args[in.op->operands[i]].tag == AJ_TENSOR)
      n = std::max(n, in.args[in.op->operands[i]].v.tensor->dl.ndim);
  std::fill_n(shape, n, 1);
  for (int i = 0; i < in.op->noperands; i++) {
    const aj_value& v = in.args[in.op->operands[i]];
    if (v.tag != AJ_TENSOR) continue;
    const aj_tensor* t = v.v.tensor;
    for (int d = 0; d < t->dl.ndim; d++) {
      int64_t& s = shape[n - t->dl.ndim + d];
      int64_t m = t->dl.shape[d];
      if (m == s || m == 1) continue;
      if (s != 1) {
        std::string shapes;
        for (int j = 0; j < in.op->noperands; j++) {
          const aj_value& w = in.args[in.op->operands[j]];
          if (w.tag == AJ_TENSOR)
            shapes +=
                text(shapes.empty() ? "" : " and ", in.op->schema.params[in.op->operands[j]].name,
                     " is ", adjoin::shape(w.v.tensor));
        }
        return fail(AJ_INVALID_ARGUMENT, in.op->schema.ident,
                    ": shapes cannot be broadcast: ", shapes, ". The size of tensor a (", s,
                    ") must match the size of tensor b (", m, ") at non-singleton dimension ",
                    n - t->dl.ndim + d);
      }
      s = m;
    }
  }
  *ndim = n;
  return nullptr;
}

int promoted(const Inputs& in) {
  const aj_op* op = in.op;
  Promotion p;
  for (int i = 0; i < op->noperands; i++) {
    const aj_value& v = in.args[op->operands[i]];
    uint64_t only = op->schema.params[op->operands[i]].dtypes;
    if (only && !(only & (only - 1))) continue;  // exactly one dtype: a condition, an index
    if (v.tag == AJ_TENSOR)
      p.add(v.v.tensor);
    else if (v.tag != AJ_NONE)
      p.add(v);
  }
  return p.result();
}

// The dtype of the result for one that operands compute in.
int result_dtype(const aj_op* op, const aj_value* args, int* compute) {
  bool keep = op->p_rounding >= 0 && args[op->p_rounding].tag != AJ_NONE;
  bool to_float = op->kind == Kind::unary_float || op->kind == Kind::binary_float;
  if (op->flags & kCountsBool && *compute == AJ_DT_BOOL) *compute = AJ_DT_INT64;
  if (to_float && !keep && dt(*compute).cls <= AJ_CLASS_INTEGER) *compute = default_dtype();
  if (op->kind == Kind::unary_bool || op->kind == Kind::compare) return AJ_DT_BOOL;
  if (op->real_result) return real_of(*compute);
  uint64_t only = op->schema.results[0].dtypes;
  if (only && !(only & (only - 1))) return __builtin_ctzll(only);
  return *compute;
}

[[gnu::always_inline]] inline aj_status* find_dtypes(const Inputs& in, Target target, bool numbers,
                                                     int* compute, int* result) {
  if (target.is_first)
    *compute = priv(target.tensor).dtype;
  else if (in.one_dtype && !numbers && !in.op->fixed_operands)
    *compute = priv(in.first).dtype;
  else
    *compute = promoted(in);
  if (*compute < 0)
    return fail(AJ_WRONG_TYPE, in.op->schema.ident,
                ": the operands' dtypes have no common one; cast with .to(...)");
  *result = target.is_first ? *compute : result_dtype(in.op, in.args, compute);
  return nullptr;
}

// Which of two dimensions is the inner one, by the first operand that tells: < 0 a, > 0 b, 0 nobody
// says.
int inner_of(const int64_t (*strides)[kMaxDims], int nops, std::span<const int64_t> shape, int a,
             int b) {
  for (int i = 0; i < nops; i++) {
    int64_t x = strides[i][a], y = strides[i][b];
    if (x == 0 || y == 0) continue;  // repeated: no order of its own
    if (x != y) return x < y ? -1 : 1;
    if (shape[size_t(a)] > shape[size_t(b)]) return 1;
  }
  return 0;
}

// Strides of a new result: dense, dimensions in the order of the operands' memory. NULL: C order.
const int64_t* kept_order(const Inputs& in, std::span<const int64_t> shape, int64_t* buffer) {
  int64_t strides[kMaxOperands][kMaxDims];
  int order[kMaxDims], n = int(shape.size()), nops = 0;
  for (int i = 0; i < in.op->noperands; i++) {
    const aj_value& v = in.args[in.op->operands[i]];
    if (v.tag != AJ_TENSOR) continue;
    const DLTensor& t = v.v.tensor->dl;
    for (int d = 0; d < n; d++) {
      int own = d - (n - t.ndim);
      strides[nops][d] =
          own < 0 || (t.shape[own] == 1 && shape[size_t(d)] != 1) ? 0 : t.strides[own];
    }
    nops++;
  }
  for (int d = 0; d < n; d++) order[d] = n - 1 - d;  // innermost first
  bool moved = false;
  for (int i = 1; i < n; i++)
    for (int at = i, d = i - 1; d >= 0; d--) {
      int inner = inner_of(strides, nops, shape, order[d], order[at]);
      if (inner < 0) break;
      if (inner == 0) continue;
      std::swap(order[d], order[at]);
      at = d;
      moved = true;
    }
  if (!moved) return nullptr;
  int64_t step = 1;
  for (int d = 0; d < n; d++) {
    buffer[order[d]] = step;
    step *= std::max<int64_t>(1, shape[size_t(order[d])]);
  }
  return buffer;
}

aj_status* refuse_overlap(const Inputs& in, aj_tensor* out) {
  if (overlaps_itself(out) && !writes_one_number(in.op, in.args, 2))
    return fail(AJ_INVALID_ARGUMENT, in.op->schema.ident,
                ": unsupported operation: more than one element of the written-to tensor refers to "
                "a single "
                "memory location: the tensor to write has elements that share memory (an expanded "
                "one?); clone it first");
  for (int i = 0; i < in.op->noperands; i++) {
    const aj_value& v = in.args[in.op->operands[i]];
    if (v.tag == AJ_TENSOR && overlap(v.v.tensor, out) == 2)
      return fail(AJ_INVALID_ARGUMENT, in.op->schema.ident, ": argument '",
                  in.op->schema.params[in.op->operands[i]].name,
                  "' shares part of its memory with the tensor to write; clone it first");
  }
  return nullptr;
}

// A tensor without elements that got a shape may lie over what is read now.
bool grew_over_operands(const Inputs& in, const aj_tensor* out) {
  for (int i = 0; i < in.op->noperands; i++) {
    const aj_value& v = in.args[in.op->operands[i]];
    if (v.tag == AJ_TENSOR && overlap(v.v.tensor, out) == 2) return true;
  }
  return false;
}

// Copies out of the tensor's own memory, as in x[1:] = x[:-1], read everything before the first
// write.
aj_status* copy_of_itself(aj_op* op, const Kernel* head, uint64_t keys, const aj_value* args,
                          uint32_t nargs, aj_value* rets, uint32_t nrets) {
  aj_value apart[3] = {args[0], args[1], nargs > 2 ? args[2] : none()};
  aj_tensor* from = args[1].v.tensor;
  Ref copy;
  AJ_TRY(tensor_new(device(from), dt(priv(from).dtype), shape(from), copy.out()));
  AJ_TRY(copy_into(copy.get(), from));
  apart[1] = value(copy.get());
  return run_planned(op, head, keys, apart, nargs, rets, nrets);
}

struct Temporaries {  // places are made when they are used: most calls use none
  aj_tensor* held[kMaxOperands];
  int n = 0;
  ~Temporaries() {
    while (n) release(held[--n]);
  }
};

// Makes a number fit the dtype that it is going to be one of, as the op's tag says. An unsigned one
// may be given as a negative int.
aj_status* fit_number(const aj_op* op, const Param& p, int dtype, aj_value* v) {
  const DType& to = dt(dtype);
  bool exact = op->flags & kNumbersExact, sign = to.dl.code == kDLInt, fits = true;
  if (v->tag == AJ_COMPLEX) fits = to.cls > AJ_CLASS_FLOAT || v->v.c128[1] == 0;
  if (v->tag == AJ_COMPLEX && fits && to.cls == AJ_CLASS_INTEGER) *v = value(v->v.c128[0]);
  bool wide = to.dl.bits > (sign ? 64 : 32);  // uint64 takes every int, as its bits
  if (to.cls == AJ_CLASS_INTEGER && (v->tag == AJ_FLOAT || (v->tag == AJ_INT && !wide))) {
    int64_t high = int64_t(~0ull >> (64 - to.dl.bits + sign)), low = sign    ? -high - 1
                                                                     : exact ? -high
                                                                             : 0;
    bool whole = v->tag == AJ_INT;
    double f = whole ? 0 : std::trunc(v->v.f), bound = std::ldexp(1, to.dl.bits - sign);
    fits = whole ? v->v.i >= low && v->v.i <= high : f >= (sign ? -bound : 0) && f < bound;
    if (fits && wide) return *v = value(int64_t(uint64_t(f))), nullptr;
    exact |= !fits && p.name == ((whole ? v->v.i > 0 : v->v.f > 0)
                                     ? "min"
                                     : "max");  // no element could be its result
    if (!fits && !exact) return *v = value((whole ? v->v.i > 0 : v->v.f > 0) ? high : low), nullptr;
  }
  if (fits || !exact) return nullptr;
  return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": value cannot be converted to type ",
              to.name, " without overflow: the number does not fit into ", to.name,
              "; give one that does, or a tensor");
}

// A factor that is no operand, as value of x + value * y * z: kernels of whole numbers cut it.
[[gnu::noinline]] aj_status* check_factors(const aj_op* op, const aj_value* args, uint32_t nargs,
                                           int dtype) {
  for (uint32_t i = 0; i < nargs; i++) {
    const Param& p = op->schema.params[i];
    if (p.base != AJ_PARAM_SCALAR || (args[i].tag != AJ_FLOAT && args[i].tag != AJ_COMPLEX))
      continue;
    double f = args[i].tag == AJ_FLOAT ? args[i].v.f : args[i].v.c128[0];
    if (!(std::abs(f) < 0x1p63))
      return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": ", p.name, " is ", f,
                  ", which no whole number of 64 bits is, and the tensors are ", dt(dtype).name,
                  "; give a number that does fit, or cast them");
  }
  return nullptr;
}

// clamp() without bounds, say.
aj_status* nothing_to_do(const aj_op* op) {
  std::string names;
  for (int i = 1; i < op->noperands; i++)
    names += text(i > 1 ? " or " : "", "'", op->schema.params[op->operands[i]].name, "'");
  return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": nothing to do: At least one of ", names,
              " must not be None");
}

// The one dtype that an operand has by itself, as a condition or an index does; -1: the computed
// one.
inline int own_dtype(const aj_op* op, int i) {
  uint64_t only = op->fixed_operands ? op->schema.params[op->operands[i]].dtypes : 0;
  return only && !(only & (only - 1)) ? __builtin_ctzll(only) : -1;
}

// Operand i where it is a number, or absent.
[[gnu::noinline]] aj_status* add_number(const Inputs& in, Plan* p, int i, int compute) {
  const Param& param = in.op->schema.params[in.op->operands[i]];
  aj_value v = in.args[in.op->operands[i]];
  int own = own_dtype(in.op, i);
  double c[2];
  if (v.tag == AJ_NONE) return p->add_absent(i + 1, compute), nullptr;
  if (v.tag == AJ_TENSOR) {  // a 0-dim host tensor joins as the number it holds
    const aj_tensor* t = v.v.tensor;
    AJ_TRY(check_devices(in.op, in.device, &v, 1, in.op->operands[i]));
    p->add_number(i + 1, read_number(t, c), own < 0 ? compute : priv(t).dtype);
    return nullptr;
  }
  if (in.op->flags & kNumberFlags)
    AJ_TRY(fit_number(in.op, param, in.op->writes ? priv(in.args[0].v.tensor).dtype : compute, &v));
  p->add_number(i + 1, v, own < 0 ? compute : own);
  return nullptr;
}

// Fills operands [1, ...): tensors, numbers, absent ones; casts where the kernel does not.
aj_status* add_inputs(const Inputs& in, Plan* p, int compute, bool casts, Temporaries* temps) {
  const int n = in.op->noperands;
  int absent = 0;
  for (int i = 0; i < n; i++) {
    const aj_value& v = in.args[in.op->operands[i]];
    if (__builtin_expect(v.tag != AJ_TENSOR || device(v.v.tensor) != in.device, 0)) {
      if (v.tag == AJ_NONE && ++absent + 1 == n) return nothing_to_do(in.op);
      AJ_TRY(add_number(in, p, i, compute));
      continue;
    }
    aj_tensor* t = v.v.tensor;
    if (!casts && priv(t).dtype != compute && own_dtype(in.op, i) < 0) {
      AJ_TRY(cast_to(t, dt(compute), &t));
      temps->held[temps->n++] = t;
    }
    p->add_tensor(i + 1, t, 0);
  }
  p->plan.nops = uint32_t(n + 1);
  return nullptr;
}

aj_status* no_tensor(const aj_op* op) {
  return fail(AJ_WRONG_TYPE, op->schema.ident,
              ": at least one argument must be a tensor; pass adjoin.tensor(...)");
}

// Tells the frame where the call runs; *k, the first candidate, becomes the one that takes it.
[[gnu::always_inline]] inline aj_status* choose_kernel(const Inputs& in, Target target, int compute,
                                                       Frame* f, const Kernel** k) {
  f->device = in.device;
  f->call.device = in.device->id;
  if (in.device->id.device_type == kMetaType) f->call.flags |= AJ_CALL_META;
  if (target.tensor && in.args[0].tag == AJ_TENSOR && target.tensor == in.args[0].v.tensor)
    f->call.flags |= AJ_CALL_IN_PLACE;
  int work = work_dtype(*k, compute);
  bool only = !(*k)->next && !(*k)->can_run && (!(*k)->dtypes || (*k)->dtypes >> work & 1);
  if (__builtin_expect(only && !settings.deterministic, 1)) return nullptr;
  return pick_kernel(in.op, *k, work, &f->call, k);
}

// Is one dense walk all? So it is in most calls.
[[gnu::always_inline]] inline bool walks_flat(const Inputs& in, Target target, int result) {
  if (target.is_first && !in.first) return is_dense(target.tensor);  // numbers only: a fill
  if (!in.alike || in.op->ordered) return false;
  return !target.tensor || (in.first && device(in.first) == in.device &&
                            may_write(in.op, in.args, target.tensor, in.first, result, in.device));
}

[[gnu::always_inline]] inline aj_status* flat_output(const Inputs& in, Target target, int result,
                                                     Plan* p, Ref* out) {
  aj_tensor* made = target.tensor;
  if (made)
    retain(made);
  else
    AJ_TRY(tensor_new(in.device, dt(result), shape(in.first), &made));
  *out = Ref(made);
  p->add_tensor(0, made, AJ_OPERAND_WRITE);
  p->finish_dense(priv(made).numel);
  return nullptr;
}

// Does the target have the shape that the operands broadcast to? Where it is the first argument,
// the others are broadcast to it, and *full becomes its shape.
aj_status* fit_target(const Inputs& in, Target target, bool in_place,
                      std::span<const int64_t>* full) {
  bool fits = true;
  if (target.is_first) {
    int ndim = int(full->size());
    fits = ndim <= target.tensor->dl.ndim;
    for (int d = 0; fits && d < ndim; d++)
      fits = (*full)[size_t(d)] == 1 ||
             (*full)[size_t(d)] == target.tensor->dl.shape[target.tensor->dl.ndim - ndim + d];
  } else if (in_place) {
    fits = std::ranges::equal(shape(target.tensor), *full);
  }
  if (!fits)
    return fail(AJ_INVALID_ARGUMENT, in.op->schema.ident, ": the tensor to write has shape ",
                shape(target.tensor), ", the operands broadcast to ", *full,
                "; the shapes must agree");
  if (target.is_first) *full = shape(target.tensor);
  return refuse_overlap(in, target.tensor);
}

// *direct: the kernel writes what was given, if something was.
[[gnu::always_inline]] inline aj_status* walked_output(const Inputs& in, Target target, int result,
                                                       bool casts, bool in_place,
                                                       const aj_value& given, Plan* p, Ref* out,
                                                       bool* direct) {
  int64_t dims[kMaxDims], order[kMaxDims];
  int ndim = 0;
  AJ_TRY(broadcast(in, dims, &ndim));
  std::span<const int64_t> full{dims, size_t(ndim)};
  if (target.tensor) AJ_TRY(fit_target(in, target, in_place, &full));
  aj_tensor* made = target.tensor;
  const bool grows = made && priv(made).numel == 0;
  if (target.is_first) {
    retain(made);
  } else {
    const int64_t* strides =
        target.tensor || in.op->ordered ? nullptr : kept_order(in, full, order);
    AJ_TRY(
        prepare_output(in.op, in.device, dt(result), full, strides, given, casts, &made, direct));
    if (grows && *direct && grew_over_operands(in, made)) {
      release(made);
      *direct = false;
      AJ_TRY(tensor_new(in.device, dt(result), full, &made));
    }
  }
  *out = Ref(made);
  p->add_tensor(0, made, AJ_OPERAND_WRITE);
  p->walk(full, int(p->plan.nops));
  if (!in.op->ordered) p->sort_dims(0, int(p->plan.ndim), 0);
  p->coalesce(-1);
  p->finish(in.op->ordered);
  return nullptr;
}

}  // namespace

bool may_write(const aj_op* op, const aj_value* args, const aj_tensor* target,
               const aj_tensor* first, int result, const Device* d) {
  if (!alike(target, first, result, d)) return false;
  for (int i = 0; i < op->noperands; i++) {
    const aj_value& v = args[op->operands[i]];
    if (v.tag != AJ_TENSOR || v.v.tensor == target) continue;
    if (!may_share(v.v.tensor, target)) continue;
    if (place(v.v.tensor) != place(target) || priv(v.v.tensor).dtype != result) return false;
  }
  return true;
}

aj_status* run_planned(aj_op* op, const Kernel* head, uint64_t keys, const aj_value* args,
                       uint32_t nargs, aj_value* rets, uint32_t nrets) {
  if (head->flags & kKernelBody) return run_generic(op, head, keys, args, nargs, rets, nrets);
  // 1. Operands.
  Inputs in{op, args};
  bool numbers;
  const Target target = find_operands(&in, rets[0], &numbers);
  if (op->crosses_devices && in.first) {  // copy_
    if (device(in.first) != in.device) return run_copy_across(args, nargs, rets);
    if (overlap(in.first, target.tensor) == 2 && !overlaps_itself(target.tensor))
      return copy_of_itself(op, head, keys, args, nargs, rets, nrets);
  }
  if (!in.first && !target.is_first) return no_tensor(op);
  if (target.is_first && op->flags & kNumbersExact && in.first && in.first->dl.ndim)
    return fail(
        AJ_INVALID_ARGUMENT, op->schema.ident, ": a tensor of shape ", shape(target.tensor),
        " is filled with one value; value must be a number or a 0-dim tensor, its shape is ",
        shape(in.first));
  // 2. Dtypes: what is computed in, and the result's.
  int compute, result = 0;
  AJ_TRY(find_dtypes(in, target, numbers, &compute, &result));
  if (dt(compute).cls == AJ_CLASS_INTEGER && int(nargs) > op->noperands)
    AJ_TRY(check_factors(op, args, nargs, compute));
  // 3. Kernel.
  Frame f(op, keys, args, nargs, nrets);
  const Kernel* k = head;
  AJ_TRY(choose_kernel(in, target, compute, &f, &k));
  if (k->flags & kKernelBody) return run_generic(op, k, keys, args, nargs, rets, nrets);
  const int work = work_dtype(k, compute);
  const bool casts = k->flags & AJ_KERNEL_CASTS, in_place = f.call.flags & AJ_CALL_IN_PLACE;
  // 4. Plan: what is read.
  Plan p(work);
  Temporaries temps;
  AJ_TRY(add_inputs(in, &p, work, casts, &temps));
  // 5. Output: what is written, and the walk over all.
  Ref out;
  bool direct = true;
  if (__builtin_expect(walks_flat(in, target, result), 1))
    AJ_TRY(flat_output(in, target, result, &p, &out));
  else
    AJ_TRY(walked_output(in, target, result, casts, in_place, rets[0], &p, &out, &direct));
  // 6. Run.
  f.made[0] = value(out.get());
  AJ_TRY(kept_results(op, k, &f.call, &out, 1, run_plan(op, k, &f.call, in.device, &p)));
  if (!direct) {
    AJ_TRY(copy_into(target.tensor, out.get()));
    out = Ref::borrow(target.tensor);
  }
  rets[0] = value(out.take());
  return nullptr;
}

}  // namespace adjoin
