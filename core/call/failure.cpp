// core/call/failure.cpp: kernels that fail, throw, decline or give wrong results: what the user is
// told of them.
#include "core/call/failure.hpp"

#include <utility>

#include "core/call/slow.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/object.hpp"
#include "core/op/call.hpp"
#include "core/op/registry.hpp"
#include "core/op/settings.hpp"

namespace adjoin {
namespace {

// The last error of this thread that said that a call was declined, and who declined it. As other
// thread-local state: see tls.hpp.
struct Declined {
  aj_status* status;
  const Kernel* by;
};
thread_local Declined declined __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr};

aj_status* decline(aj_status* s, const Kernel* by) {
  declined = {s, by};
  return s;
}

std::string place(const Kernel* k, const aj_call* call) {
  return text("plugin '", k->provider, "' on ", call->device);
}

std::string device_kind(const aj_call* call) {
  return call->device.device_type ? std::string(device_kind_name(call->device.device_type))
                                  : "device";
}

}  // namespace

bool is_declined(const aj_status* s, const Kernel** by) {
  Declined last = std::exchange(declined, {nullptr, nullptr});
  *by = last.by;
  return s == last.status && s->code == AJ_UNIMPLEMENTED;
}

[[gnu::cold]] aj_status* kernel_failed(const aj_op* op, const Kernel* k, const aj_call* call,
                                       aj_status* s) {
  look_at_returned(s, reinterpret_cast<const void*>(k->fn));
  if (k->flags & kKernelFallback && s->code == AJ_UNIMPLEMENTED && !k->provider.empty() &&
      k->key != "transform" && !s->is_static &&
      !s->placed) {  // it is no candidate among others: it has to pass on
    s->placed = true;
    return prefix(s, text(op->schema.ident, ": the fallback of plugin '", k->provider, "' at key '",
                          k->key, "' did not pass the call on: "));
  }
  if (k->flags & (kKernelBody | kKernelFallback))
    return s;  // an op inside it has failed, or it names itself
  if (s->code == AJ_UNIMPLEMENTED) decline(s, k);
  if (s->is_static || s->placed || s->code == AJ_CANCELLED) return s;
  const std::string name = text(op->schema.ident, ": ");
  const bool named = s->message.starts_with(name);
  if (named && is_about_the_call(s->code)) return s;
  s->placed = true;
  s->message.erase(0, named ? name.size() : 0);
  return prefix(s, k->provider.empty() ? name : text(name, place(k, call), ": "));
}

[[gnu::cold]] aj_status* kernel_declines(const aj_op* op, const Kernel* k, const aj_call* call) {
  return decline(fail(AJ_UNIMPLEMENTED, op->schema.ident, ": no ", device_kind(call),
                      " kernel takes this call; candidates declined: ", k->provider),
                 k);
}

static std::string providers(const Kernel* head) {
  std::string all;
  for (const Kernel* k = head; k; k = k->next)
    if (!k->provider.empty()) all.append(all.empty() ? ": " : ", ").append(k->provider);
  return all;
}

[[gnu::cold]] aj_status* nobody_takes(const aj_op* op, const Kernel* head, int compute,
                                      const aj_call* call) {
  std::string device = device_kind(call);
  std::string have = kernel_dtypes(op, call->device.device_type ? call->device.device_type - 1 : 0);
  if (compute >= 0 && !have.empty())
    return decline(fail(AJ_UNIMPLEMENTED, op->schema.ident, ": not implemented for ",
                        dt(compute).name, ": no ", device, " kernel for ", dt(compute).name,
                        "; it has ", have, "; cast with .to(...)"),
                   nullptr);
  return decline(
      fail(AJ_UNIMPLEMENTED, op->schema.ident, ": no ", device, " kernel takes this call",
           settings.deterministic ? " in the deterministic mode" : "", "; candidates declined",
           providers(head)),
      nullptr);
}

// A kernel may not throw; the core is the last place to say who did.
[[gnu::cold]] aj_status* kernel_threw(const aj_op* op, const Kernel* k, const aj_call* call) {
  return thrown(text(op->schema.ident, ": ", place(k, call), ": its kernel"));
}

[[gnu::cold]] aj_status* leads_back(const aj_op* op, const Kernel* k) {
  aj_status* s = fail(AJ_INTERNAL, op->schema.ident, ": the kernel of plugin '", k->provider,
                      "' at key '", k->key, "' leads back to itself until the stack ends; ",
                      device_kind_peek(k->key)
                          ? "it calls the op that it serves"
                          : "pass call->keys on, and leave its key in what the thread excludes");
  if (!s->is_static) s->placed = true;
  return s;
}

[[gnu::cold]] aj_status* infer_failed(const aj_op* op, aj_status* s) {
  look_at_returned(s, reinterpret_cast<const void*>(op->infer));
  name_plugin(s, reinterpret_cast<const void*>(op->infer), "infer");
  return s->message.starts_with("plugin ") ? prefix(s, text(op->schema.ident, ": ")) : s;
}

bool agrees(const Kernel* k, const aj_call* call) {
  int32_t yes = 0;
  tell(caught(k->can_run, "can_run",
              [&]() -> aj_status* { return yes = k->can_run(k->self, call), nullptr; }));
  return yes;
}

static std::string giver(const aj_op* op, const Kernel* k, const aj_call* call) {
  if (!(k->flags & kKernelBody)) return place(k, call);
  return op->provider.empty() ? "its body" : text("its body, of plugin '", op->provider, "',");
}

[[gnu::cold]] aj_status* wrong_results(const aj_op* op, const Kernel* k, const aj_call* call,
                                       aj_value* made, uint32_t n) {
  aj_status* s = nullptr;
  for (uint32_t i = 0; i < n; i++) {
    if (made[i].tag >= AJ_TENSOR && !made[i].v.object) made[i] = none();
    const std::string& type = op->schema.results[i].type;
    bool other = made[i].tag == AJ_OBJECT && !type.empty() &&
                 view(type_name(made[i].v.object->type)) != type;
    if (!s && (other || tag_bit(made[i].tag) & ~op->results_ok[i]))
      s = fail(AJ_INTERNAL, op->schema.ident, ": ", giver(op, k, call), " gave ",
               other ? text("an object of type '", type_name(made[i].v.object->type), "'")
                     : tag_name(made[i].tag),
               " as result ", i, "; its schema is ", op->schema.text);
  }
  for (uint32_t i = 0; s && i < n; i++) {
    release_value(made[i]);
    made[i] = none();
  }
  return s;
}

[[gnu::cold]] aj_status* other_results(const aj_op* op, const Kernel* k, aj_call* call, Ref* outs,
                                       uint32_t n, aj_status* steal) {
  for (uint32_t i = 0; i < n; i++) {
    aj_value& now = call->rets[i];
    if (now.tag == AJ_TENSOR && now.v.tensor == outs[i].get()) continue;
    outs[i].take();
    if (!steal)
      steal = fail(AJ_INTERNAL, op->schema.ident, ": ", place(k, call), " left ",
                   now.tag == AJ_TENSOR ? "another tensor" : tag_name(now.tag), " as result ", i,
                   "; a kernel that has a plan writes the tensor that is there");
    release_value(now);
    now = none();
  }
  return steal;
}

}  // namespace adjoin
