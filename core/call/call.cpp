// core/call/call.cpp: the life of a call: keys, kernel, run, record; and the way of a pointwise op
// on few elements, straight to its kernel. Everything rare stands in slow.cpp.
#include "core/op/call.hpp"

#include <utility>

#include "core/base/marks.hpp"
#include "core/call/elsewhere.hpp"
#include "core/call/failure.hpp"
#include "core/call/look.hpp"
#include "core/call/order.hpp"
#include "core/call/output.hpp"
#include "core/memory/capture.hpp"
#include "core/op/kinds.hpp"
#include "core/op/registry.hpp"
#include "core/tape/record.hpp"

namespace adjoin {
namespace {

// The arguments together: keys and flags of all tensors; odd: one is not what its parameter takes.
struct Look {
  uint64_t keys = 0;
  uint32_t flags = 0, odd = 0;
  [[gnu::always_inline]] Look(const aj_op* op, const aj_value* args, uint32_t nargs) {
    for (uint32_t i = 0; i < nargs; i++) {
      const aj_value& v = args[i];
      if (v.tag == AJ_TENSOR) add(v.v.tensor);
      odd |= ~op->tags_ok[i] & (v.tag == AJ_TENSOR ? tag_bit(AJ_TENSOR) : tag_bit(v.tag));
      if (__builtin_expect(v.tag == AJ_TENSORS, 0)) add_list(v, op->schema.params[i]);
    }
  }
  [[gnu::always_inline]] void add(const aj_tensor* t) {
    if (__builtin_expect(!t, 0)) return void(odd = 1);
    keys |= t->keys, flags |= t->obj.flags;
  }
  void add_list(const aj_value& v, const Param& p);
};

[[gnu::always_inline]] inline void Look::add_list(const aj_value& v, const Param& p) {
  if (!v.v.tensors && v.aux) odd = 1;
  for (uint32_t j = 0; v.v.tensors && j < v.aux; j++)
    if (v.v.tensors[j] || !(p.flags & AJ_PARAM_OPTIONAL_ITEMS)) add(v.v.tensors[j]);
}

// Whose results are being allocated: for the report of who owns memory. Said before the table is
// read: whoever unmaps a plugin looks at it (core/thread/quiet.cpp).
struct Running {
  const aj_op* before = tls.running_op;
  explicit Running(const aj_op* op) {
    __atomic_store_n(&tls.running_op, op, __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Running() { __atomic_store_n(&tls.running_op, before, __ATOMIC_RELEASE); }
};

inline RunFn run_of(const aj_op* op) { return op->run.load(std::memory_order_relaxed); }

// Served elsewhere, or an error; recorded as the op that it is.
[[gnu::cold, gnu::noinline]] aj_status* without_kernel(aj_op* op, const aj_value* args,
                                                       uint32_t nargs, aj_value* rets,
                                                       uint32_t nrets, bool rec) {
  AJ_TRY(missing_kernel(op, args, nargs, rets, nrets));
  return rec ? record(op, op->vjp.load(std::memory_order_acquire), args, nargs, rets, nrets)
             : nullptr;
}

// A kernel declined the call, by can_run or, before it wrote anything, by AJ_UNIMPLEMENTED: the
// next one serves, or it is as if there were none. Nobody does: the first one's word stands.
[[gnu::cold, gnu::noinline]] aj_status* after_failure(aj_op* op, const aj_value* args,
                                                      uint32_t nargs, aj_value* rets,
                                                      uint32_t nrets, aj_status* failed) {
  NoGrad off;  // the next may be the body
  const Kernel* by;
  for (aj_status* s = failed; s;) {
    if (!is_declined(s, &by)) {
      if (s != failed) free_status(failed);
      return s;
    }
    if (s != failed) free_status(s);
    if (!by || !by->next) break;
    s = run_of(op)(op, by->next, 0, args, nargs, rets, nrets);
    if (!s) return free_status(failed), nullptr;
  }
  if (aj_status * s; call_wider(op, args, nargs, rets, nrets, &s)) return free_status(failed), s;
  if (!may_copy(op, args, nargs)) return failed;
  aj_status* s = missing_kernel(op, args, nargs, rets, nrets);
  if (s && s->code == AJ_UNIMPLEMENTED) std::swap(s, failed);
  free_status(failed);
  return s;
}

inline aj_status* serve(aj_op* op, const Kernel* k, const aj_value* args, uint32_t nargs,
                        aj_value* rets, uint32_t nrets) {
  AJ_MARK(keys);
  aj_status* s = run_of(op)(op, k, 0, args, nargs, rets, nrets);
  AJ_MARK(leave);
  return __builtin_expect(!s, 1) ? nullptr : after_failure(op, args, nargs, rets, nrets, s);
}

// Runs on the backend; `keys` holds backend bits only. Recording is decided.
aj_status* run(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets,
               uint32_t nrets, bool rec) {
  Running running(op);
  if (__builtin_expect((keys & (keys - 1)) != 0, 0)) {
    AJ_TRY(one_backend(op, args, nargs, &keys));
  } else if (__builtin_expect(keys == 0, 0)) {
    AJ_TRY(backend_without_tensors(op, args, nargs, &keys));
  }
  int bit = 63 - __builtin_clzll(keys);
  const Kernel* k = op->table[bit].load(std::memory_order_acquire);
  if (__builtin_expect(!k, 0)) {
    k = op->kind == Kind::view ? &op->body_kernel : resolve(op, bit);
    if (!k) return without_kernel(op, args, nargs, rets, nrets, rec);
  }
  if (__builtin_expect(!rec, 1)) return serve(op, k, args, nargs, rets, nrets);
  if (op->kind == Kind::view && op->infer) {
    AJ_TRY(run_of(op)(op, k, 0, args, nargs, rets, nrets));
    bool copied = op->has_body && priv(rets[0].v.tensor).storage !=
                                      priv(args[0].v.tensor).storage;  // its body recorded
    return copied ? nullptr : record_view(op, args, nargs, rets, nrets);
  }
  if (op->has_body && !op->vjp.load(std::memory_order_acquire))  // the body records by itself
    return run_of(op)(op, &op->body_kernel, 0, args, nargs, rets, nrets);
  if (k->flags & kKernelBody) {
    NoGrad off;
    AJ_TRY(run_of(op)(op, k, 0, args, nargs, rets, nrets));
  } else {
    AJ_TRY(serve(op, k, args, nargs, rets, nrets));
  }
  aj_status* s = record(op, op->vjp.load(std::memory_order_acquire), args, nargs, rets, nrets);
  AJ_MARK(record);
  return s;
}

aj_status* run_keeping_order(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                             aj_value* rets, uint32_t nrets, bool rec) {
  return keep_order(op, keys, args, nargs, rets, nrets, rec, run);
}

// A kernel at a key may have passed on a slot with AJ_VALUE_LENT: what comes back there is counted.
inline aj_status* owned(aj_status* s, aj_value* rets, uint32_t nrets) {
  for (uint32_t i = 0; !s && i < nrets; i++)
    if (rets[i].tag == AJ_TENSOR) rets[i].aux = 0;
  return s;
}

[[gnu::noinline]] aj_status* call_keys(aj_op* op, uint64_t keys, uint32_t flags,
                                       const aj_value* args, uint32_t nargs, aj_value* rets,
                                       uint32_t nrets) {
  bool rec = (keys & kAutogradKey) && !tls.grad_off;
  keys &= ~kAutogradKey;
  bool writes = op->writes;
  for (uint32_t i = 0; i < nrets; i++) writes |= rets[i].tag != AJ_NONE;
  if (__builtin_expect(keys >> 24 != 0, 0))
    return owned(boxed(op, keys | (rec ? kAutogradKey : 0), args, nargs, rets, nrets, writes), rets,
                 nrets);
  if (__builtin_expect(flags & AJ_TENSOR_FREE_ORDER, 0)) {
    if (!keeps_order(op, args, nargs))
      AJ_TRY(settle_orders(args, nargs));
    else if (writes)
      return owned(call_writing(op, keys, args, nargs, rets, nrets, rec, run_keeping_order), rets,
                   nrets);
    else
      return run_keeping_order(op, keys, args, nargs, rets, nrets, rec);
  }
  if (__builtin_expect(writes, 0))
    return owned(call_writing(op, keys, args, nargs, rets, nrets, rec, run), rets, nrets);
  return run(op, keys, args, nargs, rets, nrets, rec);
}

inline uint64_t keys_now(const aj_op* op, uint64_t keys) {
  return (keys | tls.include) & ~tls.exclude & op->mask.load(std::memory_order_relaxed);
}

// Arguments that need a conversion, a default or a look.
[[gnu::noinline]] aj_status* call_settled(aj_op* op, uint64_t keys, uint32_t flags,
                                          const aj_value* args, uint32_t nargs, aj_value* rets,
                                          uint32_t nrets) {
  Settled settled;
  AJ_TRY(settle_arguments(op, &args, &nargs, nrets, &settled));
  return call_keys(op, keys_now(op, keys), flags, args, nargs, rets, nrets);
}

// An op that is NULL, or more arguments than it has.
[[gnu::cold, gnu::noinline]] aj_status* refused(aj_op* op, const aj_value* args, uint32_t nargs,
                                                aj_value* rets, uint32_t nrets) {
  if (op) return call_settled(op, 0, 0, args, nargs, rets, nrets);
  return fail(AJ_INVALID_ARGUMENT, "call: the op is NULL; was find_op's result looked at?");
}

[[gnu::cold, gnu::noinline]] aj_status* no_memory(const aj_op* op) {
  return make_status(
      AJ_OUT_OF_MEMORY, {},
      text(op->schema.ident, ": the system has no memory for what libadjoin itself needs"));
}

}  // namespace

aj_status* call(const aj_op* const_op, const aj_value* args, uint32_t nargs, aj_value* rets,
                uint32_t nrets) try {
  AJ_MARK(before);
  aj_op* op = const_cast<aj_op*>(const_op);
  if (__builtin_expect(!op || nargs > op->nparams, 0)) return refused(op, args, nargs, rets, nrets);
  Look look(op, args, nargs);
  uint64_t keys = look.keys;  // a place of its own: the rest of what was seen stays in registers
  if (__builtin_expect((look.flags & AJ_TENSOR_VIEW) && !tls.grad_off, 0))
    AJ_TRY(refresh_views(args, nargs, &keys));
  CountedBack back;
  const bool complete = nargs == op->nparams && nrets == op->nresults && !look.odd;
  if (!complete || (op->has_look && !back.settle(op, &args, nargs)))
    return call_settled(op, keys, look.flags, args, nargs, rets, nrets);
  keys = keys_now(op, keys);
  // One backend, nothing recorded, nothing above it, a new result, in the order that users see.
  const bool plain = keys && !(keys & (keys - 1)) && !(keys >> 24) && nrets == 1 &&
                     rets[0].tag == AJ_NONE && !op->writes && !(look.flags & AJ_TENSOR_FREE_ORDER);
  Running running(op);
  const Kernel* k = nullptr;
  if (plain) k = op->table[__builtin_ctzll(keys)].load(std::memory_order_acquire);
  if (plain && !k && op->kind == Kind::view) k = &op->body_kernel;  // its shape is all
  if (__builtin_expect(!k, 0)) return call_keys(op, keys, look.flags, args, nargs, rets, nrets);
  return serve(op, k, args, nargs, rets, nrets);
} catch (const std::bad_alloc&) {
  return no_memory(const_op);
}

namespace {

// Of a device that has threads of its own: as many as may hold the frontend's lock in run_kernel.
inline bool few_of_device(const aj_op* op, const aj_tensor* first) {
  const Device* d = device(first);
  const uint64_t most = uint64_t(op->alike_most) * (d->flags & AJ_DEV_HOST_THREADS ? 1 : 8);
  return uint64_t(priv(first).numel - 1) < most && d->id.device_type != kMetaType;
}

// May the first operand begin a walk over few elements with this kernel?
inline bool begins_few(const aj_op* op, const Kernel* k, const aj_tensor* first) {
  if (!(k->alike >> priv(first).dtype & 1) || !is_dense(first)) return false;
  return __builtin_expect(device(first)->host(), 1)
             ? uint64_t(priv(first).numel - 1) < op->alike_most
             : few_of_device(op, first);
}

// A number beside tensors: an operand of the walk, or one that is absent.
[[gnu::noinline]] bool put_number(Walk<4, 1>* walk, int at, const aj_value& v,
                                  const aj_tensor* first, int work) {
  bool floats =
      dt(priv(first).dtype).cls == AJ_CLASS_FLOAT && !(priv(first).flags & kWrappedNumber);
  if (!floats || (v.tag != AJ_FLOAT && v.tag != AJ_INT && v.tag != AJ_BOOL && v.tag != AJ_NONE))
    return false;
  if (v.tag == AJ_NONE) return walk->add_absent(at, work), true;
  walk->add_number(at, v, work);
  if (uint32_t(at) + 1 == walk->plan.nops) walk->plan.flags |= AJ_PLAN_LAST_NUMBER;
  return true;
}

// Operand `at` as it is given; false: it is not like the first.
[[gnu::always_inline]] inline bool put(Walk<4, 1>* walk, int at, const aj_value& v,
                                       const aj_tensor* first, int work) {
  if (__builtin_expect(v.tag != AJ_TENSOR, 0)) return put_number(walk, at, v, first, work);
  aj_tensor* t = v.v.tensor;
  if (t != first && !alike(t, first, priv(first).dtype, device(first))) return false;
  walk->add_tensor(at, t, 0);
  return true;
}

[[gnu::cold, gnu::noinline]] aj_status* without_result(const aj_op* op, const Kernel* k,
                                                       aj_call* call, aj_tensor* made,
                                                       aj_status* failed) {
  Ref out(made);
  return kept_results(op, k, call, &out, 1, failed);
}

// The tensor that is given to be written, owned; NULL: it is not one for a straight walk.
inline aj_tensor* given(const aj_op* op, const aj_value* args, const aj_value& ret, int result,
                        aj_call* call) {
  const aj_tensor* first = args[0].v.tensor;
  if (!may_write(op, args, ret.v.tensor, first, result, device(first))) return nullptr;
  if (ret.v.tensor == first) call->flags |= AJ_CALL_IN_PLACE;
  retain(ret.v.tensor);
  return ret.v.tensor;
}

}  // namespace

// Few elements of dense tensors that are alike, and numbers beside them: what small networks are
// made of. Nothing is looked for: one walk over one dimension, on this thread or a device's stream.
aj_status* run_pointwise(aj_op* op, const Kernel* k, uint64_t keys, const aj_value* args,
                         uint32_t nargs, aj_value* rets, uint32_t nrets) {
  const aj_tensor* first = args[0].tag == AJ_TENSOR ? args[0].v.tensor : nullptr;
  if (!first || !begins_few(op, k, first))
    return run_planned(op, k, keys, args, nargs, rets, nrets);
  Device* d = device(first);
  const int dtype = priv(first).dtype, work = work_dtype(k, dtype), n = op->noperands;
  const int result = op->alike_bool ? int(AJ_DT_BOOL) : dtype;
  Walk<4, 1> walk;
  walk.begin(work, n + 1, priv(first).numel);
  if (work == dtype && result == dtype) walk.plan.flags = AJ_PLAN_FLAT | AJ_PLAN_SAME_DTYPE;
  if (!put(&walk, 1, args[0], first, work) ||
      (n > 1 && !put(&walk, 2, args[op->operands[1]], first, work)) ||
      (n > 2 && !put(&walk, 3, args[op->operands[2]], first, work)))
    return run_planned(op, k, keys, args, nargs, rets, nrets);
  Frame frame(op, keys, args, nargs, 1);
  frame.device = d;
  frame.call.device = d->id;
  frame.call.stream = d->default_stream;
  frame.call.plan = &walk.plan;
  const bool host = __builtin_expect(d->host(), 1);
  if (!host) AJ_TRY(set_stream(d, &frame.call));
  AJ_MARK(plan);
  aj_tensor* made = nullptr;
  if (__builtin_expect(rets[0].tag == AJ_NONE, 1))
    AJ_TRY(host ? tensor_new_like(first, d, dt(result), &made)
                : tensor_new(d, dt(result), shape(first), &made));
  else if (!(made = given(op, args, rets[0], result, &frame.call)))
    return run_planned(op, k, keys, args, nargs, rets, nrets);
  walk.add_tensor(0, made, AJ_OPERAND_WRITE);
  frame.made[0] = {AJ_TENSOR, 0, {.tensor = made}};
  AJ_MARK(output);
  aj_status* failed = host ? invoke(op, k, &frame.call) : run_kernel(op, k, &frame.call, 0);
  AJ_MARK(kernel);
  const aj_value& left = frame.made[0];
  if (__builtin_expect(failed || left.tag != AJ_TENSOR || left.v.tensor != made, 0))
    return without_result(op, k, &frame.call, made, failed);
  rets[0] = {AJ_TENSOR, 0, {.tensor = made}};
  return nullptr;
}

aj_status* redispatch(const aj_op* const_op, uint64_t given, const aj_value* args, uint32_t nargs,
                      aj_value* rets, uint32_t nrets) {
  aj_op* op = const_cast<aj_op*>(const_op);
  Settled settled;
  AJ_TRY(settle_arguments(op, &args, &nargs, nrets, &settled));
  const Look now(op, args, nargs);  // the caller may have put other tensors in
  uint64_t keys = ((now.keys & (kBackendKeys | kWrapKey)) |
                   (given & (now.keys | tls.include | kAutogradKey) & kFunctionalKeys)) &
                  op->mask.load();
  if (!(now.keys & kAutogradKey)) keys &= ~kAutogradKey;
  return call_keys(op, keys, now.flags, args, nargs, rets, nrets);
}

}  // namespace adjoin
