// core/tape/node.hpp: one recorded step of the tape, and what a leaf keeps for the engine.
//
// One block: [Node 64][Edge nedges][aj_value nvalues][words: results' forms, inputs' shapes, copied
// lists][Saved...].
#pragma once
#include <adjoin/abi/autograd.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/tls.hpp"
#include "core/guest/pins.hpp"
#include "core/tape/record.hpp"

namespace adjoin {

struct Extra;
struct ViewStep;   // view.hpp
struct SliceStep;  // write.cpp

enum NodeFlags : uint32_t {
  kNodeOpView = 1u << 0,   // a view op without a formula: replayed on zeros
  kNodeStrided = 1u << 1,  // a view made again from its base
  kNodeSlices = 1u << 2,   // a write through a view, as its base sees it
  kNodeMissing = 1u << 3,  // the op has no derivative: raises
  kNodeOnce = 1u << 4,     // made by a derivative that cannot be differentiated: raises
  kNodeIdentity = 1u << 5,
  kNodeCustom = 1u << 6,       // Extra holds its definition, payload and saved values
  kNodeAccumulator = 1u << 7,  // stands for a leaf, made when somebody looks
  kNodeFreed = 1u << 8,        // saved values are gone
  kNodeForms = 1u << 9,        // words begin with the form of each result
  kNodeZero = 1u << 10,        // gives no gradients: what was there before is overwritten
};
constexpr uint32_t kNodeValuesShift = 16;  // 8 bits: number of values
constexpr uint32_t kNodeClassShift = 28;   // 4 bits: size class of the block
constexpr uint32_t kNodeHeap = 15;         // the block is malloc's

enum EdgeFlags : uint8_t {
  kEdgeLeaf = 1,    // target is the leaf itself
  kEdgeWanted = 2,  // of a write through a view: the outer node has the target
};
struct Edge {
  void* target;   // Node*, or an aj_tensor* (kEdgeLeaf); owned; NULL: no gradient is wanted
  uint32_t nr;    // which result of target
  uint8_t dtype;  // of the input
  uint8_t flags;
  uint16_t
      shape;  // the input's shape [ndim, sizes...], in 8 bytes from the node's begin; 0: not kept
};
static_assert(sizeof(Edge) == 16);

enum SavedFlags : uint32_t {
  kSavedOutput = 1,  // an alias without node of result `nr`
  kSavedPacked = 2,  // by hooks
  kSavedNode = 4,    // an input that had a node
};
constexpr uint16_t kStorageSaved = 1u << 15;  // of a Storage: some node keeps a tensor on it
struct PackBox;
struct Saved {
  aj_tensor* t;
  uint32_t version, flags;
  union {
    uint64_t nr;
    PackBox* pack;
  };
};
static_assert(sizeof(Saved) == 24);

struct Node {
  std::atomic<uint32_t> refs;  // begins as an aj_object does
  uint32_t nresults;
  int32_t type;
  uint32_t flags;
  union {
    const Vjp* vjp;
    const aj_op* op;  // kNodeMissing
    ViewStep* view;
    SliceStep* slices;
  };
  uint64_t seq;
  uint32_t line;              // the user's place
  std::atomic<uint32_t> run;  // the backward that holds this node; 0: none
  uint32_t deps, nedges;      // deps: gradients it waits for, and marks of the run
  void* slot;  // aj_tensor*, or aj_tensor*[nresults] if there are several; in the list of the dead:
               // the next
  Extra* extra;

  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  aj_value* values() { return reinterpret_cast<aj_value*>(edges() + nedges); }
  uint32_t nvalues() const { return flags >> kNodeValuesShift & 255; }
  int64_t* words() { return reinterpret_cast<int64_t*>(this); }  // indexed from the block's begin
  int64_t* forms() { return reinterpret_cast<int64_t*>(values() + nvalues()); }
  Saved* saved(const aj_value& v) {
    return reinterpret_cast<Saved*>(reinterpret_cast<char*>(this) + v.v.u);
  }
  aj_node* abi() { return reinterpret_cast<aj_node*>(this); }
};
static_assert(sizeof(Node) == 64 && offsetof(Node, type) == offsetof(aj_object, type));
inline Node* node_of(aj_node* n) { return reinterpret_cast<Node*>(n); }

struct Hook {
  uint64_t id;
  int32_t kind;
  uint32_t nr;  // tensor hooks of a node: which result
  union {
    aj_tensor_hook tensor;
    aj_node_hook node;
  };
  void* self;
  void (*drop)(void*);
  Pin pins[2];
  std::atomic<bool> removed{false};
  ~Hook();
};
using HookList = std::vector<std::shared_ptr<Hook>>;

struct Retain {
  Meta* meta;  // whose .grad is wanted
  uint32_t nr;
};

struct Form {  // of a result, to make zeros
  Device* device = nullptr;
  uint8_t dtype = 0;
  std::vector<int64_t> shape;
};

struct Custom {
  Vjp vjp;
  std::vector<Form> forms;
  void* payload = nullptr;
  std::vector<Saved> saved;
  std::vector<aj_value> values;  // a tensor's v.u: index into saved
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<const aj_tensor*> inputs;  // only compared
  std::vector<const aj_tensor*>
      unattached;  // results saved before they were attached, by place in `saved`
  Pin pins[2];
};

struct Extra {
  HookList hooks;
  std::vector<Retain> retains;
  std::unique_ptr<Custom> custom;
};

// Of a leaf that requires grad: begins like what the engine needs of a node. Also of any tensor
// with a .grad.
struct Meta {
  std::atomic<uint32_t> run{0};
  uint32_t deps = 0;
  void* slot = nullptr;
  aj_tensor* grad = nullptr;
  std::atomic<uint8_t> spin{0};  // held while grad is read or replaced
  std::unique_ptr<HookList> hooks;
  Node* retained_in = nullptr;  // a non-leaf that keeps its gradient: the node that lists it, owned
};

// Gets `meta`, made if need be.
Meta* meta_of(aj_tensor* t);

class SpinGuard {
 public:
  explicit SpinGuard(std::atomic<uint8_t>& s) : s_(s) {
    if (__builtin_expect(s_.exchange(1, std::memory_order_acquire) != 0, 0)) wait();
  }
  ~SpinGuard() { s_.store(0, std::memory_order_release); }

 private:
  void wait();  // parks the frontend's lock, which the holder may need
  std::atomic<uint8_t>& s_;
};

// A block for `bytes` beyond the edges and values; edges are zeroed, values are none. NULL: no
// memory.
Node* node_alloc(uint32_t nedges, uint32_t nvalues, uint64_t bytes);
aj_status* no_node_memory();
inline void node_retain(Node* n) { n->refs.fetch_add(1, std::memory_order_relaxed); }
std::string_view node_name_of(const Node* n);
Extra& extra_of(Node* n);

// The edge to what made t; nothing if t does not require grad. A stale view is refreshed first.
// Owned.
aj_status* edge_to(aj_tensor* t, Edge* out);
void edge_release(Edge& e);
inline void edge_retain(const Edge& e) {
  if (!e.target) return;
  if (e.flags & kEdgeLeaf)
    retain(static_cast<aj_tensor*>(e.target));
  else
    node_retain(static_cast<Node*>(e.target));
}
// t becomes result nr of n, which is retained; what t was before is forgotten.
void set_history(aj_tensor* t, Node* n, uint32_t nr);
void adopt_history(aj_tensor* t, Node* steal_n, uint32_t nr);  // the caller's reference goes to t
bool can_require_grad(int dtype);

// Saving and unpacking: saved.cpp.
aj_status* save_tensor(Node* n, aj_tensor* t, bool is_result, uint32_t nr, Saved* out);
// A tensor that nodes before `from` saved has been written: they keep its memory for the error, but
// not the tensor, whose history now leads to them.
void untangle(Node* from, const aj_tensor* written);
void saved_release(Saved* s);
void node_free_saved(Node* n);  // after its backward; a second use raises

// Runs a node's own derivative: grad_out has nresults entries, borrowed; grad_in nedges entries,
// owned results. hooks and checks are the engine's. `outer`: of a write through a view, the node
// that unpacked results belong to.
aj_status* node_apply(Node* n, aj_tensor* const* grad_out, aj_tensor** grad_in,
                      const uint8_t* needs, bool create, bool keep, Node* outer);
// Shape, dtype and realness of a returned gradient: fitted to the input, or an error.
aj_status* fit_gradient(Node* n, uint32_t input, aj_tensor** io);

std::string place_of(const Node* n);  // " recorded at FILE:LINE", or ""

}  // namespace adjoin
