// core/call/order.cpp: tensors that lie channels-last for speed, run as they are and brought to C
// order when seen.
#include "core/call/order.hpp"

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/call/copy.hpp"
#include "core/op/call.hpp"
#include "core/op/settings.hpp"
#include "core/tape/node.hpp"
#include "core/tape/record.hpp"

namespace adjoin {
namespace {

constexpr int64_t kWorthIt = 4096;  // elements; below, a call costs more than turning them

// Guards a tensor's strides, memory and flag while another thread may settle it.
std::atomic<uint8_t> stripes[64];
std::atomic<uint8_t>& stripe(const aj_tensor* t) {
  return stripes[reinterpret_cast<uintptr_t>(t) >> 6 & 63];
}

// The same elements under an object that nobody settles; t itself once it is in C order.
aj_status* steady(aj_tensor* t, Ref* out) {
  SpinGuard guard(stripe(t));
  if (!order_is_free(t)) {
    *out = Ref::borrow(t);
    return nullptr;
  }
  return tensor_alias(t, dt(priv(t).dtype), shape(t), strides(t), place(t), out->out());
}

// A copy in C order, which is no part of what the thread is doing: neither recorded nor seen by
// modes.
aj_status* in_c_order(aj_tensor* from, Ref* out) {
  AJ_TRY(tensor_new(device(from), dt(priv(from).dtype), shape(from), out->out()));
  uint64_t include = std::exchange(tls.include, 0);
  aj_status* s = copy_into(out->get(), from);
  tls.include = include;
  return s;
}

// Does t's order mean something to its user, other than C order?
bool has_own_order(const aj_tensor* t) {
  if (order_is_free(t) || is_dense(t)) return false;
  int64_t below = 0;
  for (int i = t->dl.ndim; i-- > 0;) {
    int64_t step = t->dl.strides[i];
    if (t->dl.shape[i] == 1 || step == 0) continue;
    if (step < below) return true;
    below = step;
  }
  return false;
}

template <class F>
bool any_tensor(const aj_value* args, uint32_t nargs, F f) {
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR && f(args[i].v.tensor)) return true;
    if (args[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (args[i].v.tensors[j] && f(args[i].v.tensors[j])) return true;
  }
  return false;
}

// A call's arguments with steady ones in place of those that could be settled while it runs.
class Steady {
 public:
  aj_status* take(const aj_value* args, uint32_t nargs) {
    for (uint32_t i = 0; i < nargs; i++) {
      args_[i] = args[i];
      if (args[i].tag == AJ_TENSOR) AJ_TRY(swap(&args_[i].v.tensor));
      if (args[i].tag != AJ_TENSORS) continue;
      auto& list = lists_.emplace_back(args[i].v.tensors, args[i].v.tensors + args[i].aux);
      for (aj_tensor*& t : list)
        if (t) AJ_TRY(swap(&t));
      args_[i].v.tensors = list.data();
    }
    return nullptr;
  }
  const aj_value* args() const { return args_; }
  aj_tensor* steady_of(aj_tensor* t) const {
    for (const Pair& p : pairs_)
      if (p.original == t) return p.stand_in.get();
    return t;
  }
  aj_tensor* original_of(const aj_tensor* t) const {
    for (const Pair& p : pairs_)
      if (p.stand_in.get() == t) return p.original;
    return nullptr;
  }

 private:
  struct Pair {
    aj_tensor* original;
    Ref stand_in;
  };
  aj_status* swap(aj_tensor** t) {
    if (!order_is_free(*t)) return nullptr;
    aj_tensor* known = steady_of(*t);
    if (known == *t) {
      Ref made;
      AJ_TRY(steady(*t, &made));
      known = made.get();
      pairs_.push_back({*t, std::move(made)});
    }
    *t = known;
    return nullptr;
  }
  aj_value args_[32];
  std::vector<std::vector<aj_tensor*>> lists_;
  std::vector<Pair> pairs_;
};

}  // namespace

aj_status* settle_in_place(aj_tensor* t) {
  Ref seen, turned;
  AJ_TRY(steady(t, &seen));
  if (seen.get() == t) return nullptr;
  AJ_TRY(
      in_c_order(seen.get(), &turned));  // no lock is held: a frontend may let others in meanwhile
  SpinGuard guard(stripe(t));
  Storage *old = priv(seen.get()).storage, *made = priv(turned.get()).storage;
  if (!order_is_free(t) || priv(t).storage != old) return nullptr;  // somebody else was first
  made->version = old->version;
  made->writer_line = old->writer_line;
  made->writer_op = old->writer_op;
  constexpr uint16_t kept = kStorageInference | kStorageSaved;
  made->flags = uint16_t((made->flags & ~kept) | (old->flags & kept));
  log_message(3, "order", text("a tensor of shape ", shape(t), " is turned to C order"));
  seen = Ref();
  tensor_set_storage(t, made, place(turned.get()));
  std::ranges::copy(strides(turned.get()), t->dl.strides);
  uint32_t flags = (t->obj.flags & ~uint32_t(AJ_TENSOR_FREE_ORDER)) | AJ_TENSOR_DENSE;
  __atomic_store_n(&t->obj.flags, flags, __ATOMIC_RELEASE);  // last: who misses it looks no further
  return nullptr;
}

aj_status* settle_orders(const aj_value* args, uint32_t nargs) {
  aj_status* s = nullptr;
  any_tensor(args, nargs, [&](aj_tensor* t) { return (s = settle_order(t)) != nullptr; });
  return s;
}

bool keeps_order(const aj_op* op, const aj_value* args, uint32_t nargs) {
  return op->keeps_order && !any_tensor(args, nargs, has_own_order);
}

aj_status* keep_order(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                      aj_value* rets, uint32_t nrets, bool rec, RunStep run) {
  if (rec && op->has_body && !op->vjp.load(std::memory_order_acquire))
    return run(op, keys, args, nargs, rets, nrets,
               true);  // it records by its own calls, which keep the order
  Steady steady;
  AJ_TRY(steady.take(args, nargs));
  aj_value made[kMaxResults];
  for (uint32_t i = 0; i < nrets; i++) {
    made[i] = rets[i];
    if (made[i].tag == AJ_TENSOR) made[i].v.tensor = steady.steady_of(made[i].v.tensor);
  }
  {
    uint8_t grad_off = tls.grad_off;
    if (rec) tls.grad_off |= 1;
    aj_status* s = run(op, keys, steady.args(), nargs, made, nrets, false);
    tls.grad_off = grad_off;
    AJ_TRY(s);
  }
  for (uint32_t i = 0; i < nrets; i++) {
    bool fresh = rets[i].tag == AJ_NONE && !op->schema.result_is_first;
    rets[i] = made[i];
    if (made[i].tag != AJ_TENSOR) continue;
    aj_tensor* t = made[i].v.tensor;
    if (aj_tensor* original = steady.original_of(t)) {
      retain(original);
      rets[i].v.tensor = original;
      release(t);
    } else if (fresh && !is_dense(t) && !(t->obj.flags & AJ_TENSOR_VIEW)) {
      t->obj.flags |= AJ_TENSOR_FREE_ORDER;
    }
  }
  return rec ? record(op, op->vjp.load(std::memory_order_acquire), args, nargs, rets, nrets)
             : nullptr;
}

void choose_order(Frame* f) {
  if (!settings.free_order || f->made[0].tag != AJ_TENSOR) return;
  aj_tensor* t = f->made[0].v.tensor;
  if (t->dl.ndim != 4 || !is_dense(t) || priv(t).numel < kWorthIt || f->call.flags & AJ_CALL_META)
    return;
  int64_t *n = t->dl.shape, *step = t->dl.strides, pixels = n[2] * n[3];
  if (n[1] == 1 || pixels == 1) return;  // both orders at once
  step[1] = 1;
  step[3] = n[1];
  step[2] = n[1] * n[3];
  step[0] = n[1] * pixels;
  t->obj.flags = (t->obj.flags & ~uint32_t(AJ_TENSOR_DENSE)) | AJ_TENSOR_FREE_ORDER;
}

}  // namespace adjoin
