// core/call/generic.cpp: ops whose infer says the outputs: views, products, convolutions; and
// bodies.
#include <algorithm>

#include "core/call/copy.hpp"
#include "core/call/order.hpp"
#include "core/call/output.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/object.hpp"
#include "core/memory/capture.hpp"
#include "core/op/call.hpp"
#include "core/tape/node.hpp"
#include "core/tape/record.hpp"
#include "core/tape/wrap.hpp"

namespace adjoin {
namespace {

// Releases what a failed call had made.
struct Cleaner {
  Frame* f;
  bool done = false;
  ~Cleaner() {
    if (!done)
      for (uint32_t i = 0; i < f->call.nrets; i++) release_value(f->made[i]);
    if (f->views) {
      for (aj_value& v : *f->views) release_value(v);
      delete f->views;
    }
  }
};

// Copies into given tensors what was not written straight, and hands out owned results.
aj_status* hand_out(Frame* f, aj_value* rets, uint32_t nrets) {
  for (uint32_t i = 0; i < nrets; i++) {
    const aj_value given = rets[i];
    if (given.tag != AJ_TENSOR) continue;
    if (f->made[i].tag != AJ_TENSOR)
      return fail(AJ_INTERNAL, f->op->schema.ident, ": result ", i,
                  " is no tensor, out= was given");
    aj_tensor* made = f->made[i].v.tensor;
    if (made == given.v.tensor) continue;
    AJ_TRY(check_cast(f->op, priv(made).dtype, given.v.tensor));
    AJ_TRY(fit_given(f->op, given.v.tensor, shape(made), &f->call));
  }
  // Nothing is written before all fit: who is refused may call again, and an input may lie there.
  for (uint32_t i = 0; i < nrets; i++) {
    const aj_value given = rets[i];
    if (given.tag != AJ_TENSOR || f->made[i].v.tensor == given.v.tensor) continue;
    aj_tensor* made = f->made[i].v.tensor;
    AJ_TRY(copy_into(given.v.tensor, made));
    release(made);
    retain(given.v.tensor);
    f->made[i] = given;
  }
  for (uint32_t i = 0; i < nrets; i++) {
    copy_value(&rets[i], f->made[i]);
    if (rets[i].tag == AJ_TENSOR && (rets[i].v.tensor->obj.flags & AJ_TENSOR_VIEW))
      outlive_base(rets[i].v.tensor);
  }
  return nullptr;
}

// A body that recorded its calls, and yet made a result with no history: by tensor_wrap, past the
// tape.
[[gnu::cold]] aj_status* check_history(const Frame* f, uint32_t i) {
  const aj_tensor* made = f->made[i].v.tensor;
  const aj_op* op = f->op;
  // Made by ops: those of a level are recorded by it, those of a lazy scope were before they came
  // there.
  if (made->keys & (kTransformKey | 1ull << kLazyBit)) return nullptr;
  if (tls.grad_off || requires_grad(made) || !(op->grad_results >> i & 1) ||
      !can_require_grad(priv(made).dtype))
    return nullptr;
  for (uint32_t j = 0; j < f->call.nargs; j++)
    if (f->call.args[j].tag == AJ_TENSOR && requires_grad(f->call.args[j].v.tensor))
      return fail(
          AJ_UNIMPLEMENTED, op->schema.ident,
          ": an argument requires grad, and the body of the op made its result by tensor_wrap, "
          "which the tape does not see; give the op a derivative (def_vjp), or call it inside "
          "no_grad");
  return nullptr;
}

aj_status* run_body(Frame* f, const Kernel* k, aj_value* rets, uint32_t nrets) {
  Cleaner cleaner{f};
  if (aj_status* s = run_kernel(f->op, k, &f->call, 0)) return name_body(s, f->op->schema.ident);
  AJ_TRY(check_results(f->op, k, &f->call, f->made, nrets));
  if (!tls.grad_off)
    for (uint32_t i = 0; i < nrets; i++)
      if (__builtin_expect(f->made[i].tag == AJ_TENSOR && !is_strided(f->made[i].v.tensor), 0))
        AJ_TRY(check_history(f, i));
  AJ_TRY(hand_out(f, rets, nrets));
  cleaner.done = true;
  return nullptr;
}

uint64_t bytes_of(const aj_value* v, uint32_t n) {
  uint64_t bytes = 0;
  auto add = [&](aj_tensor* t) {
    bytes += t ? uint64_t(priv(t).numel) * dt(priv(t).dtype).bytes : 0;
  };
  for (uint32_t i = 0; i < n; i++) {
    if (v[i].tag == AJ_TENSOR) add(v[i].v.tensor);
    if (v[i].tag == AJ_TENSORS) std::for_each_n(v[i].v.tensors, v[i].aux, add);
  }
  return bytes;
}

// A kernel fills what infer has declared: it would meet no tensor there.
[[gnu::cold, gnu::noinline]] aj_status* look_at_declared(const Frame& f, uint32_t nrets) {
  for (uint32_t i = 0; i < nrets; i++)
    if (f.made[i].tag != AJ_TENSOR && f.op->results_ok[i] == tag_bit(AJ_TENSOR))
      return fail(AJ_INTERNAL, f.op->schema.ident, ": its infer",
                  f.op->provider.empty() ? "" : text(", of plugin '", f.op->provider, "',"),
                  " has declared no result ", i, "; its schema is ", f.op->schema.text);
  return nullptr;
}

inline aj_status* check_declared(const Frame& f, uint32_t nrets) {
  for (uint32_t i = 0; i < nrets; i++)
    if (__builtin_expect(f.made[i].tag != AJ_TENSOR, 0)) return look_at_declared(f, nrets);
  return nullptr;
}

inline aj_status* run_infer(const aj_op* op, aj_call* call) {
  aj_status* s;
  try {
    s = op->infer(op->self, call);
  } catch (...) {
    s = thrown_by(reinterpret_cast<const void*>(op->infer), "infer");
  }
  return __builtin_expect(!s, 1) ? nullptr : infer_failed(op, s);
}

// A body may call any op, itself too: the stack would end without a word.
struct Deeper {
  Deeper() { tls.depth++; }
  ~Deeper() { tls.depth--; }
};
constexpr uint32_t kDeepest = 256;  // some 3 KiB each: threads of 1 MiB have room

}  // namespace

aj_status* run_generic(aj_op* op, const Kernel* head, uint64_t keys, const aj_value* args,
                       uint32_t nargs, aj_value* rets, uint32_t nrets) {
  Deeper deeper;
  if (__builtin_expect(tls.depth > kDeepest, 0))
    return fail(AJ_INTERNAL, op->schema.ident, ": ", kDeepest, " calls inside each other: its ",
                head->flags & kKernelBody ? "body" : "kernel", " leads back to it");
  Frame f(op, keys, args, nargs, nrets);
  for (uint32_t i = 0; i < nrets; i++) copy_value(&f.given[i], rets[i]);
  AJ_TRY(device_of(op, keys, args, nargs, &f.device));
  f.call.device = f.device->id;
  AJ_TRY(set_stream(f.device, &f.call));
  if (head->flags & kKernelBody) return run_body(&f, head, rets, nrets);
  if (!f.device->host())
    AJ_TRY(check_devices(op, f.device, args, nargs));  // two of one kind have one key
  if (f.device->id.device_type == kMetaType) f.call.flags |= AJ_CALL_META;
  Cleaner cleaner{&f};
  if (op->writes && op->schema.result_is_first &&
      !(op->flags & AJ_OP_ALLOCATES)) {  // the kernel writes the argument
    retain(args[0].v.tensor);
    f.made[0] = value(args[0].v.tensor);
  }
  if (op->infer && !(op->flags & AJ_OP_ALLOCATES)) {
    AJ_TRY(run_infer(op, &f.call));
    AJ_TRY(check_declared(f, nrets));
  }
  const Kernel* k;
  AJ_TRY(pick_kernel(op, head, compute_dtype(args, nargs), &f.call, &k));
  if (k->flags & kKernelBody) {
    for (uint32_t i = 0; i < nrets; i++) {
      release_value(f.made[i]);
      f.made[i] = none();
    }
    cleaner.done = true;
    return run_body(&f, k, rets, nrets);
  }
  if (k->flags & AJ_KERNEL_CHANNELS_LAST && rets[0].tag == AJ_NONE) choose_order(&f);
  if (!(f.call.flags & AJ_CALL_META) || k != head || !k->provider.empty()) {
    uint64_t bytes = bytes_of(args, nargs) + bytes_of(f.made, nrets);
    AJ_TRY(run_kernel(op, k, &f.call, bytes / 4));
    AJ_TRY(check_results(op, k, &f.call, f.made, nrets));
  }
  AJ_TRY(hand_out(&f, rets, nrets));
  cleaner.done = true;
  return nullptr;
}

aj_status* run_view(aj_op* op, const Kernel* head, uint64_t keys, const aj_value* args,
                    uint32_t nargs, aj_value* rets, uint32_t nrets) {
  if (head && (head->flags & kKernelBody) && !op->infer)
    return run_generic(op, head, keys, args, nargs, rets, nrets);
  Frame f(op, keys, args, nargs, nrets);
  f.device = device(args[0].v.tensor);
  f.call.device = f.device->id;
  Cleaner cleaner{&f};
  AJ_TRY(run_infer(op, &f.call));
  if (__builtin_expect(op->has_body && f.made[0].tag == AJ_NONE, 0))  // no view shows it: a copy
    return run_generic(op, &op->body_kernel, keys, args, nargs, rets, nrets);
  if (op->schema.results[0].list && f.made[0].tag != AJ_LIST_OBJ) {
    aj_object* list;
    std::vector<aj_value> items;
    if (f.views) items.swap(*f.views);
    AJ_TRY(list_new_stealing(items.data(), uint32_t(items.size()), &list));
    f.made[0] = {AJ_LIST_OBJ, 0, {0}};
    f.made[0].v.object = list;
  }
  AJ_TRY(check_declared(f, nrets));
  for (uint32_t i = 0; i < nrets; i++) copy_value(&rets[i], f.made[i]);
  cleaner.done = true;
  return nullptr;
}

}  // namespace adjoin
