// core/tape/saved.cpp: a saved tensor is compared by version when it is used: what was changed
// since is an error.
#include "core/tape/saved.hpp"

#include <unordered_set>

#include "core/guest/caught.hpp"
#include "core/guest/line.hpp"
#include "core/guest/object.hpp"
#include "core/op/call.hpp"
#include "core/op/registry.hpp"
#include "core/tape/wrap.hpp"
#include "core/tape/write.hpp"

namespace adjoin {
namespace {

// Guards the saved values of nodes against a second backward of the same part of a graph; which
// lock follows from the node.
std::atomic<uint8_t> stripes[64];
std::atomic<uint8_t>& stripe(const Node* n) {
  return stripes[reinterpret_cast<uintptr_t>(n) >> 6 & 63];
}

void hooks_release(SavedHooks* h) {
  while (h && h->refs.fetch_sub(1) == 1) {
    SavedHooks* below = h->below;
    call_drop(h->drop, h->self, "drop function");
    delete h;
    h = below;
  }
}

void pack_release(PackBox* p) {
  if (!p || p->refs.fetch_sub(1) != 1) return;
  release(p->packed);
  hooks_release(p->hooks);
  edge_release(p->history);
  delete p;
}

std::string name_of_saved(const Node* n, uint32_t value, bool is_result) {
  const aj_op* op = (n->flags & kNodeCustom) ? nullptr : find_op(n->vjp->name);
  if (!op || value >= n->vjp->save.size()) return is_result ? "a result" : "an input";
  uint32_t i = uint32_t(n->vjp->save[value].index);
  const auto& list = is_result ? op->schema.results : op->schema.params;
  if (i < list.size() && !list[i].name.empty()) return text("'", list[i].name, "'");
  return is_result ? "its result" : "an input";
}

[[gnu::cold]] aj_status* changed(Node* n, uint32_t value, const Saved& s) {
  const Storage& st = storage(s.t);
  std::string by, who(node_name_of(n));
  if (st.writer_op) {
    const aj_op* op = op_by_index(st.writer_op - 1u);
    by = text(", by ", op->schema.ident, op->schema.ident.ends_with('_') ? "" : "_");
    if (std::string line = line_text(st.writer_line); !line.empty()) by += text(" at ", line);
  }
  return fail(
      AJ_PRECONDITION, "backward: ", name_of_saved(n, value, s.flags & kSavedOutput),
      " was changed in place after ", who, " saved it (version ", st.version, ", saved at ",
      s.version, ")", by,
      ": what is needed for gradient computation has been modified by an inplace operation; "
      "clone it before the change");
}

// Where the storage's own number differs: a tensor without strides may watch another's, too.
[[gnu::cold]] bool is_changed(const Saved& s) { return watched_version(s.t) != s.version; }

[[gnu::cold]] aj_status* freed(Node* n) {
  return fail(AJ_PRECONDITION,
              "backward: Trying to backward through the graph a second time: tensors that ",
              node_name_of(n),
              " saved are asked for after they have already been freed: Specify retain_graph=True "
              "the first time");
}

aj_status* pack_tensor(aj_tensor* t, Saved* s, uint64_t nr, bool is_result) {
  SavedHooks* h = tls.saved_hooks;
  auto box = std::unique_ptr<PackBox, void (*)(PackBox*)>(
      new PackBox{.packed = nullptr, .hooks = h, .history = {}}, pack_release);
  h->refs.fetch_add(1);
  if (!is_result)
    AJ_TRY(edge_to(t, &box->history));
  else
    box->history.nr = uint32_t(nr);
  tls.saved_hooks = nullptr;  // what the hook does is not packed again
  aj_status* e;
  auto version = [&] { return priv(t).storage ? priv(t).storage->version : 0; };
  const uint32_t before = version();
  {
    NoGrad off;
    e = caught(h->pack, "pack hook", [&] { return h->pack(h->self, t, &box->packed); });
  }
  tls.saved_hooks = h;
  if (e) return e;
  if (version() != before)
    return fail(AJ_INVALID_ARGUMENT,
                "saved-tensor hooks: A saved tensor pack hook is modifying its input in place, and "
                "with it the program's own tensor; work on a clone");
  s->t = nullptr;
  s->version = 0;
  s->flags = kSavedPacked | (is_result ? uint32_t(kSavedOutput) : 0u);
  s->pack = box.release();
  return nullptr;
}

// Identity, so that a value that only stands for a leaf gets the leaf its gradient.
aj_status* give_history(aj_tensor* t, const Edge& history) {
  if (!history.target) return nullptr;
  if (!(history.flags & kEdgeLeaf)) {
    set_history(t, static_cast<Node*>(history.target), history.nr);
    return nullptr;
  }
  Node* n = node_alloc(1, 0, 0);
  if (!n) return no_node_memory();
  n->flags |= kNodeIdentity;
  n->edges()[0] = history;
  n->edges()[0].dtype = priv(t).dtype;
  edge_retain(history);
  set_history(t, n, 0);
  node_release(n);
  return nullptr;
}

aj_status* plain_alias(aj_tensor* t, aj_tensor** out) {
  AJ_TRY(tensor_same(t, out));
  (*out)->obj.flags |= t->obj.flags & AJ_TENSOR_FREE_ORDER;
  return nullptr;
}

// Leaves and their views cannot be written while recording, so nothing has to be remembered of
// them.
void mark_saved(aj_tensor* t) {
  aj_tensor* root = priv(t).base ? priv(t).base : t;
  if (requires_grad(root) && !priv(root).node) return;
  if (!(storage(t).flags & kStorageSaved)) storage(t).flags |= kStorageSaved;
}

aj_status* untangle_node(Node* n, const Storage* memory, std::vector<Ref>* dead) {
  SpinGuard guard(stripe(n));
  return each_saved(n, [&](uint32_t, Saved& s) -> aj_status* {
    if (!s.t || (s.flags & kSavedOutput) || priv(s.t).storage != memory ||
        s.version == memory->version)
      return nullptr;
    aj_tensor* memory_only;
    AJ_TRY(plain_alias(s.t, &memory_only));
    dead->emplace_back(s.t);
    s.t = memory_only;
    return nullptr;
  });
}

}  // namespace

aj_status* save_tensor(Node*, aj_tensor* t, bool is_result, uint32_t nr, Saved* s) {
  uint32_t version = storage(t).version;
  constexpr uint32_t kOdd = AJ_TENSOR_INFERENCE | AJ_TENSOR_STRIDED;
  const bool odd = (t->obj.flags & kOdd) != AJ_TENSOR_STRIDED;
  if (__builtin_expect(odd | ((storage(t).flags & kStorageWrap) != 0), 0)) {
    if (t->obj.flags & AJ_TENSOR_INFERENCE)
      return fail(AJ_PRECONDITION,
                  "autograd: a tensor made in inference mode cannot be saved for backward; clone "
                  "it outside");
    version = watched_version(t);
  }
  aj_tensor* keep = t;
  if (is_result) {
    AJ_TRY(plain_alias(t, &keep));  // without the node: a node must not hold itself
  } else {
    retain(t);
    mark_saved(t);
  }
  if (__builtin_expect(tls.saved_hooks != nullptr, 0)) {
    Ref held(keep);
    return pack_tensor(keep, s, nr, is_result);
  }
  s->t = keep;
  s->version = version;
  s->flags = is_result ? kSavedOutput : priv(t).node ? kSavedNode : 0u;
  s->nr = nr;
  return nullptr;
}

void untangle(Node* from, const aj_tensor* written) {
  constexpr size_t kFar = 10000;  // a cycle longer than this is left to its fate
  const Storage* memory = priv(written).storage;
  if (!(memory->flags & kStorageSaved)) return;
  std::unordered_set<Node*> seen{from};
  std::vector<Node*> next{from};
  std::vector<Ref> dead;  // released when no lock is held
  while (!next.empty() && seen.size() < kFar) {
    Node* n = next.back();
    next.pop_back();
    if (Node* inner = n->flags & kNodeSlices ? slice_inner(n) : nullptr)
      free_status(untangle_node(inner, memory, &dead));
    else if (!(n->flags & kNoSaved))
      free_status(untangle_node(n, memory, &dead));
    for (uint32_t i = 0; i < n->nedges; i++) {
      const Edge& e = n->edges()[i];
      if (!e.target || (e.flags & kEdgeLeaf)) continue;
      if (seen.insert(static_cast<Node*>(e.target)).second)
        next.push_back(static_cast<Node*>(e.target));
    }
  }
}

void saved_release(Saved* s) {
  if (s->flags & kSavedPacked) {
    pack_release(s->pack);
  } else {
    release(s->t);
  }
  s->t = nullptr;
  s->pack = nullptr;
  s->flags = 0;
}

void node_free_saved(Node* n) {
  if (n->flags & kNodeSlices) return slice_free_saved(n->slices);
  if (n->flags & kNodeCustom && !n->extra) return;
  (void)each_saved(n, [&](uint32_t, Saved& s) -> aj_status* {
    if (s.t || s.pack) n->flags |= kNodeFreed;
    saved_release(&s);
    return nullptr;
  });
}

Unpacked::~Unpacked() {
  for (uint32_t i = 0; i < nheld_; i++) {
    release(held_[i].t);
    if (held_[i].pack) pack_release(held_[i].pack);
  }
  if (values_ != few_) delete[] values_;
  if (held_ != few_held_) {
    delete[] held_;
    delete[] tensors_;
  }
}

aj_status* Unpacked::take_locked(Node* n, bool keep) {
  bool custom = n->flags & kNodeCustom;
  if (!custom) {  // a custom node's owner may never look at its values: see unpack_one
    AJ_TRY(each_saved(n, [&](uint32_t i, Saved& s) -> aj_status* {
      if (s.t && __builtin_expect(storage(s.t).version != s.version, 0) && is_changed(s))
        return changed(n, i, s);
      return nullptr;
    }));
  }
  uint32_t at = 0;
  AJ_TRY(each_saved(n, [&](uint32_t i, Saved& s) -> aj_status* {
    if (custom && s.t && storage(s.t).version != s.version && is_changed(s))
      return changed(n, i, s);
    Held& h = held_[at++];
    h = {s.t, (s.flags & kSavedPacked) ? s.pack : nullptr, s.flags, s.nr};
    nheld_ = at;
    if (keep) {
      if (h.t) retain(h.t);
      if (h.pack) h.pack->refs.fetch_add(1);
    } else {
      if (s.t || s.pack) n->flags |= kNodeFreed;
      s.t = nullptr;
      s.pack = nullptr;
      s.flags = 0;
    }
    return nullptr;
  }));
  return nullptr;
}

aj_status* Unpacked::restore(Node* n, Held& h, bool with_history, Node* outer) {
  if (h.pack) {
    Ref made;
    {
      NoGrad off;
      const SavedHooks* by = h.pack->hooks;
      AJ_TRY(caught(by->unpack, "unpack hook",
                    [&] { return by->unpack(by->self, h.pack->packed, made.out()); }));
    }
    if (!made)
      return fail(AJ_INVALID_ARGUMENT, "saved-tensor hooks: unpack returned no tensor for ",
                  node_name_of(n));
    if (with_history && (h.pack->history.target || (h.flags & kSavedOutput))) {
      AJ_TRY(plain_alias(made.get(), &h.t));
      if (h.flags & kSavedOutput)
        h.nr = h.pack->history.nr;
      else
        AJ_TRY(give_history(h.t, h.pack->history));
    } else {
      h.t = made.take();
    }
  }
  if (with_history && (h.flags & kSavedNode) && !priv(h.t).node)
    return fail(AJ_PRECONDITION, "backward: what ", node_name_of(n),
                " saved was taken off the tape by detach_(); use detach() before it");
  if (!(h.flags & kSavedOutput) || !with_history || !h.t) return nullptr;
  Ref alias(h.t);
  h.t = nullptr;
  if (outer) return slice_result(outer, alias.get(), &h.t);
  AJ_TRY(plain_alias(alias.get(), &h.t));
  if (can_require_grad(priv(h.t).dtype)) set_history(h.t, n, uint32_t(h.nr));  // not places
  return nullptr;
}

aj_status* Unpacked::take(Node* n, bool keep, bool with_history, Node* outer) {
  bool custom = n->flags & kNodeCustom;
  const aj_value* from = custom ? n->extra->custom->values.data() : n->values();
  count_ = custom ? uint32_t(n->extra->custom->values.size()) : n->nvalues();
  if (count_ > kFew) values_ = new aj_value[count_];
  uint32_t tensors = 0;
  for (uint32_t i = 0; i < count_; i++) {
    values_[i] = from[i];
    if (from[i].tag == AJ_TENSOR) tensors++;
    if (from[i].tag == AJ_TENSORS) tensors += from[i].aux;
    if (from[i].tag == AJ_NONE) values_[i].aux = 0;
  }
  if (!tensors) return nullptr;
  if (tensors > kFew) {
    held_ = new Held[tensors];
    tensors_ = new aj_tensor*[tensors];
  }
  {
    SpinGuard guard(stripe(n));
    if (__builtin_expect(n->flags & kNodeFreed, 0)) return freed(n);
    AJ_TRY(take_locked(n, keep));
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < count_; i++) {
    uint32_t m = from[i].tag == AJ_TENSOR ? 1 : from[i].tag == AJ_TENSORS ? from[i].aux : 0;
    for (uint32_t j = 0; j < m; j++, at++) {
      Held& h = held_[at];
      if (__builtin_expect(h.pack || (with_history && h.flags), 0))
        AJ_TRY(restore(n, h, with_history, outer));
      tensors_[at] = h.t;
    }
    if (from[i].tag == AJ_TENSOR) values_[i] = value(tensors_[at - 1]);
    if (from[i].tag == AJ_TENSORS) values_[i].v.tensors = tensors_ + at - m;
  }
  return nullptr;
}

aj_status* unpack_one(Node* n, uint32_t i, aj_value* out) {
  bool custom = n->flags & kNodeCustom;
  bool plain = !(n->flags & kNoSaved);
  uint32_t count = custom ? uint32_t(n->extra->custom->values.size()) : plain ? n->nvalues() : 0;
  if (i >= count)
    return fail(AJ_NOT_FOUND, "node_saved: ", node_name_of(n), " has ", count,
                " saved values, asked for number ", i);
  Unpacked all;
  AJ_TRY(all.take(n, true, true, nullptr));
  return value_own(all.values()[i], out);
}

aj_status* push_saved_hooks(aj_pack_hook pack, aj_unpack_hook unpack, void* self,
                            void (*drop)(void*)) {
  if (!pack || !unpack)
    return fail(AJ_INVALID_ARGUMENT, "push_saved_hooks: both pack and unpack are needed");
  auto* h = new SavedHooks;
  h->pack = pack;
  h->unpack = unpack;
  h->self = self;
  h->drop = drop;
  h->pins[0] = Pin(Holder::hook, pack), h->pins[1] = Pin(Holder::hook, unpack);
  h->pins[2] = Pin(Holder::hook, drop);
  h->below = tls.saved_hooks;
  tls.saved_hooks = h;
  return nullptr;
}

// A packed value needs its own pair only: the ones below are kept by the stack, or by what they
// packed.
aj_status* pop_saved_hooks() {
  SavedHooks* h = tls.saved_hooks;
  if (!h) return fail(AJ_PRECONDITION, "pop_saved_hooks: nothing was pushed in this thread");
  tls.saved_hooks = h->below;
  h->below = nullptr;
  hooks_release(h);
  return nullptr;
}

}  // namespace adjoin
