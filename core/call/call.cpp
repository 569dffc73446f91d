// core/call/call.cpp: the life of a call: keys, kernel, run, record. Everything rare stands in
// slow.cpp.
#include "core/op/call.hpp"

#include <utility>

#include "core/base/marks.hpp"
#include "core/call/failure.hpp"
#include "core/call/order.hpp"
#include "core/call/slow.hpp"
#include "core/op/kinds.hpp"
#include "core/op/registry.hpp"
#include "core/tape/record.hpp"

namespace adjoin {
namespace {

// The OR of the tensors' keys, and of their flags; *odd becomes other than 0 if an argument needs a
// conversion.
inline uint64_t look_at(const aj_op* op, const aj_value* args, uint32_t nargs, uint32_t* flags,
                        uint32_t* odd) {
  uint64_t keys = 0;
  uint32_t all = 0, tensors = 0, bad = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    const aj_value& v = args[i];
    if (v.tag == AJ_TENSOR) {
      tensors |= 1u << i;
      keys |= v.v.tensor->keys;
      all |= v.v.tensor->obj.flags;
      continue;
    }
    bad |= ~op->tags_ok[i] & tag_bit(v.tag);
    if (__builtin_expect(v.tag != AJ_TENSORS, 1)) continue;
    for (uint32_t j = 0; j < v.aux; j++)
      if (const aj_tensor* t = v.v.tensors[j]) {
        keys |= t->keys;
        all |= t->obj.flags;
      }
  }
  *flags = all;
  *odd = bad | (tensors & ~op->takes_tensor);
  return keys;
}

// How many dimensions args[0] lets others count; 0: look closer.
int64_t dims_of_first(const aj_op* op, const aj_value* args) {
  if (args[0].tag == AJ_TENSOR) return args[0].v.tensor->dl.ndim + op->dim_extra;
  if (args[0].tag != AJ_TENSORS || !args[0].aux || !args[0].v.tensors[0]) return 0;
  return args[0].v.tensors[0]->dl.ndim + op->dim_extra;
}

// Few arguments where nothing but dimensions that count from the end is to be changed: the
// commonest look.
struct CountedBack {
  static constexpr uint32_t kMost = 6;
  aj_value args[kMost];
  int64_t ints[kMost];
  CountedBack() {}  // nothing is initialised
  bool take(const aj_op* op, const aj_value* from, uint32_t nargs) {
    int64_t ndim = (from[0].tag == AJ_TENSOR ? from[0].v.tensor->dl.ndim : dims_of(from, nargs)) +
                   op->dim_extra;
    if (op->checks_dtypes || nargs > kMost || ndim == 0) return false;
    for (uint32_t i = 0; i < nargs; i++) copy_value(&args[i], from[i]);
    auto front = [ndim](int64_t* d) {
      if (*d < 0) *d += ndim;
      return uint64_t(*d) < uint64_t(ndim);
    };
    uint32_t used = 0;
    for (uint32_t left = op->dim_params; left; left &= left - 1) {
      aj_value& v = args[__builtin_ctz(left)];
      if (v.tag == AJ_INT && !front(&v.v.i)) return false;
      if (v.tag != AJ_INTS) continue;
      if (v.aux > kMost - used) return false;
      int64_t* to = ints + used;
      for (uint32_t j = 0; j < v.aux; j++)
        if (!front(&(to[j] = v.v.ints[j]))) return false;
      v.v.ints = to;
      used += v.aux;
    }
    for (uint32_t left = op->size_params; left; left &= left - 1)
      if (const aj_value& v = args[__builtin_ctz(left)]; v.tag == AJ_INT && v.v.i < 0) return false;
    return true;
  }
};

// Dimensions that count from the front and are there, sizes that are not negative, and tensors of
// the dtypes asked for: nothing is to be changed.
[[gnu::always_inline]] inline bool is_settled(const aj_op* op, const aj_value* args,
                                              uint32_t nargs) {
  for (uint32_t left = op->size_params; left; left &= left - 1) {
    const aj_value& v = args[__builtin_ctz(left)];
    if (v.tag == AJ_INT && v.v.i < 0) return false;
  }
  if (op->dim_params) {
    auto ndim = uint64_t(dims_of_first(op, args));
    for (uint32_t left = op->dim_params; left; left &= left - 1) {
      const aj_value& v = args[__builtin_ctz(left)];
      if (v.tag == AJ_INT && uint64_t(v.v.i) >= ndim) return false;
      if (v.tag == AJ_INTS)
        for (uint32_t j = 0; j < v.aux; j++)
          if (uint64_t(v.v.ints[j]) >= ndim) return false;
    }
  }
  if (op->checks_dtypes)
    for (uint32_t i = 0; i < nargs; i++) {
      if (args[i].tag == AJ_TENSORS) return false;
      if (args[i].tag == AJ_TENSOR && !(op->dtypes_ok[i] >> priv(args[i].v.tensor).dtype & 1))
        return false;
    }
  return true;
}

// Whose results are being allocated: for the report of who owns memory.
struct Running {
  const aj_op* before = tls.running_op;
  // Said before the table is read: whoever unmaps a plugin looks at it (core/thread/quiet.cpp).
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
  if (!may_copy(op, args, nargs)) return failed;
  aj_status* s = missing_kernel(op, args, nargs, rets, nrets);
  if (s && s->code == AJ_UNIMPLEMENTED) std::swap(s, failed);
  free_status(failed);
  return s;
}

inline aj_status* serve(aj_op* op, const Kernel* k, const aj_value* args, uint32_t nargs,
                        aj_value* rets, uint32_t nrets) {
  aj_status* s = run_of(op)(op, k, 0, args, nargs, rets, nrets);
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
  AJ_MARK(keys);
  if (__builtin_expect(!rec, 1)) {
    aj_status* s = serve(op, k, args, nargs, rets, nrets);
    AJ_MARK(leave);
    return s;
  }
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
  AJ_MARK(leave);
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

aj_status* call_counted_back(aj_op* op, uint64_t keys, uint32_t flags, const aj_value* args,
                             uint32_t nargs, aj_value* rets, uint32_t nrets);

// What a call is once nothing about its arguments is to be changed.
[[gnu::always_inline]] inline aj_status* call_ready(aj_op* op, uint64_t keys, uint32_t flags,
                                                    const aj_value* args, uint32_t nargs,
                                                    aj_value* rets, uint32_t nrets) {
  keys = keys_now(op, keys);
  // One backend, nothing recorded, nothing above it, a new result, in the order that users see.
  bool plain = keys && !(keys & (keys - 1)) && !(keys >> 24) && nrets == 1 &&
               rets[0].tag == AJ_NONE && !op->writes && !(flags & AJ_TENSOR_FREE_ORDER);
  Running running(op);
  const Kernel* k =
      plain ? op->table[__builtin_ctzll(keys)].load(std::memory_order_acquire) : nullptr;
  if (__builtin_expect(!k, 0)) {
    if (!plain || op->kind != Kind::view)
      return call_keys(op, keys, flags, args, nargs, rets, nrets);
    k = &op->body_kernel;  // its shape is all
  }
  AJ_MARK(keys);
  aj_status* s = serve(op, k, args, nargs, rets, nrets);
  AJ_MARK(leave);
  return s;
}

}  // namespace

aj_status* call(const aj_op* const_op, const aj_value* args, uint32_t nargs, aj_value* rets,
                uint32_t nrets) try {
  AJ_MARK(before);
  aj_op* op = const_cast<aj_op*>(const_op);
  if (__builtin_expect(nargs > op->nparams, 0))
    return call_settled(op, 0, 0, args, nargs, rets, nrets);  // which refuses
  uint32_t flags, odd;
  uint64_t keys = look_at(op, args, nargs, &flags, &odd);
  if (__builtin_expect((flags & AJ_TENSOR_VIEW) && !tls.grad_off, 0))
    AJ_TRY(refresh_views(args, nargs, &keys));
  bool complete = nargs == op->nparams && nrets == op->nresults;
  if (__builtin_expect(!complete || odd, 0))
    return call_settled(op, keys, flags, args, nargs, rets, nrets);
  if (op->has_look && __builtin_expect(!is_settled(op, args, nargs), 0))
    return call_counted_back(op, keys, flags, args, nargs, rets, nrets);
  return call_ready(op, keys, flags, args, nargs, rets, nrets);
} catch (const std::bad_alloc&) {
  return make_status(
      AJ_OUT_OF_MEMORY, {},
      text(const_op->schema.ident, ": the system has no memory for what libadjoin itself needs"));
}

namespace {

[[gnu::noinline]] aj_status* call_counted_back(aj_op* op, uint64_t keys, uint32_t flags,
                                               const aj_value* args, uint32_t nargs, aj_value* rets,
                                               uint32_t nrets) {
  CountedBack back;
  if (!back.take(op, args, nargs)) return call_settled(op, keys, flags, args, nargs, rets, nrets);
  return call_ready(op, keys, flags, back.args, nargs, rets, nrets);
}

}  // namespace

aj_status* redispatch(const aj_op* const_op, uint64_t given, const aj_value* args, uint32_t nargs,
                      aj_value* rets, uint32_t nrets) {
  aj_op* op = const_cast<aj_op*>(const_op);
  Settled settled;
  AJ_TRY(settle_arguments(op, &args, &nargs, nrets, &settled));
  uint32_t flags, odd;
  uint64_t now =
      look_at(op, args, nargs, &flags, &odd);  // the caller may have put other tensors in
  uint64_t keys = ((now & (kBackendKeys | kWrapKey)) |
                   (given & (now | tls.include | kAutogradKey) & kFunctionalKeys)) &
                  op->mask.load();
  if (!(now & kAutogradKey)) keys &= ~kAutogradKey;
  return call_keys(op, keys, flags, args, nargs, rets, nrets);
}

}  // namespace adjoin
