// core/tape/engine.cpp: claim what leads from the roots, run it latest first, free as it goes.
#include "core/tape/engine.hpp"

#include <algorithm>

#include "core/guest/caught.hpp"
#include "core/guest/frontend.hpp"
#include "core/guest/line.hpp"
#include "core/op/autocast.hpp"
#include "core/tape/hooks.hpp"
#include "core/tape/ops.hpp"

namespace adjoin {

std::atomic<int32_t> anomaly_mode{0};

namespace {

std::atomic<uint32_t> next_run{1};

// Recording, and the user's line of what backward itself records, for the time of a pass.
struct Modes {
  uint8_t grad_off = tls.grad_off, in_backward = tls.in_backward;
  uint32_t line = tls.line, site = tls.site;
  void* node = tls.current_node;
  explicit Modes(bool create) {
    tls.grad_off = uint8_t((grad_off & 2) | (create ? 0 : 1));
    tls.in_backward = 1;
  }
  ~Modes() {
    tls.grad_off = grad_off;
    tls.in_backward = in_backward;
    tls.line = line;
    tls.site = site;
    tls.current_node = node;
  }
};

[[gnu::cold]] aj_status* name_place(aj_status* s, const Node* n) {
  std::string place = place_of(n);
  if (!s->is_static && !place.empty() && s->message.find(" recorded at ") == std::string::npos)
    s->message += ";" + place;
  return s;
}

[[gnu::cold]] aj_status* check_nan(Node* n, aj_tensor* const* in) {
  for (uint32_t i = 0; i < n->nedges; i++) {
    bool nan = false;
    if (in[i]) AJ_TRY(tape::has_nan(in[i], &nan));
    if (nan)
      return fail(AJ_PRECONDITION, "backward: Function '", node_name_of(n),
                  "' returned nan values in its ", i, "th output: its gradient for input ", i);
  }
  return nullptr;
}

}  // namespace

int32_t set_anomaly_mode(int32_t flags) { return anomaly_mode.exchange(flags); }

Run::Run(bool retain, bool create) : retain_(retain), create_(create) {
  do id_ = next_run.fetch_add(1, std::memory_order_relaxed);
  while (id_ == 0);
}

Run::~Run() {
  if (!done_) abandon();
  for (uint32_t i = 0; i < nroots_; i++) {
    edge_release(root(i).edge);
    release(root(i).grad);
  }
}

void Run::capture(void* target, uint32_t nr, aj_tensor* g) {
  if (!out_ || !g) return;
  for (const Wanted& w : wanted_) {
    if (w.target != target || w.nr != nr) continue;
    release(out_[w.index]);
    retain(g);
    out_[w.index] = g;
  }
}

aj_status* Run::run_leaf(aj_tensor* leaf, Meta* m, aj_tensor* steal_g, uint32_t marks) {
  Ref g(steal_g);
  Ref alive = Ref::borrow(leaf);
  if (__builtin_expect(m->hooks != nullptr, 0)) {
    aj_tensor* io = g.take();
    aj_status* s = run_tensor_hooks(hooks_of(m->hooks.get(), AJ_HOOK_TENSOR), 0, &io);
    if (!s && !(out_ && (marks & kCaptured)))
      s = run_node_hooks(hooks_of(m->hooks.get(), AJ_HOOK_NODE_PRE), &io, 1, nullptr, 0);
    g = Ref(io);
    if (s) return s;
  }
  if (out_ && (marks & kCaptured)) {
    capture(m, 0, g.get());
    return nullptr;
  }
  if (!g) return nullptr;
  bool hooked = m->hooks != nullptr;
  Ref kept = hooked ? Ref::borrow(g.get()) : Ref();
  AJ_TRY(accumulate_grad(leaf, g.take(), create_));
  if (__builtin_expect(!hooked, 1)) return nullptr;
  aj_tensor* given = kept.get();
  AJ_TRY(run_node_hooks(hooks_of(m->hooks.get(), AJ_HOOK_NODE_POST), nullptr, 0, &given, 1));
  for (auto& h : hooks_of(m->hooks.get(), AJ_HOOK_POST_ACCUMULATE)) {
    aj_tensor* param = leaf;
    AJ_TRY(caught(h->tensor, "hook", [&] { return h->tensor(h->self, &param); }));
  }
  return nullptr;
}

aj_status* Run::deliver(const Edge& e, aj_tensor* g) {
  if (e.flags & kEdgeLeaf) {
    aj_tensor* leaf = static_cast<aj_tensor*>(e.target);
    Meta* m = priv(leaf).meta;
    uint32_t* deps = deps_of(m);
    if (!deps) return release(g), nullptr;
    void** slot = slot_of(m);
    if (g) AJ_TRY(accumulate(reinterpret_cast<aj_tensor**>(slot), g, create_));
    uint32_t left = --*deps;
    if (left & kCount) return nullptr;
    aj_tensor* sum = static_cast<aj_tensor*>(*slot);
    unclaim(m);
    return run_leaf(leaf, m, sum, left);
  }
  Node* n = static_cast<Node*>(e.target);
  uint32_t* deps = deps_of(n);
  if (!deps) return release(g), nullptr;
  if (g) {
    void** slot = slot_of(n);
    auto** at = reinterpret_cast<aj_tensor**>(slot);
    if (n->nresults > 1) {
      if (!*slot) *slot = new aj_tensor*[n->nresults]();
      at = static_cast<aj_tensor**>(*slot) + e.nr;
    }
    AJ_TRY(accumulate(at, g, create_));
  }
  if ((--*deps & kCount) == 0) ready_.push_ready(n);
  return nullptr;
}

// Hooks of the tensors that the node made, and what is to be kept of their gradients.
aj_status* Run::before(Node* n, aj_tensor** grads, uint32_t marks) {
  Extra* x = std::atomic_ref<Extra*>(n->extra).load(std::memory_order_acquire);
  if (x) {
    HookList tensor = hooks_of(&x->hooks, AJ_HOOK_TENSOR);
    for (uint32_t i = 0; i < n->nresults && !tensor.empty(); i++)
      if (grads[i]) AJ_TRY(run_tensor_hooks(tensor, i, &grads[i]));
    give_retained(n, grads);
  }
  if (marks & kCaptured)
    for (uint32_t i = 0; i < n->nresults; i++) capture(n, i, grads[i]);
  if (x && (!restricted_ || (marks & kNeeded)))
    AJ_TRY(run_node_hooks(hooks_of(&x->hooks, AJ_HOOK_NODE_PRE), grads, n->nresults, nullptr, 0));
  return nullptr;
}

aj_status* Run::derive(Node* n, aj_tensor** grads, aj_tensor** in, uint8_t* needs) {
  const Edge* e = n->edges();
  for (uint32_t i = 0; i < n->nedges; i++) {
    needs[i] = e[i].target && (!restricted_ || deps_of(e[i]));
    in[i] = nullptr;
  }
  tls.line = n->line;
  tls.site = 0;
  tls.current_node = n;
  AJ_TRY(node_apply(n, grads, in, needs, create_, retain_, nullptr));
  for (uint32_t i = 0; i < n->nedges; i++) {
    if (!in[i]) continue;
    if (__builtin_expect(!needs[i], 0)) {
      release(in[i]);
      in[i] = nullptr;
    } else {
      AJ_TRY(fit_gradient(n, i, &in[i]));
    }
  }
  if (__builtin_expect(anomaly_mode.load(std::memory_order_relaxed) == 3, 0))
    AJ_TRY(check_nan(n, in));
  if (__builtin_expect(n->extra != nullptr, 0) && !n->extra->hooks.empty())
    return run_node_hooks(hooks_of(&n->extra->hooks, AJ_HOOK_NODE_POST), in, n->nedges, grads,
                          n->nresults);
  return nullptr;
}

aj_status* Run::deliver_all(Node* n, aj_tensor** in) {
  aj_status* s = nullptr;
  for (uint32_t i = 0; i < n->nedges; i++) {
    aj_tensor* g = in ? in[i] : nullptr;
    if (!n->edges()[i].target || s) {
      release(g);
    } else {
      s = deliver(n->edges()[i], g);
    }
  }
  return s;
}

aj_status* Run::run_node(Node* n, aj_tensor** grads, uint32_t marks) {
  if (__builtin_expect(n->extra != nullptr || (marks & kCaptured), 0))
    AJ_TRY(before(n, grads, marks));
  if (restricted_ && !(marks & kNeeded)) return nullptr;
  bool any = false;
  for (uint32_t i = 0; i < n->nresults && !any; i++) any = grads[i];
  if (!any) return deliver_all(n, nullptr);
  constexpr uint32_t kFew = 8;
  aj_tensor* few_in[kFew];
  uint8_t few_needs[kFew];
  std::vector<aj_tensor*> many_in;
  std::vector<uint8_t> many_needs;
  aj_tensor** in = few_in;
  uint8_t* needs = few_needs;
  if (__builtin_expect(n->nedges > kFew, 0)) {
    many_in.resize(n->nedges);
    many_needs.resize(n->nedges);
    in = many_in.data();
    needs = many_needs.data();
  }
  if (aj_status* s = derive(n, grads, in, needs)) {
    for (uint32_t i = 0; i < n->nedges; i++) release(in[i]);
    return name_place(s, n);
  }
  for (uint32_t i = 0; i < n->nresults;
       i++) {  // before they are handed on: what is ours alone is added to in place
    release(grads[i]);
    grads[i] = nullptr;
  }
  return deliver_all(n, in);
}

aj_status* Run::execute(Node* n) {
  uint32_t marks = *deps_of(n);
  void* slot = *slot_of(n);
  unclaim(n);
  if (__builtin_expect(n->nresults == 1, 1)) {
    aj_tensor* g = static_cast<aj_tensor*>(slot);
    aj_status* s = run_node(n, &g, marks);
    release(g);
    return s;
  }
  std::vector<aj_tensor*> none;
  if (!slot) none.resize(n->nresults);
  aj_status* s = run_node(n, slot ? static_cast<aj_tensor**>(slot) : none.data(), marks);
  slots_release(slot, n->nresults);
  return s;
}

aj_status* Run::loop() {
  for (uint32_t i = 0; i < nroots_; i++) {
    aj_tensor* g = root(i).grad;
    root(i).grad = nullptr;
    AJ_TRY(deliver(root(i).edge, g));
  }
  while (!ready_.empty()) {
    if (__builtin_expect((++steps_ & 127) == 0, 0) && frontend_interrupted())
      return fail_kind(AJ_CANCELLED, "KeyboardInterrupt", "backward: interrupted");
    AJ_TRY(execute(ready_.pop_ready()));
  }
  return nullptr;
}

aj_status* Run::go() {
  if (restricted_) {
    walk_restricted();
  } else {
    walk();
  }
  Modes modes(create_);
  AutocastPause pause;
  AJ_TRY(loop());
  done_ = true;
  return nullptr;
}

aj_status* Run::add_root(aj_tensor* t, aj_tensor* steal_grad) {
  if (nroots_) more_.emplace_back();
  Root& r = root(nroots_);
  r = {{}, steal_grad};
  nroots_++;
  return edge_to(t, &r.edge);
}

aj_status* Run::restrict_to(std::span<aj_tensor* const> inputs, aj_tensor** out) {
  restricted_ = true;
  out_ = out;
  for (uint32_t i = 0; i < inputs.size(); i++) {
    Edge e{};
    if (!inputs[i]) return fail(AJ_INVALID_ARGUMENT, "backward: input ", i, " is no tensor");
    AJ_TRY(edge_to(inputs[i], &e));
    if (!e.target)
      return fail(AJ_INVALID_ARGUMENT, "backward: input ", i, " does not require grad");
    bool leaf = e.flags & kEdgeLeaf;
    void* target = leaf ? static_cast<void*>(priv(inputs[i]).meta) : e.target;
    wanted_.push_back({target, e.nr, i, leaf});
    edge_release(e);  // the caller holds the inputs
    if (!out && !leaf) AJ_TRY(retain_grad(inputs[i]));
  }
  return nullptr;
}

}  // namespace adjoin
