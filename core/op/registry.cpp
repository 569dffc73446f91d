// core/op/registry.cpp: definitions come in through transactions, look-ups go out without a lock on
// the call path.
#include "core/op/registry.hpp"

#include <adjoin/abi/autocast.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/device/device.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/object.hpp"
#include "core/guest/provider.hpp"
#include "core/op/autocast.hpp"
#include "core/op/call.hpp"
#include "core/op/fallback_rules.hpp"
#include "core/op/kinds.hpp"
#include "core/op/registry_state.hpp"
#include "core/op/thunk.hpp"
#include "core/op/trace.hpp"
#include "core/op/waiting.hpp"
#include "core/service/services.hpp"
#include "core/tensor/tensor.hpp"
#include "core/thread/fork.hpp"

namespace adjoin {

Registry& registry() {
  static auto* r = [] {  // never destroyed: calls may outlive static destructors
    fork_hook_add({kForkRegistry, [] { registry().lock.lock(); }, [] { registry().lock.unlock(); },
                   [] {
                     new (&registry().lock) std::shared_mutex;
                   }});  // a child is not the thread that locked
    return new Registry;
  }();
  return *r;
}

namespace {

constinit thread_local aj_registrar* current __attribute__((tls_model("initial-exec"))) = nullptr;

constexpr std::pair<int, int> kPlaces[] = {{24, 30}, {34, 43}};  // below, above autograd

// A key's bit; a device's name gives its backend bit. -1 if unknown.
int key_bit(std::string_view name) {
  auto found = registry().keys.find(std::string(name));
  if (found != registry().keys.end()) return found->second;
  if (name == "meta") return kMetaType - 1;
  int32_t type = device_kind_peek(name);
  return type ? type - 1 : -1;
}

void attach_kernel(aj_op* op, aj_registrar::PendingKernel* p) {
  Kernel* k = adapt_schema(op, p->built_schema, new Kernel(p->kernel));
  auto at = std::find_if(op->kernels.begin(), op->kernels.end(),
                         [&](const Kernel* o) { return o->priority < k->priority; });
  op->kernels.insert(at, k);
  int bit = key_bit(k->key);
  if (bit >= 24) op->mask.fetch_or(1ull << bit);
}

// A derivative finds its place: the op's own, or one more by key.
void attach_vjp(aj_op* op, Vjp* v) {
  if (v->key.empty()) {
    op->vjp = v;
    return;
  }
  v->mask = 1ull << key_bit(v->key);
  v->next = op->keyed_vjps.load();
  op->keyed_vjps = v;
}

aj_status* check_saves(const Vjp* v, const aj_op* op) {
  for (const aj_save& s : v->save) {
    bool result = s.what == AJ_SAVE_RESULT || s.what == AJ_SAVE_RESULT_SHAPE;
    if (uint32_t(s.what) > AJ_SAVE_RESULT_SHAPE ||
        uint32_t(s.index) >= (result ? op->schema.results.size() : op->nparams))
      return fail(AJ_INVALID_ARGUMENT, "def_vjp: ", v->name, ": it saves ",
                  result ? "result " : "argument ", s.index, " (kind ", s.what,
                  "), which is not there");
  }
  return nullptr;
}

aj_status* check_vjp(aj_registrar* r, const Vjp* v, const aj_op* op, bool again) {
  AJ_TRY(check_saves(v, op));
  auto mine = [&](const Vjp* old) { return again && registry().vjp_owner[old] == r->plugin; };
  const Vjp* old = v->key.empty() ? op->vjp.load() : op->keyed_vjps.load();
  while (old && old->key != v->key) old = old->next;
  if (!old || mine(old)) return nullptr;
  return fail(AJ_ALREADY_EXISTS, v->name, ": has a derivative",
              v->key.empty() ? "" : " for key '" + v->key + "'", " already; plugin '", r->plugin,
              "' may not replace it");
}

// May the plugin say what tensors of this key do?
aj_status* check_wrapper(const aj_registrar* r, const Wrapper* w, bool again) {
  int bit = key_bit(w->key);
  auto owner = registry().key_owner.find(w->key);
  bool free = bit == kLazyBit || bit == kTransformBit || bit == kCaptureBit;
  if (bit < 24 || !(free || (owner != registry().key_owner.end() && owner->second == r->plugin)))
    return fail(AJ_NOT_FOUND, "def_wrapper: plugin '", r->plugin, "' has no key '", w->key,
                "'; define it with def_key first");
  const Wrapper* old = registry().wrappers[bit];
  if (!old || old->provider.empty() || (again && old->provider == r->plugin)) return nullptr;
  return fail(AJ_ALREADY_EXISTS, "def_wrapper: plugin '", old->provider, "' has defined key '",
              w->key, "' already");
}

aj_status* check_kernel(aj_registrar* r, const aj_registrar::PendingKernel& p, aj_op* op) {
  for (const Kernel* k : op->kernels)
    if (k->key == p.key && k->provider == r->plugin && !defines_again(r->plugin) &&
        k->priority == p.kernel.priority)
      return fail(AJ_ALREADY_EXISTS, p.op, ": plugin '", r->plugin, "' defines its ", p.key,
                  " kernel twice");
  return p.built_schema.empty() ? nullptr : check_built_schema(op, p.built_schema, r->plugin);
}

// adjoin.ops.NAME is an op, or a space: not both.
aj_status* check_space(const aj_op* op, const std::string& plugin) {
  const std::string& space = op->schema.space;
  if (space.empty()) return nullptr;
  for (const aj_op* other : registry().ops)
    if (other->schema.space.empty() && other->schema.ident == space)
      return fail(AJ_ALREADY_EXISTS, op->schema.name, ": its space '", space,
                  "' is the name of an op: adjoin.ops.", space, " is that op; plugin '", plugin,
                  "' must choose another space, in its schemas and in what its note provides");
  return nullptr;
}

// The types of objects that its signature names; they may have been registered after it.
aj_status* check_types(const aj_op* op) {
  for (auto* list : {&op->schema.params, &op->schema.results})
    for (const Param& p : *list) {
      int32_t type;
      aj_status* s = p.type.empty() ? nullptr : type_find(str(p.type), &type);
      if (!s) continue;
      free_status(s);
      return fail(AJ_NOT_FOUND, op->schema.name, ": nobody has registered the type of Object<",
                  p.type,
                  ">; register it in the same init, or have its plugin there first, by "
                  "'plugin:NAME' in what the note requires");
    }
  return nullptr;
}

// Is it a copy of these candidates? What resolve() adds to one follows from it.
bool is_chain(const Kernel* link, const std::vector<const Kernel*>& chain) {
  for (const Kernel* k : chain) {
    if (!link || link->fn != k->fn || link->self != k->self || link->flags != k->flags ||
        link->priority != k->priority || link->dtypes != k->dtypes || link->can_run != k->can_run ||
        link->provider != k->provider || link->nparams != k->nparams)
      return false;
    link = link->next;
  }
  return !link;
}

const Kernel* put_chain(aj_op* op, int bit, const Kernel* chain) {
  if (listening.kernels) chain = listening.kernels(op, bit, chain);
  op->table[bit].store(chain, std::memory_order_release);
  return chain;
}

// A derivative that a plugin defines again as it was: what tapes hold.
bool same_vjp(const Vjp& a, const Vjp& b) {
  aj_vjp_def x = a.def, y = b.def;
  x.op = y.op = {};
  x.save = y.save = nullptr;
  return std::memcmp(&x, &y, sizeof x) == 0 && a.save.size() == b.save.size() &&
         (a.save.empty() ||
          std::memcmp(a.save.data(), b.save.data(), a.save.size() * sizeof a.save[0]) == 0);
}

}  // namespace

void add_op(aj_op* op) {
  Registry& g = registry();
  op->index = uint32_t(g.ops.size());
  op->mask.fetch_or(kBackendKeys | kAutogradKey | kWrapKey | g.fallback_mask);
  g.ops.push_back(op);
  g.by_name[op->schema.name] = op;
  std::erase_if(g.orphans, [&](aj_registrar::PendingKernel* k) {
    return k->op == op->schema.name && (attach_kernel(op, k), true);
  });
  std::erase_if(g.orphan_vjps, [&](aj_registrar::PendingVjp& v) {
    if (v.op != op->schema.name) return false;
    if (aj_status* bad = check_saves(v.vjp, op))
      tell(bad);
    else
      attach_vjp(op, v.vjp);
    return true;
  });
}

Listening listening;

Transaction* transaction() { return current; }

// A plugin may have kept the address of what is long gone.
aj_status* check_open(const aj_registrar* r, const char* who) {
  if (__builtin_expect(r && r == current, 1)) return nullptr;
  return fail(AJ_PRECONDITION, who, ": a plugin defines only while its init runs, on that thread");
}

bool is_replaced(const std::string& plugin) {
  std::shared_lock guard(registry().lock);
  return !plugin.empty() && plugin == registry().replacing;
}

aj_op* op_by_index(uint32_t i) {
  std::shared_lock guard(registry().lock);
  return i < registry().ops.size() ? registry().ops[i] : nullptr;
}
uint32_t op_count() {
  std::shared_lock guard(registry().lock);
  return uint32_t(registry().ops.size());
}
const aj_op* op_at(uint32_t i) { return op_by_index(i); }

namespace {

const aj_op* known_op(std::string_view name) {
  std::shared_lock guard(registry().lock);
  auto found = registry().by_name.find(name);
  return found == registry().by_name.end() ? nullptr : found->second;
}

}  // namespace

const aj_op* find_op(std::string_view name) {
  if (name.starts_with("aj::")) name.remove_prefix(4);
  if (const aj_op* op = known_op(name)) {
    if (waits(op)) free_status(end_wait(op));  // a call tells why it does not come
    return op;
  }
  if (size_t colon = name.find("::"); colon != name.npos) {
    free_status(load_provider_of(text("ops:", name.substr(0, colon))));
    if (const aj_op* op = known_op(name)) return op;
  }
  load_extensions(text("op:", name));  // a file that names the op, whatever its note says
  return known_op(name);
}

uint64_t key_mask(aj_str name) {
  for (bool again = false;; again = true) {
    {
      std::shared_lock guard(registry().lock);
      if (int bit = key_bit(view(name)); bit >= 0 || again) return bit < 0 ? 0 : 1ull << bit;
    }
    free_status(load_provider_of(text("key:", view(name))));
  }
}

aj_status* def_op(aj_registrar* r, const aj_op_def* d) {
  AJ_TRY(check_open(r, "def_op"));
  if (!d || d->struct_size < AJ_END_OF(aj_op_def, self))
    return fail(AJ_INVALID_ARGUMENT, "def_op: aj_op_def: struct_size is ", d ? d->struct_size : 0,
                ", at least ", uint64_t(AJ_END_OF(aj_op_def, self)), " is needed");
  AJ_TRY(check_words("def_op", view(d->schema), d->flags, 0x7));
  auto op = std::make_unique<aj_op>();
  AJ_TRY(parse_schema(view(d->schema), &op->schema));
  op->flags = d->flags;
  op->doc = view(d->doc);
  op->kind_name = d->kind.len ? view(d->kind) : "custom";
  op->tags = view(d->tags);
  op->test = view(d->test);
  op->provider = r->plugin;
  op->infer = d->infer;
  op->body = d->body;
  op->self = d->self;
  AJ_TRY(set_kind(op.get()));
  init_op(op.get());
  for (aj_op* other : r->ops)
    if (other->schema.name == op->schema.name)
      return fail(AJ_ALREADY_EXISTS, op->schema.name, ": plugin '", r->plugin,
                  "' defines it twice");
  r->ops.push_back(op.release());
  return nullptr;
}

aj_status* def_kernel(aj_registrar* r, const aj_kernel_def* d) {
  AJ_TRY(check_open(r, "def_kernel"));
  if (!d || d->struct_size < AJ_END_OF(aj_kernel_def, can_run))
    return fail(AJ_INVALID_ARGUMENT, "def_kernel: aj_kernel_def: struct_size is ",
                d ? d->struct_size : 0, ", at least ", uint64_t(AJ_END_OF(aj_kernel_def, can_run)),
                " is needed");
  if (!d->fn)
    return fail(AJ_INVALID_ARGUMENT, "def_kernel: ", d->op, " at ", d->key,
                ": fn is NULL; a function is needed");
  AJ_TRY(check_words("def_kernel", view(d->op), d->flags, 0x77, d->reserved));
  std::string name(view(d->op));
  if (name.starts_with("aj::")) name.erase(0, 4);
  r->kernels.push_back({name, std::string(view(d->key)), std::string(view(d->built_schema)),
                        Kernel{d->fn, d->self, d->flags & 0xffff, d->priority, d->dtypes,
                               d->can_run, nullptr, r->plugin, std::string(view(d->key)), 0}});
  return nullptr;
}

aj_status* def_fallback(aj_registrar* r, aj_str key, aj_kernel_fn fn, void* self) {
  AJ_TRY(check_open(r, "def_fallback"));
  if (!fn) return fail(AJ_INVALID_ARGUMENT, "def_fallback: ", key, ": no function");
  if (view(key) == "autograd" || view(key) == "profiler")
    return fail(AJ_INVALID_ARGUMENT, "def_fallback: key '", key,
                "' is the core's own and calls no kernels; def_key gives a key of the plugin's");
  r->fallbacks.push_back({"", std::string(view(key)), "",
                          Kernel{fn, self, kKernelFallback, 0, 0, nullptr, nullptr, r->plugin,
                                 std::string(view(key)), 0}});
  return nullptr;
}

aj_status* def_key(aj_registrar* r, aj_str name, int32_t place, uint64_t* out_mask) {
  AJ_TRY(check_open(r, "def_key"));
  if (place < AJ_KEY_BELOW_AUTOGRAD || place > AJ_KEY_ABOVE_AUTOGRAD || name.len == 0)
    return fail(AJ_INVALID_ARGUMENT, "def_key: '", name,
                "': a name, and a place below or above autograd are needed");
  std::unique_lock guard(registry().lock);
  auto known = registry().keys.find(std::string(view(name)));
  if (known != registry().keys.end() && defines_again(r->plugin) &&
      registry().key_owner[known->first] == r->plugin) {
    *out_mask = 1ull << known->second;
    return nullptr;
  }
  if (key_bit(view(name)) >= 0)
    return fail(AJ_ALREADY_EXISTS, "def_key: there is a key or device named '", name, "' already");
  auto [first, last] = kPlaces[place - 1];
  for (int bit = first; bit <= last; bit++) {
    bool taken = false;
    for (auto& [other, b] : registry().keys) taken |= b == bit;
    if (taken) continue;
    registry().keys[std::string(view(name))] = bit;
    registry().key_owner[std::string(view(name))] = r->plugin;
    r->keys.emplace_back(view(name));
    *out_mask = 1ull << bit;
    return nullptr;
  }
  return fail(AJ_OUT_OF_RANGE, "def_key: '", name, "': all ", last - first + 1,
              " keys of that place are taken");
}

aj_status* def_vjp(aj_registrar* r, const aj_vjp_def* d) {
  AJ_TRY(check_open(r, "def_vjp"));
  if (!d || d->struct_size < AJ_END_OF(aj_vjp_def, self))
    return fail(AJ_INVALID_ARGUMENT, "def_vjp: aj_vjp_def: struct_size is ", d ? d->struct_size : 0,
                ", at least ", uint64_t(AJ_END_OF(aj_vjp_def, self)), " is needed");
  AJ_TRY(check_words("def_vjp", view(d->op), d->flags, 0x7, d->reserved));
  if (!d->vjp && !(d->flags & AJ_VJP_NO_GRAD_RESULTS))
    return fail(AJ_INVALID_ARGUMENT, "def_vjp: ", d->op, ": no function");
  auto* v = new Vjp{};
  std::memcpy(&v->def, d, std::min<size_t>(d->struct_size, sizeof v->def));
  v->def.struct_size = sizeof v->def;
  v->name = view(d->op);
  if (v->name.starts_with("aj::")) v->name.erase(0, 4);
  if (d->struct_size >= AJ_END_OF(aj_vjp_def, key)) v->key = view(d->key);
  v->def.key = str(v->key);
  v->save.assign(d->save, d->save + (d->save ? d->nsave : 0));
  v->def.op = str(v->name);
  v->def.save = v->save.data();
  r->vjps.push_back({v->name, v});
  return nullptr;
}

const Vjp* keyed_vjp(const aj_op* op, const aj_value* args, uint32_t nargs) {
  uint64_t keys = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR) keys |= args[i].v.tensor->keys;
    if (args[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (args[i].v.tensors[j]) keys |= args[i].v.tensors[j]->keys;
  }
  const Vjp* best = nullptr;
  for (const Vjp* v = op->keyed_vjps.load(std::memory_order_acquire); v; v = v->next)
    if ((v->mask & keys) && (!best || v->mask > best->mask)) best = v;
  return best;
}

aj_status* def_wrapper(aj_registrar* r, const aj_wrapper_def* d) {
  AJ_TRY(check_open(r, "def_wrapper"));
  if (!d || d->struct_size < AJ_END_OF(aj_wrapper_def, add_gradient))
    return fail(AJ_INVALID_ARGUMENT, "def_wrapper: aj_wrapper_def: struct_size is ",
                d ? d->struct_size : 0, ", at least ",
                uint64_t(AJ_END_OF(aj_wrapper_def, add_gradient)), " is needed");
  if (!d->key.len)
    return fail(AJ_INVALID_ARGUMENT, "def_wrapper: aj_wrapper_def: key is empty; a name is needed");
  AJ_TRY(check_words("def_wrapper", view(d->key), d->flags, 0));
  for (const Wrapper* other : r->wrappers)
    if (other->key == view(d->key))
      return fail(AJ_ALREADY_EXISTS, "def_wrapper: plugin '", r->plugin, "' has defined key '",
                  d->key, "' already");
  auto* w = new Wrapper{};
  std::memcpy(&w->def, d, std::min<size_t>(d->struct_size, sizeof w->def));
  w->key = view(d->key);
  w->hint = view(w->def.hint);
  w->provider = r->plugin;
  r->wrappers.push_back(w);
  return nullptr;
}

aj_status* def_device(aj_registrar* r, const aj_device_vtbl* v) {
  AJ_TRY(check_open(r, "def_device"));
  if (!v || v->struct_size < AJ_END_OF(aj_device_vtbl, count))
    return fail(AJ_INVALID_ARGUMENT, "def_device: aj_device_vtbl: struct_size is ",
                v ? v->struct_size : 0, ", at least ", uint64_t(AJ_END_OF(aj_device_vtbl, count)),
                " is needed");
  if (!v->name.len)
    return fail(AJ_INVALID_ARGUMENT, "def_device: aj_device_vtbl: name is empty; a name is needed");
  bool again = false, disabled;
  // Whoever is loaded first does not take the host: the installed cpu is there before a second one
  // joins it.
  if (view(v->name) == "cpu" && r->plugin != "cpu") free_status(load_provider_of("device:cpu"));
  {
    std::shared_lock guard(registry().lock);
    disabled = is_disabled(r->plugin);
  }
  AJ_TRY(device_kind_add(v, r->plugin, disabled ? &again : nullptr));
  if (again) r->undo.push_back([plugin = r->plugin] { devices_end(plugin); });
  if (!again) r->devices.emplace_back(view(v->name));
  return nullptr;
}

aj_status* def_service(aj_registrar* r, const aj_service_def* d) {
  AJ_TRY(check_open(r, "def_service"));
  if (!d || d->struct_size < AJ_END_OF(aj_service_def, table))
    return fail(AJ_INVALID_ARGUMENT, "def_service: aj_service_def: struct_size is ",
                d ? d->struct_size : 0, ", at least ", uint64_t(AJ_END_OF(aj_service_def, table)),
                " is needed");
  if (const char* lacks = !d->slot.len   ? "slot is empty"
                          : !d->name.len ? "name is empty"
                          : !d->table    ? "table is NULL"
                                         : nullptr)
    return fail(AJ_INVALID_ARGUMENT, "def_service: aj_service_def: ", lacks,
                "; a slot, a name and a table are needed");
  if (uint32_t bytes = *static_cast<const uint32_t*>(d->table); bytes < 8 || bytes > 4096)
    return fail(AJ_INVALID_ARGUMENT, "def_service: the table of '", d->slot, "' begins with ",
                bytes, ", which cannot be its struct_size");
  constexpr std::string_view kCasts = "aj.autocast/";
  if (std::string_view device = view(d->slot); device.starts_with(kCasts)) {
    device.remove_prefix(kCasts.size());
    AutocastRules casts;
    auto* lists = static_cast<const aj_autocast_lists*>(d->table);
    AJ_TRY(check_words("def_service", view(d->slot), 0, 0, lists->reserved));
    AJ_TRY(read_autocast(device, view(lists->lists), &casts));
    r->casts.emplace_back(device, std::move(casts));
  }
  AJ_TRY(service_add(*d, r->plugin));
  r->service_names.emplace_back(view(d->slot));
  return nullptr;
}

const Kernel* resolve(aj_op* op, int bit) {
  // Before the lock: a plugin that is loaded now registers its kernels.
  if (bit < 24 && bit != kMetaType - 1)
    load_extensions(text("kernel:", device_kind_name(bit + 1), "/", op->schema.name));
  std::unique_lock guard(registry().lock);
  std::vector<const Kernel*> chain;
  std::string key;
  if (bit < 24) key = bit == kMetaType - 1 ? "meta" : std::string(device_kind_name(bit + 1));
  for (const Kernel* k : op->kernels) {
    bool on = bit < 24 ? k->key == key : key_bit(k->key) == bit;
    if (on && !is_disabled(k->provider)) chain.push_back(k);
  }
  if (bit == kMetaType - 1 && chain.empty() &&
      (op->infer || has_own_shapes(op) || (op->schema.result_is_first && !op->has_body)))
    chain.push_back(&meta_kernel);
  if (bit < 24 && op->has_body && !is_disabled(op->provider) &&
      body_may_serve(op->schema.name, key))
    chain.push_back(&op->body_kernel);
  if (bit >= 24 && registry().fallbacks[bit]) chain.push_back(registry().fallbacks[bit]);
  // Chains that are replaced stay, since a call may be inside, and serve again when plugins come
  // back.
  static auto* kept = new std::map<std::pair<const aj_op*, int>, std::vector<const Kernel*>>;
  std::vector<const Kernel*>& before = (*kept)[{op, bit}];
  const Kernel* head = nullptr;
  if (!tracing())
    for (const Kernel* old : before)
      if (is_chain(old, chain)) head = old;
  if (head || chain.empty()) return put_chain(op, bit, head);
  for (size_t i = chain.size(); i-- > 0;) {
    Kernel* link = copy_kernel(*chain[i]);
    if (tracing() && chain[i] != &meta_kernel) trace_kernel(op, bit, chain, i, link);
    link->next = head;
    constexpr uint32_t odd = kKernelBody | kKernelFallback | kKernelHost | AJ_KERNEL_BLOCKS_HOST |
                             AJ_KERNEL_NONDETERMINISTIC;
    if (!link->can_run && !(link->flags & odd)) link->alike = alike_dtypes(op, *link);
    head = link;
  }
  if (!tracing()) before.push_back(head);
  return put_chain(op, bit, head);
}

[[gnu::cold]] Kernel* copy_kernel(const Kernel& k) {
  auto* copy = new Kernel(k);
  copy->told = nullptr;
  return copy;
}

void forget_resolved() {
  for (aj_op* op : registry().ops) {
    for (auto& entry : op->table) entry.store(nullptr, std::memory_order_release);
    op->run.store(listening.run ? listening.run : kind_run(op->kind), std::memory_order_relaxed);
  }
}

void resolve_again() {
  std::unique_lock guard(registry().lock);
  forget_resolved();
}

static std::string dtype_names(uint64_t mask) {
  std::string out;
  for (int i = 0; i < 64; i++)
    if (mask >> i & 1 && dtypes[i].name)
      out += (out.empty() ? "" : ", ") + std::string(dtypes[i].name);
  return out;
}

std::string kernel_dtypes(const aj_op* op, int bit) {
  std::shared_lock guard(registry().lock);
  uint64_t mask = 0;
  std::string key = bit < 24 ? std::string(device_kind_name(bit + 1)) : "";
  for (const Kernel* k : op->kernels)
    if (k->key == key) mask |= k->dtypes ? k->dtypes : 0;
  return dtype_names(mask);
}

std::string kernels_there(const aj_op* op, std::string_view device) {
  std::shared_lock guard(registry().lock);
  std::string out;
  for (const Kernel* k : op->kernels)
    if (k->key == device && !is_disabled(k->provider))
      out += text(out.empty() ? "" : "; ", "plugin '", k->provider, "' has one",
                  k->dtypes ? " for " + dtype_names(k->dtypes) : "");
  return out;
}

std::string kernels_elsewhere(const aj_op* op, std::string_view device) {
  std::shared_lock guard(registry().lock);
  for (const Kernel* k : op->kernels)
    if (k->key != device && !is_disabled(k->provider) && registry().keys.contains(k->key))
      return text("plugin '", k->provider, "' has one at key '", k->key, "'");
  return {};
}

std::string disabled_server(const aj_op* op, std::string_view device, std::string_view plugin) {
  std::shared_lock guard(registry().lock);
  for (const Kernel* k : op->kernels)
    if (k->key == device && is_disabled(k->provider)) return k->provider;
  for (const std::string& one : {op->provider, std::string(plugin)})
    if (is_disabled(one)) return one;
  return {};
}

}  // namespace adjoin

using namespace adjoin;

aj_op* aj_registrar::find(const std::string& name) const {
  for (aj_op* op : ops)
    if (op->schema.name == name) return op;
  auto found = registry().by_name.find(name);
  return found == registry().by_name.end() ? nullptr : found->second;
}

aj_status* aj_registrar::check(bool again) {
  const auto& known = registry().by_name;
  for (aj_op* op : ops)
    if (auto found = known.find(op->schema.name);
        found != known.end() && !(again && found->second->provider == plugin) && !waited(op))
      return fail(
          AJ_ALREADY_EXISTS, op->schema.name, ": defined by ",
          found->second->provider.empty() ? "the core" : "plugin '" + found->second->provider + "'",
          " already; plugin '", plugin, "' must choose another name");
  for (aj_op* op : ops) AJ_TRY(check_space(op, plugin));
  for (aj_op* op : ops) AJ_TRY(check_types(op));
  for (aj_op* op : ops) AJ_TRY(check_promise(op));
  for (auto& k : kernels)
    if (aj_op* op = find(k.op)) AJ_TRY(check_kernel(this, k, op));
  for (auto& v : vjps) {
    if (aj_op* op = find(v.op)) AJ_TRY(check_vjp(this, v.vjp, op, again));
    if (int bit = v.vjp->key.empty() ? 24 : key_bit(v.vjp->key); bit < 24 || bit > kAutogradBit)
      return fail(AJ_NOT_FOUND, "def_vjp: ", v.op, ": no key below autograd is called '",
                  v.vjp->key, "'; define it with def_key first");
  }
  for (Wrapper* w : wrappers) AJ_TRY(check_wrapper(this, w, again));
  for (auto& f : fallbacks)
    if (int bit = key_bit(f.key); bit < 24)
      return fail(AJ_NOT_FOUND, "def_fallback: no functionality key '", f.key,
                  "'; define it with def_key first");
  return nullptr;
}

void aj_registrar::attach(bool again) {
  Registry& g = registry();
  for (auto& k : kernels) {
    if (aj_op* op = find(k.op))
      attach_kernel(op, &k);
    else
      g.orphans.push_back(new PendingKernel(k));
  }
  for (auto& v : vjps) {
    aj_op* op = find(v.op);
    Vjp* old = op ? const_cast<Vjp*>(op->vjp.load()) : nullptr;
    if (again && old && g.vjp_owner[old] == plugin && same_vjp(*old, *v.vjp))
      delete std::exchange(v.vjp, old);
    g.vjp_owner[v.vjp] = plugin;
    if (op)
      attach_vjp(op, v.vjp);
    else
      g.orphan_vjps.push_back(v);
  }
  if (again) drop_old_derivatives(this);
  for (Wrapper* w : wrappers) g.wrappers[key_bit(w->key)] = w;
  for (auto& f : fallbacks) {
    int bit = key_bit(f.key);
    g.fallbacks[bit] = new Kernel(f.kernel);
    g.fallback_mask |= 1ull << bit;
    for (aj_op* op : g.ops) op->mask.fetch_or(1ull << bit);
  }
}

aj_status* aj_registrar::commit() {
  Registry& g = registry();
  std::unique_lock guard(g.lock);
  bool again = defines_again(plugin);
  if (again) AJ_TRY(adopt_old_ops(this));
  AJ_TRY(check(again));
  // Nothing can fail from here on.
  if (again) replace_old_definitions(this);
  std::vector<aj_op*> kept = keep_promises(&ops);
  for (aj_op* op : ops) add_op(op);
  for (auto& [device, rules] : casts) set_autocast_rules(device, std::move(rules));
  mark_autocast(casts.empty() ? ops : g.ops);
  attach(again);
  std::erase(g.disabled, plugin);
  forget_resolved();
  for (aj_op* op : kept) op->nresults = uint16_t(op->schema.results.size());
  committed = true;
  return nullptr;
}

aj_registrar::aj_registrar(std::string plugin_name)
    : Transaction{std::move(plugin_name), {}}, outer(current) {
  current = this;
}

aj_registrar::~aj_registrar() {
  current = outer;
  if (committed) return;
  for (size_t i = undo.size(); i-- > 0;) undo[i]();
  for (aj_op* op : ops) delete op;
  for (auto& v : vjps) delete v.vjp;
  for (Wrapper* w : wrappers) delete w;
  for (auto& d : devices) device_kind_remove(d, plugin);
  if (!service_names.empty()) service_remove(plugin);
  std::unique_lock guard(registry().lock);
  for (auto& k : keys) registry().keys.erase(k);
}
