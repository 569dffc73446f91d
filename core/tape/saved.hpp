// core/tape/saved.hpp: what nodes keep: versions, hooks that pack and unpack, taking it out
// again.
#pragma once
#include <mutex>

#include "core/tape/node.hpp"

namespace adjoin {

// One pair of hooks; a thread's stack is a list of them. Packed values keep their pair alive.
struct SavedHooks {
  std::atomic<uint32_t> refs{1};
  aj_pack_hook pack;
  aj_unpack_hook unpack;
  void* self;
  void (*drop)(void*);
  SavedHooks* below;
  Pin pins[3];
};

struct PackBox {
  std::atomic<uint32_t> refs{1};
  aj_object* packed;
  SavedHooks* hooks;
  Edge history;  // of an input, for derivatives of derivatives
};

// Nodes that keep no values as these.
constexpr uint32_t kNoSaved = kNodeMissing | kNodeOpView | kNodeStrided | kNodeSlices | kNodeOnce |
                              kNodeIdentity | kNodeAccumulator | kNodeZero;

// f(number of the value, Saved&) for each tensor that n keeps, until one fails.
template <class F>
aj_status* each_saved(Node* n, F&& f) {
  if (n->flags & kNoSaved) return nullptr;
  bool custom = n->flags & kNodeCustom;
  aj_value* v = custom ? n->extra->custom->values.data() : n->values();
  uint32_t count = custom ? uint32_t(n->extra->custom->values.size()) : n->nvalues();
  for (uint32_t i = 0; i < count; i++) {
    if (v[i].tag != AJ_TENSOR && v[i].tag != AJ_TENSORS) continue;
    Saved* s = custom ? &n->extra->custom->saved[v[i].v.u] : n->saved(v[i]);
    for (uint32_t j = 0; j < (v[i].tag == AJ_TENSOR ? 1 : v[i].aux); j++) AJ_TRY(f(i, s[j]));
  }
  return nullptr;
}

// Saved values of one node while its derivative runs: as the derivative sees them, and what has to
// be released.
class Unpacked {
 public:
  Unpacked() = default;
  ~Unpacked();
  Unpacked(const Unpacked&) = delete;
  // keep: the node can be used again. with_history: results and packed inputs come back with their
  // history.
  aj_status* take(Node* n, bool keep, bool with_history, Node* outer);
  const aj_value* values() const { return values_; }
  uint32_t count() const { return count_; }

 private:
  struct Held {
    aj_tensor* t;
    PackBox* pack;
    uint32_t flags;
    uint64_t nr;
  };
  static constexpr uint32_t kFew = 8;
  aj_status* take_locked(Node* n, bool keep);
  aj_status* restore(Node* n, Held& h, bool with_history, Node* outer);
  Held* hold(uint32_t n);

  aj_value few_[kFew];
  Held few_held_[kFew];
  aj_tensor* few_tensors_[kFew];
  aj_value* values_ = few_;
  Held* held_ = few_held_;
  aj_tensor** tensors_ = few_tensors_;  // the same tensors, side by side for lists
  uint32_t count_ = 0, nheld_ = 0;
};

aj_status* unpack_one(Node* n, uint32_t i, aj_value* out);  // for those who look at a graph; owned
aj_status* push_saved_hooks(aj_pack_hook pack, aj_unpack_hook unpack, void* self,
                            void (*drop)(void*));
aj_status* pop_saved_hooks();

}  // namespace adjoin
