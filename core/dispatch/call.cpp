// core/dispatch/call.cpp: the life of a call: keys, kernel, run, record. Everything rare stands in call_slow.cpp.
#include "core/dispatch/call.hpp"

#include "core/autograd/record.hpp"
#include "core/dispatch/kinds.hpp"
#include "core/dispatch/registry.hpp"
#include "core/dispatch/slow.hpp"

namespace adjoin {
namespace {

// Keys of all tensors; `ok` turns false if an argument needs a look; `flags` is the OR of the tensors'.
inline uint64_t keys_of(const aj_op* op, const aj_value* args, uint32_t nargs, bool* ok, uint32_t* flags) {
  uint64_t keys = 0;
  uint32_t fits = 1, all = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    fits &= (op->tags_ok[i] & tag_bit(args[i].tag)) != 0;
    if (args[i].tag == AJ_TENSOR) {
      keys |= args[i].v.tensor->keys;
      all |= args[i].v.tensor->obj.flags;
    } else if (args[i].tag == AJ_TENSORS) {
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (const aj_tensor* t = args[i].v.tensors[j]) {
          keys |= t->keys;
          all |= t->obj.flags;
        }
    }
  }
  *ok = fits;
  *flags = all;
  return keys;
}

// Dimensions that count from the front and are there, and tensors of the dtypes asked for: nothing is to be changed.
bool is_settled(const aj_op* op, const aj_value* args, uint32_t nargs) {
  if (args[0].tag != AJ_TENSOR) return false;
  auto ndim = uint64_t(args[0].v.tensor->dl.ndim);
  for (uint32_t left = op->dim_params; left; left &= left - 1) {
    const aj_value& v = args[__builtin_ctz(left)];
    if (v.tag == AJ_INT && uint64_t(v.v.i) >= ndim) return false;
    if (v.tag == AJ_INTS)
      for (uint32_t j = 0; j < v.aux; j++)
        if (uint64_t(v.v.ints[j]) >= ndim) return false;
  }
  if (op->checks_dtypes)
    for (uint32_t i = 0; i < nargs; i++) {
      if (args[i].tag == AJ_TENSORS) return false;
      if (args[i].tag == AJ_TENSOR && !(op->dtypes_ok[i] >> priv(args[i].v.tensor).dtype & 1)) return false;
    }
  return true;
}

// Whose results are being allocated: for the report of who owns memory.
struct Running {
  const aj_op* before = tls.running_op;
  explicit Running(const aj_op* op) { tls.running_op = op; }
  ~Running() { tls.running_op = before; }
};

// Runs on the backend; `keys` holds backend bits only. Recording is decided.
inline aj_status* run(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets, bool rec) {
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
    if (!k) return missing_kernel(op, bit, args, nargs, rets, nrets);
  }
  if (!rec) return op->run(op, k, 0, args, nargs, rets, nrets);
  if (op->kind == Kind::view && op->infer) {
    AJ_TRY(op->run(op, k, 0, args, nargs, rets, nrets));
    bool copied = op->has_body && priv(rets[0].v.tensor).storage != priv(args[0].v.tensor).storage;  // its body recorded
    return copied ? nullptr : record_view(op, args, nargs, rets, nrets);
  }
  if (op->has_body && !op->vjp.load(std::memory_order_acquire))  // the body records by itself
    return op->run(op, &op->body_kernel, 0, args, nargs, rets, nrets);
  if (k->flags & kKernelBody) {
    NoGrad off;
    AJ_TRY(op->run(op, k, 0, args, nargs, rets, nrets));
  } else {
    AJ_TRY(op->run(op, k, 0, args, nargs, rets, nrets));
  }
  return record(op, args, nargs, rets, nrets);
}

aj_status* call_keys(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets) {
  bool rec = (keys & kAutogradKey) && !tls.grad_off;
  keys &= ~kAutogradKey;
  bool writes = op->schema.writes;
  for (uint32_t i = 0; i < nrets; i++) writes |= rets[i].tag != AJ_NONE;
  if (__builtin_expect(keys >> 24 != 0, 0)) return boxed(op, keys | (rec ? kAutogradKey : 0), args, nargs, rets, nrets);
  if (__builtin_expect(writes, 0)) return call_writing(op, keys, args, nargs, rets, nrets, rec, run);
  return run(op, keys, args, nargs, rets, nrets, rec);
}

}  // namespace

aj_status* call(const aj_op* const_op, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets) {
  aj_op* op = const_cast<aj_op*>(const_op);
  Settled settled;
  bool ok = true;
  uint32_t flags = 0;
  uint64_t keys = nargs <= op->nparams ? keys_of(op, args, nargs, &ok, &flags) : 0;
  if (__builtin_expect((flags & AJ_TENSOR_VIEW) && !tls.grad_off, 0)) AJ_TRY(refresh_views(args, nargs, &keys));
  bool fits = ok && nargs == op->nparams && nrets == op->nresults;
  if (__builtin_expect(!fits || ((op->has_dims || op->checks_dtypes) && !is_settled(op, args, nargs)), 0))
    AJ_TRY(settle_arguments(op, &args, &nargs, nrets, &settled));
  keys = (keys | tls.include) & ~tls.exclude & op->mask.load(std::memory_order_relaxed);
  return call_keys(op, keys, args, nargs, rets, nrets);
}

aj_status* redispatch(const aj_op* const_op, uint64_t given, const aj_value* args, uint32_t nargs, aj_value* rets,
                      uint32_t nrets) {
  aj_op* op = const_cast<aj_op*>(const_op);
  Settled settled;
  AJ_TRY(settle_arguments(op, &args, &nargs, nrets, &settled));
  bool ok;
  uint32_t flags;
  uint64_t now = keys_of(op, args, nargs, &ok, &flags);  // the caller may have put other tensors in
  uint64_t keys = ((now & kBackendKeys) | (given & (now | tls.include | kAutogradKey) & kFunctionalKeys)) & op->mask.load();
  if (!(now & kAutogradKey)) keys &= ~kAutogradKey;
  return call_keys(op, keys, args, nargs, rets, nrets);
}

}  // namespace adjoin
