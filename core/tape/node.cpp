// core/tape/node.cpp: making and freeing nodes, edges, and what a tensor knows of its history.
#include "core/tape/node.hpp"

#include <cstdlib>
#include <cstring>

#include "core/guest/caught.hpp"
#include "core/guest/line.hpp"
#include "core/memory/small.hpp"
#include "core/op/call.hpp"
#include "core/tape/hooks.hpp"
#include "core/tape/view.hpp"
#include "core/tape/write.hpp"

namespace adjoin {
namespace {

constexpr uint64_t kSeqBlock = 1024;
std::atomic<uint64_t> next_seq{1};

uint64_t take_seq() {
  if (__builtin_expect(tls.seq == tls.seq_end, 0)) {
    tls.seq = next_seq.fetch_add(kSeqBlock, std::memory_order_relaxed);
    tls.seq_end = tls.seq + kSeqBlock;
  }
  return tls.seq++;
}

void free_custom(Node* n) {
  Custom& c = *n->extra->custom;
  for (Saved& s : c.saved) saved_release(&s);
  for (aj_value& v : c.values)
    if (v.tag > AJ_TENSOR) release(v.v.object);
  if (c.payload) call_drop(c.vjp.def.drop, c.payload, "drop function");
}

void node_free(Node* n) {
  node_free_saved(n);
  for (uint32_t i = 0; i < n->nvalues(); i++) {
    aj_value& v = n->values()[i];
    if (v.tag > AJ_TENSOR) release(v.v.object);
  }
  if (n->extra) {
    if (n->extra->custom) free_custom(n);
    delete n->extra;
  }
  if (n->flags & (kNodeOpView | kNodeStrided)) view_step_free(n->view);
  if (n->flags & kNodeSlices) slice_step_free(n->slices);
  for (uint32_t i = 0; i < n->nedges; i++) edge_release(n->edges()[i]);
  uint32_t cls = n->flags >> kNodeClassShift;
  if (cls == kNodeHeap) {
    std::free(n);
  } else {
    small_free(int(cls), n);
  }
}

}  // namespace

aj_status* no_node_memory() {
  return fail(AJ_OUT_OF_MEMORY, "autograd: out of memory: no room to record an op");
}

Node* node_alloc(uint32_t nedges, uint32_t nvalues, uint64_t bytes) {
  uint64_t total = sizeof(Node) + nedges * sizeof(Edge) + nvalues * sizeof(aj_value) + bytes;
  uint32_t cls = total <= kSmallMax ? uint32_t(small_class(uint32_t(total))) : kNodeHeap;
  void* p = cls == kNodeHeap ? std::aligned_alloc(64, (total + 63) & ~uint64_t(63))
                             : small_alloc(int(cls));
  if (!p) return nullptr;
  Node* n = static_cast<Node*>(p);
  n->refs.store(1, std::memory_order_relaxed);
  n->nresults = 1;
  n->type = kNodeType;
  n->flags = nvalues << kNodeValuesShift | cls << kNodeClassShift;
  n->vjp = nullptr;
  n->seq = take_seq();
  n->line = current_line();
  n->run.store(0, std::memory_order_relaxed);
  n->deps = 0;
  n->nedges = nedges;
  n->slot = nullptr;
  n->extra = nullptr;
  std::memset(static_cast<void*>(n + 1), 0, nedges * sizeof(Edge) + nvalues * sizeof(aj_value));
  return n;
}

// A node that dies while another one is being freed waits in a list, so that a chain of any length
// needs no deep stack.
void node_release(Node* n) {
  if (!n || !drop_ref(n->refs)) return;
  n->slot = tls.node_free_head;
  tls.node_free_head = n;
  if (tls.node_freeing) return;
  tls.node_freeing = 1;
  while (Node* dead = static_cast<Node*>(tls.node_free_head)) {
    tls.node_free_head = dead->slot;
    dead->slot = nullptr;
    node_free(dead);
  }
  tls.node_freeing = 0;
}

void node_destroy(aj_object* o) {
  Node* n = reinterpret_cast<Node*>(o);
  n->refs.store(1, std::memory_order_relaxed);  // its count fell to zero outside
  node_release(n);
}

void edge_release(Edge& e) {
  void* target = e.target;
  e.target = nullptr;
  if (!target) return;
  if (e.flags & kEdgeLeaf)
    release(static_cast<aj_tensor*>(target));
  else
    node_release(static_cast<Node*>(target));
}

Meta* meta_of(aj_tensor* t) {
  std::atomic_ref<Meta*> place(priv(t).meta);
  Meta* m = place.load(std::memory_order_acquire);
  if (m) return m;
  auto* made = new Meta;
  if (place.compare_exchange_strong(m, made, std::memory_order_acq_rel)) return made;
  delete made;
  return m;
}

void meta_destroy(Meta* m) {
  if (m->retained_in) {
    forget_retain(m);
    node_release(m->retained_in);
  }
  release(m->grad);
  delete m;
}

void SpinGuard::wait() {
  Parked parked;
  while (s_.exchange(1, std::memory_order_acquire)) {
    while (s_.load(std::memory_order_relaxed)) __builtin_ia32_pause();
  }
}

aj_status* edge_to(aj_tensor* t, Edge* out) {
  out->target = nullptr;
  if (__builtin_expect(view_is_stale(t), 0)) AJ_TRY(view_refresh(t));
  if (!requires_grad(t)) return nullptr;
  TensorPriv& p = priv(t);
  if (p.node) {
    node_retain(p.node);
    out->target = p.node;
    out->nr = p.out_nr;
    out->flags = 0;
    return nullptr;
  }
  if (!p.meta) meta_of(t);
  retain(t);
  out->target = t;
  out->nr = 0;
  out->flags = kEdgeLeaf;
  return nullptr;
}

void set_history(aj_tensor* t, Node* n, uint32_t nr) {
  node_retain(n);
  adopt_history(t, n, nr);
}

void adopt_history(aj_tensor* t, Node* n, uint32_t nr) {
  TensorPriv& p = priv(t);
  Node* old = p.node;
  p.node = n;
  p.out_nr = nr;
  t->obj.flags = (t->obj.flags | AJ_TENSOR_REQUIRES_GRAD) & ~uint32_t(AJ_TENSOR_LEAF);
  t->keys |= kAutogradKey;
  if (__builtin_expect(p.meta && p.meta->retained_in, 0)) move_retain(p.meta, n, nr);
  if (__builtin_expect(old != nullptr, 0)) node_release(old);
}

bool can_require_grad(int dtype) {
  return dt(dtype).cls == AJ_CLASS_FLOAT || dt(dtype).cls == AJ_CLASS_COMPLEX;
}

Extra& extra_of(Node* n) {
  std::atomic_ref<Extra*> place(n->extra);
  Extra* e = place.load(std::memory_order_acquire);
  if (e) return *e;
  auto* made = new Extra;
  if (place.compare_exchange_strong(e, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *e;
}

std::string_view node_name_of(const Node* n) {
  if (n->flags & kNodeMissing) return n->op->schema.ident;
  if (n->flags & (kNodeOpView | kNodeStrided)) return view_step_name(n->view);
  if (n->flags & kNodeSlices) return "copy_slices";
  if (n->flags & kNodeAccumulator) return "accumulate_grad";
  if (n->flags & kNodeIdentity) return "alias";
  if (n->flags & kNodeZero) return "fill";
  return n->vjp->name;
}

std::string place_of(const Node* n) {
  std::string line = line_text(n->line);
  return line.empty() ? line : " recorded at " + line;
}

}  // namespace adjoin
