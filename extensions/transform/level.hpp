// extensions/transform/level.hpp: the levels that are open, and what a tensor of one holds.
#pragma once
#include <adjoin/abi/transform.h>
#include <adjoin/abi/wrap.h>

#include <adjoin/kit/call.hpp>
#include <atomic>
#include <deque>
#include <vector>

namespace adjoin::transform {

using namespace kit;

// One transform. It outlives `leave` while a tensor of it is alive, so that who uses that one is
// told.
struct Level {
  int32_t id, kind, randomness;
  int64_t size;    // samples; 1 of duals
  bool recording;  // of the thread where it was entered
  bool kept;       // when it has ended, its tensors are their values
  bool alone;      // the thread did not include the key before
  std::atomic<bool> open{true};
  Level* outer;  // NULL: none
  std::atomic<int32_t> users{1};
  int64_t stride = 0;  // blocks of random numbers that one sample takes, where that is known
};

struct ViewOf;
// How a view that all samples share was made: a write that differs between samples gives its base a
// place for each, and the view is made again.
struct Origin;

// The payload of a wrapper. Of a batch: value has the samples in dimension 0, or, where batched is
// false, all share it. Of a dual: value and tangent (NULL: zero).
struct Payload {
  Level* level;
  aj_tensor *value, *tangent;
  Origin* origin;  // or NULL
  bool batched;
  // Of a dual, see dual.cpp:
  bool owned;           // the tangent is its own: nobody else's write or read meets it
  uint64_t generation;  // how often the tangent was replaced by an own one
  ViewOf* view;         // of a view, else NULL
};

// The call that made a dual a view of another.
struct ViewOf {
  const aj_op* op;
  aj_object* base;      // the payload of its argument 0, retained
  uint64_t generation;  // of the root, when the tangent was made
  uint32_t result;
  std::vector<aj_value> args;
  std::deque<std::vector<int64_t>> ints;  // what args point to
};

extern const aj_wrappers* wrap_table;
extern const aj_lower* lower_table;
extern uint64_t transform_key;

inline bool is_wrapped(const aj_tensor* t) { return t && (t->keys & transform_key); }
// Of a wrapper. It is gone with the wrapper, or when that one is written.
inline Payload* payload_of(const aj_tensor* t) {
  return static_cast<Payload*>(core().object_payload(wrap_table->tensor_payload(t, transform_key)));
}
// The payload if t is of this level, else NULL.
inline Payload* at_level(const aj_tensor* t, const Level& l) {
  if (!is_wrapped(t)) return nullptr;
  Payload* p = payload_of(t);
  return p->level == &l ? p : nullptr;
}

Level* innermost();  // of this thread, as the call that is served sees it: NULL: none is open
Level* find_level(int32_t id, const char* who);  // raises where it is not open on this thread

// A wrapper; view_of: the wrapper that it is a view of, or NULL.
Tensor make_wrapper(Level& l, const Tensor& value, const Tensor& tangent, bool batched,
                    aj_tensor* view_of = nullptr);
// Says how `view` was made of argument 0 of a call; item: its place in a list, or -1.
void set_origin(const Tensor& view, const aj_call* call, int32_t item);
// The value as it is now: of a view whose base got a place for each sample, the new one. The key is
// not excluded afterwards.
Tensor current_value(const aj_tensor* t, bool* batched);
// t, which all samples share, gets a place for each, its base too.
void promote(aj_tensor* t, Level& l);
// Another payload for a wrapper that is written in place.
void set_payload(aj_tensor* t, Level& l, const Tensor& value, const Tensor& tangent, bool batched);
Tensor lift(const Tensor& t, Level& l);

// What is done for a level, below it: recording as it was around, calls meet the levels around
// alone.
class Below {
 public:
  explicit Below(const Level& l);
  ~Below();
  Below(const Below&) = delete;

 private:
  Level* before_;
  uint32_t recording_;
  uint64_t include_, exclude_;
  bool keys_ = false;
};

aj_status* enter(int32_t kind, int64_t size, int32_t randomness, int32_t* level);
aj_status* leave(int32_t level);
aj_status* batched(aj_tensor* t, int32_t dim, int32_t level, aj_tensor** out);
aj_status* unbatched(aj_tensor* t, int32_t dim, int32_t level, aj_tensor** out);
aj_status* shared(aj_tensor* t, int32_t level, aj_tensor** out);
aj_status* lift_to(aj_tensor* t, int32_t level, aj_tensor** out);
int32_t innermost_id();
int32_t kind_of(int32_t level);
aj_status* below(int32_t level);
void above();
aj_status* batch_of(int32_t level, int64_t* size, int32_t* randomness);
aj_status* random_stride(int32_t level, int64_t blocks);

[[noreturn]] void ended(const Level& l);  // a tensor of it is used
// The kernel at the key: every call with a wrapper, and every call while a level is open.
aj_status* serve(void*, aj_call* call);

// The rule that a plugin gave for an op, a service of the slot under the op's name; the last one
// counts. NULL: none.
inline const void* given_rule_of(aj_str slot, std::string_view op) {
  for (uint32_t i = services().count(slot); i-- > 0;) {
    aj_service_def d{};
    d.struct_size = sizeof d;
    if (aj_status* s = services().at(slot, i, &d)) {
      core().status_free(s);
      continue;
    }
    if (view_of(d.name) == op) return d.table;
  }
  return nullptr;
}

}  // namespace adjoin::transform
