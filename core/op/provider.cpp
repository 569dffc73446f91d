// core/op/provider.cpp: what a plugin has registered, as a whole: disabled, replaced, taken
// back.
#include <algorithm>
#include <map>
#include <mutex>

#include "core/device/device.hpp"
#include "core/op/registry_state.hpp"
#include "core/op/trace.hpp"

namespace adjoin {
namespace {

// Stands where an unloaded plugin's functions stood.
aj_status* unloaded(void*, aj_call* call) {
  const aj_op* op = call->op;
  return fail(AJ_UNAVAILABLE, op->schema.ident, ": plugin '", op->provider,
              "', which defined it, was unloaded or replaced by a version without it");
}

// An op whose name means another one by now keeps what it has: whoever holds it goes on with it.
bool is_superseded(const aj_op* op) {
  auto found = registry().by_name.find(op->schema.name);
  return found != registry().by_name.end() && found->second != op;
}

void drop_kernels(const std::string& plugin, bool superseded_too) {
  Registry& g = registry();
  for (aj_op* op : g.ops)
    if (superseded_too || !is_superseded(op))
      std::erase_if(op->kernels, [&](const Kernel* k) {
        bool its = k->provider == plugin;
        if (its && !tracing()) delete k;  // calls have copies; what traces counts by the original
        return its;
      });
  std::erase_if(g.orphans, [&](auto* p) {
    bool its = p->kernel.provider == plugin;
    if (its) delete p;
    return its;
  });
}

}  // namespace

void set_functions(aj_op* op, aj_status* (*infer)(void*, aj_call*), aj_kernel_fn body, void* self) {
  op->infer = infer;
  op->body = body;
  op->self = self;
  op->has_body = body != nullptr;
  op->body_kernel.fn = body;
  op->body_kernel.self = self;
}

bool is_disabled(const std::string& plugin) {
  return std::ranges::find(registry().disabled, plugin) != registry().disabled.end();
}

bool defines_again(const std::string& plugin) {
  return (!plugin.empty() && plugin == registry().replacing) || is_disabled(plugin);
}

void drop_wrappers(std::string_view plugin) {
  for (auto& place : registry().wrappers) {
    const Wrapper* w = place.load();
    if (w && w->provider == plugin)
      place = new Wrapper{
          {}, w->key, text("plugin '", plugin, "', which defines it, was disabled"), ""};
  }
}

aj_status* disable_provider(std::string_view plugin) {
  std::unique_lock guard(registry().lock);
  if (!is_disabled(std::string(plugin))) registry().disabled.emplace_back(plugin);
  for (const Kernel*& fallback : registry().fallbacks)
    if (fallback && fallback->provider == plugin) fallback = nullptr;
  drop_wrappers(plugin);
  forget_resolved();
  return nullptr;
}

namespace {

bool same_signature(const aj_op* a, const aj_op* b) {
  return a->schema.text == b->schema.text && a->kind == b->kind && a->tags == b->tags &&
         a->flags == b->flags;
}

// Ops that a plugin's newer file does not define any more: their names are free.
void forget_left_out(const aj_registrar* r) {
  for (aj_op* op : registry().ops) {
    if (op->provider != r->plugin || is_superseded(op)) continue;
    if (std::ranges::any_of(r->ops, [&](aj_op* o) { return o->schema.name == op->schema.name; }))
      continue;
    registry().by_name.erase(op->schema.name);
    set_functions(op, op->infer ? unloaded : nullptr, op->body ? unloaded : nullptr, op->self);
  }
}

}  // namespace

aj_status* adopt_old_ops(aj_registrar* r) {
  if (r->plugin == registry().replacing) return nullptr;  // a changed one is a new op
  for (aj_op* op : r->ops) {
    auto found = registry().by_name.find(op->schema.name);
    if (found == registry().by_name.end() || found->second->provider != r->plugin) continue;
    const aj_op* old = found->second;
    if (!same_signature(old, op))
      return fail(AJ_PRECONDITION, op->schema.name, ": plugin '", r->plugin,
                  "' now declares it as ", op->schema.text, ", before as ", old->schema.text,
                  "; a changed signature, kind or tag needs a new process");
  }
  return nullptr;
}

void replace_old_definitions(aj_registrar* r) {
  for (aj_op* op : r->ops)
    if (auto old = registry().by_name.find(op->schema.name);
        old != registry().by_name.end() && !same_signature(old->second, op))
      old->second = op;
  if (r->plugin == registry().replacing) forget_left_out(r);
  drop_kernels(r->plugin, false);
  for (const Kernel*& fallback : registry().fallbacks)
    if (fallback && fallback->provider == r->plugin) fallback = nullptr;
  std::erase_if(r->ops, [](aj_op* op) {
    auto found = registry().by_name.find(op->schema.name);
    if (found == registry().by_name.end() || found->second == op) return false;
    set_functions(found->second, op->infer, op->body, op->self);
    found->second->doc = op->doc;
    delete op;
    return true;
  });
}

void drop_old_derivatives(const aj_registrar* r) {
  for (aj_op* op : registry().ops) {
    const Vjp* vjp = op->vjp.load();
    auto owner = registry().vjp_owner.find(vjp);
    if (!vjp || owner == registry().vjp_owner.end() || owner->second != r->plugin) continue;
    bool kept = std::ranges::any_of(r->vjps, [&](auto& v) { return v.vjp == vjp; });
    if (!kept && !is_superseded(op)) op->vjp = nullptr;
  }
  for (const auto& [vjp, owner] :
       registry().vjp_owner)  // of keys: no argument asks for them any more
    if (owner == r->plugin &&
        !std::ranges::any_of(r->vjps, [known = vjp](auto& v) { return v.vjp == known; }))
      const_cast<Vjp*>(vjp)->mask = 0;
}

std::string provider_ties(std::string_view plugin) {
  std::shared_lock guard(registry().lock);
  Registry& g = registry();
  for (const auto& [vjp, owner] : g.vjp_owner)
    if (owner == plugin)
      return text("it has defined the derivative of ", vjp->name, ", which a tape may hold");
  for (const auto& [key, owner] : g.key_owner)
    if (auto bit = g.keys.find(key);
        owner == plugin && bit != g.keys.end() && g.wrapped[bit->second])
      return text(g.wrapped[bit->second].load(), " tensors of its key '", key, "' are alive");
  return {};
}

std::string provider_summary(std::string_view plugin) {
  std::shared_lock guard(registry().lock);
  std::map<std::string, int> kernels;
  int ops = 0, served = 0;
  for (const aj_op* op : registry().ops) {
    ops += op->provider == plugin;
    bool serves = false;
    for (const Kernel* k : op->kernels)
      if (k->provider == plugin) ++kernels[k->key], serves = true;
    served += serves;
  }
  std::string lines = ops ? text("  defines ", ops, " ops\n") : "";
  for (const auto& [key, n] : kernels)
    lines += text("  has ", n, n == 1 ? " kernel at " : " kernels at ", key, "\n");
  if (served) lines += text("  has kernels for ", served, served == 1 ? " op\n" : " ops\n");
  for (const aj_registrar::PendingKernel* k : registry().orphans)
    if (k->kernel.provider == plugin)
      lines += text("  has a kernel at ", k->key, " for ", k->op, ", an op that nobody defines\n");
  for (const aj_registrar::PendingVjp& v : registry().orphan_vjps)
    if (auto owner = registry().vjp_owner.find(v.vjp);
        owner != registry().vjp_owner.end() && owner->second == plugin)
      lines += text("  has a derivative for ", v.op, ", an op that nobody defines\n");
  for (const auto& [key, owner] : registry().key_owner)
    if (owner == plugin) lines += text("  defines the dispatch key ", key, "\n");
  return lines;
}

void retire_definitions(std::string_view plugin) {
  std::unique_lock guard(registry().lock);
  drop_kernels(std::string(plugin), true);
  for (aj_op* op : registry().ops)
    if (op->provider == plugin)
      set_functions(op, op->infer ? unloaded : nullptr, op->body ? unloaded : nullptr, op->self);
  forget_resolved();
}

}  // namespace adjoin
