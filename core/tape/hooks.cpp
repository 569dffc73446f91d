// core/tape/hooks.cpp: hooks are kept with the node or leaf; one lock guards all lists, and
// none is held while they run.
#include "core/tape/hooks.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/guest/caught.hpp"
#include "core/tape/ops.hpp"
#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

std::mutex hooks_lock;
std::unordered_map<uint64_t, std::weak_ptr<Hook>>& registry() {
  static auto* r = [] {
    fork_hook_add({kForkLeaf, [] { hooks_lock.lock(); }, [] { hooks_lock.unlock(); },
                   [] { hooks_lock.unlock(); }});
    return new std::unordered_map<uint64_t, std::weak_ptr<Hook>>;
  }();
  return *r;
}
uint64_t next_id = 1;

// Moves removed hooks out of a list; they are dropped by the caller after the lock.
void prune(HookList* all, HookList* dead) {
  auto gone =
      std::stable_partition(all->begin(), all->end(), [](auto& h) { return !h->removed.load(); });
  std::move(gone, all->end(), std::back_inserter(*dead));
  all->erase(gone, all->end());
}

void add_hook(HookList* list, std::shared_ptr<Hook> h, uint64_t* id) {
  HookList dead;
  auto& all = registry();  // made without our lock: its fork hook takes that of the others
  std::lock_guard guard(hooks_lock);
  prune(list, &dead);
  h->id = next_id++;
  if (id) *id = h->id;
  all[h->id] = h;
  list->push_back(std::move(h));
}

HookList* list_of_leaf(aj_tensor* leaf) {
  Meta* m = meta_of(leaf);
  std::lock_guard guard(hooks_lock);
  if (!m->hooks) m->hooks = std::make_unique<HookList>();
  return m->hooks.get();
}

void unlist(Meta* m) {
  std::erase_if(m->retained_in->extra->retains, [&](const Retain& r) { return r.meta == m; });
}

}  // namespace

Hook::~Hook() {
  {
    std::lock_guard guard(hooks_lock);
    registry().erase(id);
  }
  call_drop(drop, self, "drop function");
}

HookList hooks_of(HookList* all, int32_t kind) {
  HookList found, dead;
  if (!all) return found;
  {
    std::lock_guard guard(hooks_lock);
    prune(all, &dead);
    std::copy_if(all->begin(), all->end(), std::back_inserter(found),
                 [&](auto& h) { return h->kind == kind; });
  }
  return found;
}

std::vector<const Hook*> sole_hooks(HookList* all) {
  std::vector<const Hook*> found;
  if (!all) return found;
  std::lock_guard guard(hooks_lock);
  for (auto& h : *all)
    if (h.use_count() == 1) found.push_back(h.get());
  return found;
}

aj_status* run_tensor_hooks(const HookList& list, uint32_t nr, aj_tensor** io) {
  for (auto& h : list) {
    if (h->nr != nr || h->removed || !*io) continue;
    aj_tensor* before = *io;
    aj_status* s = caught(h->tensor, "hook", [&] { return h->tensor(h->self, io); });
    if (*io != before) release(before);
    if (s) return s;
  }
  return nullptr;
}

aj_status* run_node_hooks(const HookList& list, aj_tensor** io, uint32_t n, aj_tensor* const* other,
                          uint32_t nother) {
  for (auto& h : list) {
    if (h->removed) continue;
    std::vector<aj_tensor*> before(io, io + n);
    aj_status* s = caught(h->node, "hook", [&] { return h->node(h->self, io, n, other, nother); });
    for (uint32_t i = 0; i < n; i++)
      if (io[i] != before[i]) release(before[i]);
    if (s) return s;
  }
  return nullptr;
}

void forget_retain(Meta* m) {
  std::lock_guard guard(hooks_lock);
  unlist(m);
}

void move_retain(Meta* m, Node* to, uint32_t nr) {
  Extra& x = extra_of(to);
  Node* old = m->retained_in;
  node_retain(to);
  {
    std::lock_guard guard(hooks_lock);
    if (old) unlist(m);
    x.retains.push_back({m, nr});
    m->retained_in = to;
  }
  node_release(old);
}

void give_retained(Node* n, aj_tensor* const* grads) {
  std::vector<Retain> all;
  {
    std::lock_guard guard(hooks_lock);
    all = n->extra->retains;
  }
  for (const Retain& r : all) {
    aj_tensor* g = grads[r.nr];
    if (!g) continue;
    Ref old, sum = Ref::borrow(g);
    auto listed = [&] {
      return std::ranges::any_of(n->extra->retains,
                                 [&](const Retain& o) { return o.meta == r.meta; });
    };
    {
      std::lock_guard guard(hooks_lock);
      if (!listed()) continue;
      old = Ref::borrow(r.meta->grad);
    }
    if (old)
      if (aj_status* e = tape::add(old.get(), g, sum.out())) {
        free_status(e);
        sum = Ref::borrow(g);
      }
    std::lock_guard guard(hooks_lock);
    if (!listed()) continue;
    std::swap(old, sum);  // the new one goes in, what was there dies with `sum`
    sum = Ref(r.meta->grad);
    r.meta->grad = old.take();
  }
}

aj_status* hook_tensor(aj_tensor* t, int32_t kind, aj_tensor_hook fn, void* self,
                       void (*drop)(void*), uint64_t* id) {
  if (!fn || (kind != AJ_HOOK_TENSOR && kind != AJ_HOOK_POST_ACCUMULATE))
    return fail(AJ_INVALID_ARGUMENT, "hook_tensor: kind ", kind, " is not one of a tensor");
  Edge e{};
  AJ_TRY(edge_to(t, &e));
  bool leaf = e.flags & kEdgeLeaf;
  if (!e.target)
    return fail(AJ_PRECONDITION,
                "hook_tensor: the tensor does not require grad, so no gradient will come to it");
  edge_release(e);  // t keeps it
  if (kind == AJ_HOOK_POST_ACCUMULATE && !leaf)
    return fail(AJ_PRECONDITION,
                "hook_tensor: only leaves accumulate a gradient; this tensor was made by ",
                node_name_of(priv(t).node));
  auto h = std::make_shared<Hook>();
  h->kind = kind;
  h->nr = leaf ? 0 : priv(t).out_nr;
  h->tensor = fn;
  h->self = self;
  h->drop = drop;
  h->pins[0] = Pin(Holder::hook, fn), h->pins[1] = Pin(Holder::hook, drop);
  add_hook(leaf ? list_of_leaf(t) : &extra_of(priv(t).node).hooks, std::move(h), id);
  return nullptr;
}

aj_status* hook_node(aj_node* abi, int32_t kind, aj_node_hook fn, void* self, void (*drop)(void*),
                     uint64_t* id) {
  if (!abi || !fn || (kind != AJ_HOOK_NODE_PRE && kind != AJ_HOOK_NODE_POST))
    return fail(AJ_INVALID_ARGUMENT, "hook_node: kind ", kind, " is not one of a node");
  Node* n = node_of(abi);
  auto h = std::make_shared<Hook>();
  h->kind = kind;
  h->nr = 0;
  h->node = fn;
  h->self = self;
  h->drop = drop;
  h->pins[0] = Pin(Holder::hook, fn), h->pins[1] = Pin(Holder::hook, drop);
  bool leaf = n->flags & kNodeAccumulator;
  add_hook(leaf ? list_of_leaf(static_cast<aj_tensor*>(n->edges()[0].target)) : &extra_of(n).hooks,
           std::move(h), id);
  return nullptr;
}

aj_status* hook_remove(uint64_t id) {
  std::shared_ptr<Hook> h;
  {
    auto& all = registry();
    std::lock_guard guard(hooks_lock);
    auto at = all.find(id);
    if (at == all.end()) return nullptr;  // removed before, or died with its tensor
    h = at->second.lock();
    all.erase(at);
  }
  if (h) h->removed = true;
  return nullptr;
}

aj_status* retain_grad(aj_tensor* t) {
  Edge e{};
  AJ_TRY(edge_to(t, &e));
  if (!e.target) return fail(AJ_PRECONDITION, "retain_grad: the tensor does not require grad");
  edge_release(e);
  if (!priv(t).node) return nullptr;  // a leaf keeps it anyway
  Meta* m = meta_of(t);
  if (m->retained_in == priv(t).node) return nullptr;
  move_retain(m, priv(t).node, priv(t).out_nr);
  priv(t).flags |= kRetainsGrad;
  return nullptr;
}

int32_t retains_grad(const aj_tensor* t) { return (priv(t).flags & kRetainsGrad) != 0; }

}  // namespace adjoin
