// core/tape/held.cpp: the interface "x.tape": what hangs on tensors and nodes alone, for collectors
// of cycles.
#include "core/tape/held.hpp"

#include <adjoin/kit/tape.hpp>
#include <unordered_map>

#include "core/base/guarded.hpp"
#include "core/guest/frontend.hpp"
#include "core/guest/object.hpp"
#include "core/op/call.hpp"
#include "core/tape/hooks.hpp"
#include "core/tape/saved.hpp"
#include "core/tape/write.hpp"

namespace adjoin {
namespace {

using Visit = void (*)(void* arg, void (*drop)(void*), void* self);

// Counts references as it meets them: an object whose references were all met would die with the
// tensors.
class Walk {
 public:
  Walk(Visit visit, void* arg) : visit_(visit), arg_(arg) {}

  void reach(aj_tensor* t) {
    if (t && all_met(t, refs(&t->obj))) tensors_.push_back(t);
  }
  void reach(Node* n) {
    if (n && all_met(n, n->refs)) nodes_.push_back(n);
  }
  void go() {
    constexpr int kFar = 1000;  // a collector asks again and again
    for (int i = 0; i < kFar; i++) {
      if (!tensors_.empty()) {
        aj_tensor* t = tensors_.back();
        tensors_.pop_back();
        enter(t);
      } else if (!nodes_.empty()) {
        Node* n = nodes_.back();
        nodes_.pop_back();
        enter(n);
      } else {
        return;
      }
    }
  }

 private:
  bool all_met(void* o, const std::atomic<uint32_t>& count) {
    uint32_t n = count.load(std::memory_order_acquire);
    return n == 1 || ++met_[o] == n;
  }

  void tell(void (*drop)(void*), void* self) {
    if (drop) visit_(arg_, drop, self);
  }

  void enter(aj_tensor* t) {
    TensorPriv& p = priv(t);
    if (p.flags & kFrontendOwned) tell(frontend_dropper(p.frontend_id), p.frontend);
    reach(p.node);
    reach(p.base);
    if (!p.meta) return;
    reach(p.meta->retained_in);
    reach(p.meta->grad);
    enter(p.meta->hooks.get());
  }

  void enter(Node* n) {
    for (uint32_t i = 0; i < n->nedges; i++) reach(n->edges()[i]);
    if (n->flags & kNodeSlices) reach(slice_inner(n));
    if (n->extra) enter(&n->extra->hooks);
    if (Custom* c = n->extra ? n->extra->custom.get() : nullptr; c && c->payload)
      tell(c->vjp.def.drop, c->payload);
    (void)each_saved(n, [&](uint32_t, Saved& s) -> aj_status* {
      if (s.flags & kSavedPacked)
        enter(s.pack);
      else
        reach(s.t);
      return nullptr;
    });
  }

  void enter(HookList* all) {
    for (const Hook* h : sole_hooks(all)) tell(h->drop, h->self);
  }

  void enter(PackBox* box) {
    if (!box || box->refs.load() != 1) return;
    reach(box->history);
    if (refs(box->packed).load() == 1)
      tell(object_destroyer(box->packed), object_payload(box->packed));
    if (SavedHooks* h = box->hooks; h->refs.load() == 1 || ++met_[h] == h->refs.load())
      tell(h->drop, h->self);
  }

  void reach(const Edge& e) {
    if (e.flags & kEdgeLeaf)
      reach(static_cast<aj_tensor*>(e.target));
    else
      reach(static_cast<Node*>(e.target));
  }

  Visit visit_;
  void* arg_;
  std::vector<aj_tensor*> tensors_;
  std::vector<Node*> nodes_;
  std::unordered_map<void*, uint32_t> met_;
};

void would_drop(void* const* objects, uint32_t n, Visit visit, void* arg) {
  Walk walk(visit, arg);
  for (uint32_t i = 0; i < n; i++) {
    if (static_cast<aj_object*>(objects[i])->type == kNodeType)
      walk.reach(static_cast<Node*>(objects[i]));
    else
      walk.reach(static_cast<aj_tensor*>(objects[i]));
  }
  walk.go();
}

int32_t saved_name(aj_node* abi, uint32_t i, aj_str* name, int32_t* result) {
  Node* n = node_of(abi);
  if (n->flags & (kNoSaved | kNodeCustom) || i >= n->vjp->save.size()) return 0;
  const aj_save& s = n->vjp->save[i];
  int what = s.what;
  const aj_op* op = find_op(n->vjp->name);
  if (!op || (what != AJ_SAVE_ARG && what != AJ_SAVE_RESULT)) return 0;
  *result = what == AJ_SAVE_RESULT;
  const auto& list = *result ? op->schema.results : op->schema.params;
  *name =
      str(uint32_t(s.index) < list.size() ? std::string_view(list[uint32_t(s.index)].name) : "");
  return 1;
}

aj_status* stand_in(aj_tensor* t, aj_node* abi, uint32_t i) {
  Node* n = node_of(abi);
  if (i >= n->nresults)
    return fail(AJ_INVALID_ARGUMENT, node_name_of(n), ": there is no result ", i, " of ",
                n->nresults);
  set_history(t, n, i);
  return nullptr;
}

const aj_x_tape table = {sizeof(aj_x_tape), 0, would_drop, saved_name, guarded<stand_in>};

}  // namespace

const void* tape_table() { return &table; }

}  // namespace adjoin
