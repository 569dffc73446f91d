// core/tape/engine.hpp: one backward pass: which nodes it holds, which are ready.
#pragma once
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/tape/node.hpp"

namespace adjoin {

aj_status* backward(const aj_backward* b);
int32_t set_anomaly_mode(int32_t flags);
extern std::atomic<int32_t> anomaly_mode;

// Adds a gradient to what has arrived so far, in place where nobody else can see it. Steals g.
aj_status* accumulate(aj_tensor** slot, aj_tensor* g, bool create);
// Into a leaf's .grad. Steals g.
aj_status* accumulate_grad(aj_tensor* leaf, aj_tensor* g, bool create);
// Sole owner of itself and of its memory?
bool exclusive(const aj_tensor* t);

// A stack or heap of nodes that allocates only when it grows large.
class NodeStack {
 public:
  ~NodeStack() {
    if (data_ != few_) delete[] data_;
  }
  bool empty() const { return n_ == 0; }
  void push(Node* n) {
    if (__builtin_expect(n_ == room_, 0)) grow();
    data_[n_++] = n;
  }
  Node* pop() { return data_[--n_]; }
  void push_ready(Node* n);  // as a heap: the latest recorded first
  Node* pop_ready();

 private:
  void grow();
  static constexpr uint32_t kFew = 48;
  Node* few_[kFew];
  Node** data_ = few_;
  uint32_t n_ = 0, room_ = kFew;
};

class Run {
 public:
  Run(bool retain, bool create);
  ~Run();
  aj_status* add_root(aj_tensor* root, aj_tensor* grad);
  // Only what leads to these; their gradients go to out (NULL: into .grad).
  aj_status* restrict_to(std::span<aj_tensor* const> inputs, aj_tensor** out);
  aj_status* go();

 private:
  struct Side {  // of a node that another run holds
    uint32_t deps = 0, nresults = 1;
    void* slot = nullptr;
  };
  struct Wanted {
    void* target;  // Node* or Meta*
    uint32_t nr, index;
    bool leaf;
  };
  struct Root {
    Edge edge;
    aj_tensor* grad;  // owned until it is delivered
  };
  static constexpr uint32_t kNeeded = 1u << 31;    // leads to an input
  static constexpr uint32_t kCaptured = 1u << 30;  // is one
  static constexpr uint32_t kCount = kCaptured - 1;

  template <class T>
  bool claim(T* target);  // is it new to this run?
  template <class T>
  uint32_t* deps_of(T* target);  // NULL: not part of this run
  uint32_t* deps_of(const Edge& e);
  template <class T>
  void** slot_of(T* target);
  template <class T>
  void unclaim(T* target);
  void visit(const Edge& e, NodeStack* next);
  void walk();
  void walk_restricted();
  void mark_needed(std::span<Node* const> order, std::span<Meta* const> leaves);
  aj_status* deliver(const Edge& e, aj_tensor* g);
  aj_status* execute(Node* n);
  aj_status* run_node(Node* n, aj_tensor** grads, uint32_t marks);
  aj_status* derive(Node* n, aj_tensor** grads, aj_tensor** in, uint8_t* needs);
  aj_status* deliver_all(Node* n, aj_tensor** in);
  aj_status* before(Node* n, aj_tensor** grads, uint32_t marks);
  aj_status* run_leaf(aj_tensor* leaf, Meta* m, aj_tensor* g, uint32_t marks);
  void capture(void* target, uint32_t nr, aj_tensor* g);
  aj_status* loop();
  void abandon();

  uint32_t id_;
  bool retain_, create_, restricted_ = false;
  uint32_t steps_ = 0;
  aj_tensor** out_ = nullptr;
  std::vector<Wanted> wanted_;
  std::unique_ptr<std::unordered_map<void*, Side>> side_;
  NodeStack ready_;
  Root first_{};  // most passes have one root
  std::vector<Root> more_;
  uint32_t nroots_ = 0;
  bool done_ = false;
  Root& root(uint32_t i) { return i ? more_[i - 1] : first_; }
};

// How a pass reaches its counters in a node or a leaf: inline while it holds it, else beside it.
inline uint32_t results_of(const Node* n) { return n->nresults; }
inline uint32_t results_of(const Meta*) { return 1; }
void slots_release(void* slot, uint32_t nresults);

template <class T>
bool Run::claim(T* t) {
  uint32_t held = t->run.load(std::memory_order_relaxed);
  if (held == id_) return false;
  if (__builtin_expect(side_ != nullptr, 0) && side_->count(t)) return false;
  if (__builtin_expect(
          held == 0 && t->run.compare_exchange_strong(held, id_, std::memory_order_acq_rel), 1)) {
    t->deps = 0;
    t->slot = nullptr;
    return true;
  }
  if (!side_) side_ = std::make_unique<std::unordered_map<void*, Side>>();
  (*side_)[t].nresults = results_of(t);
  return true;
}

template <class T>
uint32_t* Run::deps_of(T* t) {
  if (__builtin_expect(t->run.load(std::memory_order_relaxed) == id_, 1)) return &t->deps;
  if (!side_) return nullptr;
  auto at = side_->find(t);
  return at == side_->end() ? nullptr : &at->second.deps;
}

template <class T>
void** Run::slot_of(T* t) {
  if (__builtin_expect(t->run.load(std::memory_order_relaxed) == id_, 1)) return &t->slot;
  return &side_->find(t)->second.slot;
}

template <class T>
void Run::unclaim(T* t) {
  if (t->run.load(std::memory_order_relaxed) == id_) {
    t->slot = nullptr;
    t->run.store(0, std::memory_order_release);
  } else if (side_) {
    side_->erase(t);
  }
}

inline uint32_t* Run::deps_of(const Edge& e) {
  if (!e.target) return nullptr;
  return e.flags & kEdgeLeaf ? deps_of(priv(static_cast<aj_tensor*>(e.target)).meta)
                             : deps_of(static_cast<Node*>(e.target));
}

}  // namespace adjoin
